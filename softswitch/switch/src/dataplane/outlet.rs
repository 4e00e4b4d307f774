// SPDX-License-Identifier: Apache-2.0
//! The outlets of the data plane, which keep the order of frames.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::counters::PortCounters;
use crate::port::{PortError, Transmit};

/// The outlet of one port.
///
/// Threads add frames while they hold the port's queue, which fixes the order. The first thread that comes sends them
/// later; other threads find nothing left, or wait and send the next ones.
pub struct Outlet {
    waiting: Mutex<Vec<Vec<u8>>>,
    sending: Mutex<Sending>,
    /// The transmitter keeps frames, because the interface does not accept them at the moment.
    holds: AtomicBool,
    counters: Arc<PortCounters>,
    /// Number and interface, for messages.
    number: u32,
    name: String,
}

struct Sending {
    /// `None` after the port was detached.
    transmitter: Option<Box<dyn Transmit>>,
    frames: Vec<Vec<u8>>,
}

/// News for the data plane after sending.
pub(super) enum Report {
    /// The interface accepted no more frames, or accepts them again: see [`Outlet::holds`].
    Held,
    /// It is down or gone.
    Failed(PortError),
}

impl Outlet {
    pub(super) fn new(
        number: u32,
        name: String,
        counters: Arc<PortCounters>,
        transmitter: Box<dyn Transmit>,
    ) -> Self {
        Self {
            waiting: Mutex::default(),
            sending: Mutex::new(Sending {
                transmitter: Some(transmitter),
                frames: Vec::new(),
            }),
            holds: AtomicBool::new(false),
            counters,
            number,
            name,
        }
    }

    /// Adds frames and leaves `made` empty.
    pub(super) fn add(&self, made: &mut Vec<Vec<u8>>) {
        self.waiting.lock().append(made);
    }

    /// Returns true if the transmitter keeps frames that the interface did not accept.
    pub(super) fn holds(&self) -> bool {
        self.holds.load(Ordering::Acquire)
    }

    /// Stops sending, and closes the interface.
    pub(super) fn close(&self) {
        self.sending.lock().transmitter = None;
        self.holds.store(false, Ordering::Release);
    }

    /// Sends all added frames, and those that the transmitter has kept, and moves their buffers to `spare`.
    pub(super) fn send(&self, spare: &mut Vec<Vec<u8>>) -> Option<Report> {
        let mut sending = self.sending.lock();
        let Sending {
            transmitter,
            frames,
        } = &mut *sending;
        std::mem::swap(&mut *self.waiting.lock(), frames);
        if frames.is_empty() && !self.holds() {
            return None;
        }
        let Some(transmitter) = transmitter else {
            self.counters.port_down.add(frames.len() as u64);
            spare.append(frames);
            return None;
        };
        for frame in frames.drain(..) {
            transmitter.send(&frame);
            spare.push(frame);
        }
        let flushed = transmitter.flush();
        if flushed.too_long > 0 && self.counters.too_long.get() == 0 {
            let (number, name) = (self.number, &self.name);
            tracing::warn!(
                "port {number} ({name}): dropped a frame longer than the interface's MTU; raise it: \
                 ip link set {name} mtu N"
            );
        }
        self.counters.tx_packets.add(flushed.sent);
        self.counters.tx_bytes.add(flushed.sent_bytes);
        self.counters.too_long.add(flushed.too_long);
        self.counters.tx_busy.add(flushed.busy);
        self.counters.port_down.add(flushed.down);
        let held_before = self.holds.swap(flushed.held, Ordering::AcqRel);
        match flushed.failure {
            Some(failure) => Some(Report::Failed(failure)),
            None => (flushed.held || held_before).then_some(Report::Held),
        }
    }
}
