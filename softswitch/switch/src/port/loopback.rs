// SPDX-License-Identifier: Apache-2.0
//! A loopback port: frames sent to the port are received on it, after they have crossed the port's link.
//!
//! Switch ASICs have these ports, too (a MAC in loopback mode). Here they serve as delay lines: with one per pair of
//! locations, a single switch emulates a whole network, with its own delay and loss between any two ports.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use nix::sys::eventfd::{EfdFlags, EventFd};
use parking_lot::Mutex;

use super::{Flushed, PortError, Receive, Transmit};

/// Maximum number of frames that wait for reception; further ones are dropped.
const BACKLOG: usize = 4096;

/// Creates both ends of a loopback port.
///
/// # Errors
/// If the kernel refuses a descriptor.
pub fn loopback() -> io::Result<(impl Receive, impl Transmit)> {
    let ready = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
    let line = Arc::new(Line {
        frames: Mutex::default(),
        ready,
    });
    let receiver = Inward {
        line: Arc::clone(&line),
        batch: Vec::new(),
    };
    let transmitter = Outward {
        line,
        sent: Vec::new(),
    };
    Ok((receiver, transmitter))
}

struct Line {
    frames: Mutex<Vec<Vec<u8>>>,
    /// Readable while there are frames. Changes only under the lock of `frames`.
    ready: EventFd,
}

struct Inward {
    line: Arc<Line>,
    batch: Vec<Vec<u8>>,
}

impl Receive for Inward {
    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.line.ready.as_fd()
    }

    fn fill(&mut self) -> bool {
        if self.batch.is_empty() {
            let mut frames = self.line.frames.lock();
            if !frames.is_empty() {
                std::mem::swap(&mut *frames, &mut self.batch);
                // It was written with the first frame, so this does not fail.
                let _ = self.line.ready.read();
            }
        }
        !self.batch.is_empty()
    }

    fn frames(&mut self, each: &mut dyn FnMut(&[u8])) {
        self.batch.drain(..).for_each(|frame| each(&frame));
    }

    fn failure(&mut self) -> Option<PortError> {
        None
    }

    fn drops(&mut self) -> u64 {
        0
    }
}

struct Outward {
    line: Arc<Line>,
    sent: Vec<Vec<u8>>,
}

impl Transmit for Outward {
    fn send(&mut self, frame: &[u8]) {
        self.sent.push(frame.to_vec());
    }

    fn flush(&mut self) -> Flushed {
        let mut flushed = Flushed::default();
        let mut frames = self.line.frames.lock();
        let was_empty = frames.is_empty();
        for frame in self.sent.drain(..) {
            if frames.len() < BACKLOG {
                flushed.sent += 1;
                flushed.sent_bytes += frame.len() as u64;
                frames.push(frame);
            } else {
                flushed.busy += 1;
            }
        }
        if was_empty && !frames.is_empty() {
            // It fails only if the counter overflows, which the first write cannot cause.
            let _ = self.line.ready.write(1);
        }
        flushed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    fn readable(receiver: &impl Receive) -> bool {
        let mut fds = [PollFd::new(receiver.poll_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::ZERO).unwrap() == 1
    }

    #[test]
    fn loopback_keeps_order_and_counts_drops() {
        let (mut receiver, mut transmitter) = loopback().unwrap();
        assert!(!receiver.fill() && !readable(&receiver));
        for round in 0..2_u8 {
            let count = BACKLOG + 3;
            (0..count).for_each(|i| transmitter.send(&[round, i as u8]));
            let flushed = transmitter.flush();
            assert_eq!((flushed.sent, flushed.busy), (BACKLOG as u64, 3));
            assert_eq!(flushed.sent_bytes, 2 * BACKLOG as u64);
            assert!(readable(&receiver) && receiver.fill());
            let mut seen = Vec::new();
            receiver.frames(&mut |frame| seen.push(frame.to_vec()));
            assert_eq!(seen.len(), BACKLOG);
            assert!((0..BACKLOG).all(|i| seen[i] == [round, i as u8]));
            assert!(!receiver.fill() && !readable(&receiver));
        }
    }
}
