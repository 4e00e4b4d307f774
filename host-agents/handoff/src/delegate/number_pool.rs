// SPDX-License-Identifier: Apache-2.0
//! Packet numbers that several senders share (QDSR, appendix A). A number is requested when noq's packet is ready, and used as
//! soon as it arrives. If it were kept for later, the client could treat it as a duplicate.
//!
//! The request takes a round trip to the balancer. Packets wait for it here while noq produces the next ones, as many as
//! congestion control permits. The round trip to the client grows, but as much data can be in flight.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use frontage_quic::session::Observer;
use noq::udp::EcnCodepoint;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::Error;
use crate::number_ledger::NumberMap;

/// Packet numbers of one delegated connection, and the packets that wait for them.
pub struct NumberPool {
    /// Observer of the packets that the numbers are for.
    pub observer: Arc<dyn Observer>,
    state: Mutex<State>,
    needed: Notify,
    ready: Notify,
}

/// A packet of noq that has no number yet.
#[derive(Debug, PartialEq, Eq)]
pub struct UnnumberedPacket {
    /// The packet as the sealer prepared it.
    pub octets: Box<[u8]>,
    /// ECN codepoint.
    pub ecn: Option<EcnCodepoint>,
}

#[derive(Default)]
struct State {
    packets: VecDeque<UnnumberedPacket>,
    numbers: VecDeque<Range<u64>>,
    /// Number of unused numbers.
    count: u64,
    /// One past the largest number so far.
    next: u64,
    /// Number of numbers to request.
    needed: u64,
    /// Size of each open request.
    requested: VecDeque<u64>,
    is_closed: bool,
    map: NumberMap,
}

impl NumberPool {
    /// Create a pool of numbers that are not below `next`.
    pub fn new(next: u64, observer: Arc<dyn Observer>) -> Self {
        let state = State {
            next,
            ..State::default()
        };
        Self {
            observer,
            state: Mutex::new(state),
            needed: Notify::new(),
            ready: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn need(&self, state: &mut State, count: u64) {
        if count > 0 {
            state.needed += count;
            self.needed.notify_one();
        }
    }

    /// Queue packets, unless the grant has ended.
    pub fn push(&self, packets: impl Iterator<Item = UnnumberedPacket>) {
        let state = &mut *self.state();
        if !state.is_closed {
            let before = state.packets.len();
            state.packets.extend(packets);
            let count = (state.packets.len() - before) as u64;
            self.need(state, count);
        }
    }

    /// Wait until there is a packet and a number for it. Returns false once the grant has ended.
    pub async fn ready(&self) -> bool {
        loop {
            let ready = self.ready.notified();
            {
                let state = self.state();
                if state.is_closed {
                    return false;
                }
                if state.count > 0 && !state.packets.is_empty() {
                    return true;
                }
            }
            ready.await;
        }
    }

    /// Return the next packet, if there is a number for it and it `fits`.
    pub fn pop(&self, fits: impl FnOnce(&UnnumberedPacket) -> bool) -> Option<UnnumberedPacket> {
        let state = &mut *self.state();
        let is_next = state.count > 0 && state.packets.front().is_some_and(fits);
        is_next.then(|| state.packets.pop_front()).flatten()
    }

    /// Assign the next number to noq's packet `own`.
    pub fn take(&self, own: u64) -> Option<u64> {
        let state = &mut *self.state();
        let range = state.numbers.front_mut()?;
        let number = range.next()?;
        if range.is_empty() {
            state.numbers.pop_front();
        }
        state.count -= 1;
        state.map.insert(own, number);
        Some(number)
    }

    /// Wait until numbers are needed. Returns how many, which the caller must request from the balancer.
    pub async fn needed(&self) -> u64 {
        loop {
            self.needed.notified().await;
            let state = &mut *self.state();
            let needed = std::mem::take(&mut state.needed);
            if needed > 0 {
                state.requested.push_back(needed);
                return needed;
            }
        }
    }

    /// Add the numbers that answer the oldest open request. Numbers that are missing are needed again.
    pub fn add(&self, numbers: Range<u64>) -> Result<(), Error> {
        let state = &mut *self.state();
        if numbers.start < state.next {
            return Err(Error::Number(numbers.start));
        }
        state.next = numbers.end.max(state.next);
        let count = numbers.end.saturating_sub(numbers.start);
        let requested = state.requested.pop_front().unwrap_or(0);
        self.need(state, requested.saturating_sub(count));
        if count > 0 {
            state.count += count;
            state.numbers.push_back(numbers);
        }
        self.ready.notify_one();
        Ok(())
    }

    /// Discard unused numbers. The packets need others.
    pub fn discard_numbers(&self) {
        let state = &mut *self.state();
        state.numbers.clear();
        let count = std::mem::take(&mut state.count);
        self.need(state, count);
    }

    /// End the grant, and discard all packets.
    pub fn close(&self) {
        let state = &mut *self.state();
        state.is_closed = true;
        state.packets.clear();
        self.ready.notify_one();
    }

    /// Map ranges of numbers on the wire to noq's own numbers, in descending order.
    pub fn own(&self, wire: &[Range<u64>]) -> Vec<Range<u64>> {
        self.state().map.own(wire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(count: usize) -> impl Iterator<Item = UnnumberedPacket> {
        (0..count).map(|n| UnnumberedPacket {
            octets: [n as u8].into(),
            ecn: None,
        })
    }

    #[tokio::test]
    async fn missing_numbers_are_requested_once() {
        let pool = NumberPool::new(10, Arc::new(()));
        pool.push(packets(3));
        assert_eq!(pool.needed().await, 3);
        pool.push(packets(2));
        assert_eq!(pool.needed().await, 2);
        assert_eq!(pool.add(9..12), Err(Error::Number(9)));
        assert_eq!(pool.pop(|_| true), None);
        // The answers to the requests for three and for two numbers.
        pool.add(20..22).unwrap();
        pool.add(30..32).unwrap();
        assert!(pool.ready().await);
        assert_eq!(pool.needed().await, 1);
        assert_eq!(pool.pop(|_| false), None);
        for (own, (octet, number)) in [(0, 20), (1, 21), (2, 30), (0, 31)].into_iter().enumerate() {
            let popped = pool.pop(|_| true).expect("it has a number");
            assert_eq!((*popped.octets)[0], octet);
            assert_eq!(pool.take(own as u64), Some(number));
        }
        assert_eq!((pool.pop(|_| true), pool.take(4)), (None, None));
        assert_eq!(pool.own(&[31..40, 20..21]), [3..4, 0..1]);
        pool.add(40..41).unwrap();
        assert_eq!(pool.add(40..42), Err(Error::Number(40)));
        pool.discard_numbers();
        assert_eq!((pool.pop(|_| true), pool.needed().await), (None, 1));
        pool.close();
        pool.push(packets(1));
        pool.add(50..52).unwrap();
        assert!(!pool.ready().await && pool.pop(|_| true).is_none());
    }
}
