// SPDX-License-Identifier: Apache-2.0
//! A port whose other end is in the test.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use softswitch::port::{Flushed, PortError, Receive, Transmit};

use super::TEST_TIMEOUT;

pub struct TestReceiver {
    socket: UnixDatagram,
    received: Vec<Vec<u8>>,
}

pub struct TestTransmitter {
    socket: UnixDatagram,
    waiting: Vec<Vec<u8>>,
    is_shut: Arc<AtomicBool>,
}

/// The other end of a port.
pub struct Wire {
    socket: UnixDatagram,
    is_shut: Arc<AtomicBool>,
}

pub fn pair() -> (TestReceiver, TestTransmitter, Wire) {
    let (inner, outer) = UnixDatagram::pair().unwrap();
    inner.set_nonblocking(true).unwrap();
    let is_shut = Arc::new(AtomicBool::new(false));
    let transmitter = TestTransmitter {
        socket: inner.try_clone().unwrap(),
        waiting: vec![],
        is_shut: Arc::clone(&is_shut),
    };
    let receiver = TestReceiver {
        socket: inner,
        received: vec![],
    };
    let wire = Wire {
        socket: outer,
        is_shut,
    };
    (receiver, transmitter, wire)
}

impl Wire {
    pub fn send(&self, frame: &[u8]) {
        self.socket.send(frame).unwrap();
    }

    /// Lets the port accept no frames from the switch, or accept them again.
    pub fn shut(&self, is_shut: bool) {
        self.is_shut.store(is_shut, Ordering::Release);
    }

    /// Receives the next frame that the port sends.
    pub fn receive(&self) -> Vec<u8> {
        self.receive_within(TEST_TIMEOUT).expect("no frame in time")
    }

    pub fn receive_within(&self, time: Duration) -> Option<Vec<u8>> {
        self.socket.set_read_timeout(Some(time)).unwrap();
        let mut buffer = vec![0; 65536];
        let n = self.socket.recv(&mut buffer).ok()?;
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
        self.waiting.push(frame.to_vec());
    }

    fn flush(&mut self) -> Flushed {
        let mut flushed = Flushed::default();
        if self.is_shut.load(Ordering::Acquire) {
            flushed.held = !self.waiting.is_empty();
            return flushed;
        }
        // The socket holds few frames.
        let taken = self
            .waiting
            .iter()
            .take_while(|f| self.socket.send(f).is_ok());
        let taken = taken.count();
        for frame in self.waiting.drain(..taken) {
            flushed.sent += 1;
            flushed.sent_bytes += frame.len() as u64;
        }
        flushed.held = !self.waiting.is_empty();
        flushed
    }
}
