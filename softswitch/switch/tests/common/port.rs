//! A port whose wire ends in the test.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use softswitch::port::{Flushed, Port, PortError};

use super::PATIENCE;

pub struct TestPort {
    socket: UnixDatagram,
    received: Vec<Vec<u8>>,
    sending: Vec<Vec<u8>>,
}

/// The other end of a port.
pub struct Wire(UnixDatagram);

pub fn pair() -> (TestPort, Wire) {
    let (inner, outer) = UnixDatagram::pair().unwrap();
    inner.set_nonblocking(true).unwrap();
    let port = TestPort {
        socket: inner,
        received: vec![],
        sending: vec![],
    };
    (port, Wire(outer))
}

impl Wire {
    pub fn send(&self, frame: &[u8]) {
        self.0.send(frame).unwrap();
    }

    /// The next frame that leaves by the port.
    pub fn receive(&self) -> Vec<u8> {
        self.receive_within(PATIENCE).expect("no frame in time")
    }

    pub fn receive_within(&self, time: Duration) -> Option<Vec<u8>> {
        self.0.set_read_timeout(Some(time)).unwrap();
        let mut buffer = vec![0; 65536];
        let n = self.0.recv(&mut buffer).ok()?;
        buffer.truncate(n);
        Some(buffer)
    }
}

impl Port for TestPort {
    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn fill(&mut self) -> Result<usize, PortError> {
        let mut buffer = vec![0; 65536];
        while self.received.len() < 32 {
            match self.socket.recv(&mut buffer) {
                Ok(n) => self.received.push(buffer[..n].to_vec()),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => return Err(e.into()),
            }
        }
        Ok(self.received.len())
    }

    fn frames(&mut self, each: &mut dyn FnMut(&[u8])) {
        self.received.drain(..).for_each(|frame| each(&frame));
    }

    fn send(&mut self, frame: Vec<u8>) {
        self.sending.push(frame);
    }

    fn flush(&mut self, spare: &mut Vec<Vec<u8>>) -> Flushed {
        let mut flushed = Flushed::default();
        for frame in self.sending.drain(..) {
            match self.socket.send(&frame) {
                Ok(n) => {
                    flushed.sent += 1;
                    flushed.sent_bytes += n as u64;
                }
                Err(_) => flushed.busy += 1,
            }
            spare.push(frame);
        }
        flushed
    }

    fn kernel_drops(&mut self) -> u64 {
        0
    }
}
