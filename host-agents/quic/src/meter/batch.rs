//! The batch of packets that is being made. noq makes its packets and hands them to the connection's sender in one go, on one thread; so they
//! are gathered there, the meter learns of them once, and the socket need not ask whose they are.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use super::Shared;
use crate::places::Place;

thread_local! {
    /// Without a destructor, so that no packet has to ask whether it has run. What it would free is gone with the batch.
    static BATCH: RefCell<ManuallyDrop<Batch>> = const {
        RefCell::new(ManuallyDrop::new(Batch { meter: None, sent: Vec::new(), answer: None }))
    };
}

/// Of one connection.
pub(super) struct Batch {
    meter: Option<Arc<Shared>>,
    sent: Vec<Sent>,
    /// Where a question came that it answers.
    answer: Option<Place>,
}

/// What a batch tells the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// What was left, before it, of the response that it carries, 0 if there is none at all; `None` if it carries no response while there are some.
    pub remaining: Option<u64>,
    /// From where it leaves, once that is known.
    pub place: Option<Place>,
}

/// Bytes of a stream in packets of a batch, up to `to`; `fin` if they are its last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) stream: u64,
    pub(super) to: u64,
    pub(super) fin: bool,
}

/// Lets `packet` add what a packet of this meter's connection carries.
pub(super) fn make(meter: &Arc<Shared>, packet: impl FnOnce(&mut Batch)) {
    BATCH.with_borrow_mut(|batch| {
        if !batch
            .meter
            .as_ref()
            .is_some_and(|here| Arc::ptr_eq(here, meter))
        {
            let _ = batch.send();
            batch.meter = Some(meter.clone());
        }
        packet(batch);
    });
}

/// Ends the batch: what is made after that is of another. `None` if no packet was made since the last one, as when that is sent again since the
/// socket did not take it.
pub fn send() -> Option<Told> {
    BATCH.with_borrow_mut(|batch| batch.send())
}

impl Batch {
    /// Most packets are of the stream of one before; there are few in a batch.
    #[inline]
    pub(super) fn add(&mut self, sent: Sent) {
        let mut before = self.sent.iter_mut();
        match before.find(|before| before.stream == sent.stream) {
            Some(before) => {
                before.to = before.to.max(sent.to);
                before.fin |= sent.fin;
            }
            None => self.sent.push(sent),
        }
    }

    /// It answers a question that came there.
    pub(super) fn answers(&mut self, place: Place) {
        self.answer = Some(place);
    }

    fn send(&mut self) -> Option<Told> {
        let mut told = self.meter.take()?.send(&self.sent);
        self.sent.clear();
        told.place = self.answer.take().or(told.place);
        Some(told)
    }
}
