// SPDX-License-Identifier: Apache-2.0
//! The batch of packets under construction. noq builds the packets of a connection and hands them to the connection's
//! sender without leaving the thread. So a thread-local batch collects what they carry: the meter is updated once per
//! batch, and the socket need not know whose batch it sends.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use super::Shared;
use crate::migration::LocalAddress;

thread_local! {
    /// Without a destructor, so that no access has to check whether it has run. When a batch ends, it holds nothing
    /// to free.
    static BATCH: RefCell<ManuallyDrop<Batch>> = const {
        RefCell::new(ManuallyDrop::new(Batch {
            meter: None,
            sent: Vec::new(),
            response_address: None,
            is_probe: false,
        }))
    };
}

/// A batch of one connection.
pub(super) struct Batch {
    meter: Option<Arc<Shared>>,
    sent: Vec<StreamBytes>,
    /// Address at which a PATH_CHALLENGE arrived to which the batch responds.
    response_address: Option<LocalAddress>,
    /// A packet of the batch is a probe.
    is_probe: bool,
}

/// The facts about a batch that the socket needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchSummary {
    /// Bytes that remained, before the batch, of the response in it. 0 if the connection has no responses or the batch
    /// contains a probe; `None` if it has responses, but the batch carries none of them.
    pub remaining: Option<u64>,
    /// Address from which the batch leaves, once it is known.
    pub address: Option<LocalAddress>,
}

/// Bytes of a stream in the packets of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamBytes {
    pub(super) stream: u64,
    /// Offset after the last byte.
    pub(super) to: u64,
    /// True if the stream ends there.
    pub(super) fin: bool,
}

/// Call `add` to record a packet of this meter's connection in the batch.
pub(super) fn extend(meter: &Arc<Shared>, add: impl FnOnce(&mut Batch)) {
    BATCH.with_borrow_mut(|batch| {
        if !batch
            .meter
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(current, meter))
        {
            let _ = batch.finish();
            batch.meter = Some(meter.clone());
        }
        add(batch);
    });
}

/// End the batch and return its summary. Return `None` if no packet was made since the previous batch, which happens
/// when the socket was busy and that batch is sent again.
pub fn finish() -> Option<BatchSummary> {
    BATCH.with_borrow_mut(|batch| batch.finish())
}

impl Batch {
    /// Add the bytes of one frame. A batch has few streams, and most packets continue one of them.
    #[inline]
    pub(super) fn add(&mut self, sent: StreamBytes) {
        let mut before = self.sent.iter_mut();
        match before.find(|before| before.stream == sent.stream) {
            Some(before) => {
                before.to = before.to.max(sent.to);
                before.fin |= sent.fin;
            }
            None => self.sent.push(sent),
        }
    }

    /// Send the batch from `address`, at which a PATH_CHALLENGE arrived to which it responds.
    pub(super) fn set_response_address(&mut self, address: LocalAddress) {
        self.response_address = Some(address);
    }

    /// Send the batch with the lowest rank, so that schedulers on the path do not drop the probe in favor of shorter
    /// responses.
    pub(super) fn set_probe(&mut self) {
        self.is_probe = true;
    }

    fn finish(&mut self) -> Option<BatchSummary> {
        let mut summary = self.meter.take()?.on_batch(&self.sent);
        self.sent.clear();
        if std::mem::take(&mut self.is_probe) {
            summary.remaining = Some(0);
        }
        summary.address = self.response_address.take().or(summary.address);
        Some(summary)
    }
}
