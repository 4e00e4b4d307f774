// SPDX-License-Identifier: Apache-2.0
//! A port whose other end is in the test.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use softswitch::port::{Flushed, PortError, Receive, Transmit};

use super::TEST_TIMEOUT;

pub struct TestReceiver {
    socket: UnixDatagram,
    received: Vec<Vec<u8>>,
}

pub struct TestTransmitter {
    socket: UnixDatagram,
    flushed: Flushed,
}

/// The other end of a port.
pub struct Wire(UnixDatagram);

pub fn pair() -> (TestReceiver, TestTransmitter, Wire) {
    let (inner, outer) = UnixDatagram::pair().unwrap();
    inner.set_nonblocking(true).unwrap();
    let transmitter = TestTransmitter {
        socket: inner.try_clone().unwrap(),
        flushed: Flushed::default(),
    };
    let receiver = TestReceiver {
        socket: inner,
        received: vec![],
    };
    (receiver, transmitter, Wire(outer))
}

impl Wire {
    pub fn send(&self, frame: &[u8]) {
        self.0.send(frame).unwrap();
    }

    /// Receives the next frame that the port sends.
    pub fn receive(&self) -> Vec<u8> {
        self.receive_within(TEST_TIMEOUT).expect("no frame in time")
    }

    pub fn receive_within(&self, time: Duration) -> Option<Vec<u8>> {
        self.0.set_read_timeout(Some(time)).unwrap();
        let mut buffer = vec![0; 65536];
        let n = self.0.recv(&mut buffer).ok()?;
        buffer.truncate(n);
        Some(buffer)
    }
}

impl Receive for TestReceiver {
    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn fill(&mut self) -> bool {
        let mut buffer = vec![0; 65536];
        while self.received.len() < 32
            && let Ok(n) = self.socket.recv(&mut buffer)
        {
            self.received.push(buffer[..n].to_vec());
        }
        !self.received.is_empty()
    }

    fn frames(&mut self, each: &mut dyn FnMut(&[u8])) {
        self.received.drain(..).for_each(|frame| each(&frame));
    }

    fn failure(&mut self) -> Option<PortError> {
        None
    }

    fn drops(&mut self) -> u64 {
        0
    }
}

impl Transmit for TestTransmitter {
    fn send(&mut self, frame: &[u8]) {
        match self.socket.send(frame) {
            Ok(n) => {
                self.flushed.sent += 1;
                self.flushed.sent_bytes += n as u64;
            }
            Err(_) => self.flushed.busy += 1,
        }
    }

    fn flush(&mut self) -> Flushed {
        std::mem::take(&mut self.flushed)
    }
}
