// SPDX-License-Identifier: Apache-2.0
//! Ports whose frames are also recorded, in a capture or in the log.

use std::os::fd::BorrowedFd;

use super::{Flushed, PortError, Receive, Transmit};

/// Records the frames of one direction of a port.
pub(super) trait Observer: Send + 'static {
    /// Records a frame.
    fn record(&mut self, frame: &[u8]);

    /// Called at the end of a batch of frames.
    fn end_batch(&mut self) {}
}

struct Observed<P, O> {
    port: P,
    observer: O,
}

/// Also records received frames.
pub(super) fn received(port: Box<dyn Receive>, observer: impl Observer) -> Box<dyn Receive> {
    Box::new(Observed { port, observer })
}

/// Also records sent frames.
pub(super) fn sent(port: Box<dyn Transmit>, observer: impl Observer) -> Box<dyn Transmit> {
    Box::new(Observed { port, observer })
}

impl<O: Observer> Receive for Observed<Box<dyn Receive>, O> {
    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.port.poll_fd()
    }

    fn fill(&mut self) -> bool {
        self.port.fill()
    }

    fn frames(&mut self, each: &mut dyn FnMut(&[u8])) {
        let observer = &mut self.observer;
        self.port.frames(&mut |frame| {
            observer.record(frame);
            each(frame);
        });
        observer.end_batch();
    }

    fn failure(&mut self) -> Option<PortError> {
        self.port.failure()
    }

    fn drops(&mut self) -> u64 {
        self.port.drops()
    }
}

impl<O: Observer> Transmit for Observed<Box<dyn Transmit>, O> {
    fn send(&mut self, frame: &[u8]) {
        self.observer.record(frame);
        self.port.send(frame);
    }

    fn flush(&mut self) -> Flushed {
        self.observer.end_batch();
        self.port.flush()
    }
}
