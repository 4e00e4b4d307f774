//! The batch of packets that is being made. noq makes its packets and hands them to the connection's sender in one go, on one thread; so they
//! are gathered there, the meter learns of them once, and the socket need not ask whose they are.

use std::cell::RefCell;
use std::sync::Arc;

use super::Shared;

thread_local! {
    static BATCH: RefCell<Batch> = const { RefCell::new(Batch { meter: None, sent: Vec::new() }) };
}

/// Of one connection.
struct Batch {
    meter: Option<Arc<Shared>>,
    sent: Vec<Sent>,
}

/// Bytes `from..to` of a stream in a packet; `fin` if they are its last.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub packet: u64,
    pub stream: u64,
    pub from: u64,
    pub to: u64,
    pub fin: bool,
}

/// Lets `packet` add what a packet of this meter's connection carries.
pub(super) fn make(meter: &Arc<Shared>, packet: impl FnOnce(&mut Vec<Sent>)) {
    BATCH.with_borrow_mut(|batch| {
        if !batch
            .meter
            .as_ref()
            .is_some_and(|here| Arc::ptr_eq(here, meter))
        {
            let _ = batch.send();
            batch.meter = Some(meter.clone());
        }
        packet(&mut batch.sent);
    });
}

/// Ends the batch: what is made after that is of another. What is left of the response that it carries, 0 if there is none at all; `None` if it
/// carries none of those that there are, or if no packet was made since the last one, as when that is sent again since the socket did not take it.
pub fn send() -> Option<u64> {
    BATCH.with_borrow_mut(Batch::send)
}

impl Batch {
    fn send(&mut self) -> Option<u64> {
        let remaining = self.meter.take()?.sent(&self.sent);
        self.sent.clear();
        remaining
    }
}
