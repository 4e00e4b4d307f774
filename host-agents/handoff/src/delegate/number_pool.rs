// SPDX-License-Identifier: Apache-2.0
//! Packet numbers that several senders share (QDSR, appendix A). The balancer allocates some ahead, for the first packets of
//! a response. The others are requested.
//!
//! A request takes a round trip to the balancer. It therefore includes numbers for the packets that noq will produce in the
//! meantime, as many as during the previous request. The balancer allocates those only if no other sender is active.
//! Otherwise they could become so low that the client treats them as duplicates.
//! Packets without a number wait here while noq produces the next ones, as many as congestion control permits.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use frontage_quic::session::Observer;
use noq::udp::EcnCodepoint;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::Error;
use crate::number_ledger::NumberMap;

/// Minimum number of numbers to request ahead: twice the packets of an initial congestion window (RFC 9002, section 7.2).
const MIN_AHEAD: u64 = 20;
/// Maximum number of numbers to request ahead.
const MAX_AHEAD: u64 = 1 << 13;

/// Numbers to request from the balancer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NumberRequest {
    /// Numbers for packets that wait.
    pub count: u64,
    /// Numbers for later packets.
    pub ahead: u64,
}

/// A request that the balancer has not answered.
#[derive(Clone, Copy, Debug)]
struct OpenRequest {
    numbers: NumberRequest,
    /// Number of packets that noq had produced before those that led to the request.
    produced: u64,
}

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
    /// Numbers to request.
    needed: Option<OpenRequest>,
    /// Open requests, the oldest first.
    requested: VecDeque<OpenRequest>,
    /// Number of packets that noq has produced so far.
    produced: u64,
    /// Number of packets that noq produces while a request is open.
    demand: u64,
    is_closed: bool,
    map: NumberMap,
}

impl State {
    /// Check that all of `numbers` are above earlier ones.
    fn advance(&mut self, numbers: &Range<u64>) -> Result<(), Error> {
        if numbers.start < self.next || numbers.end < numbers.start {
            return Err(Error::Number(numbers.start));
        }
        self.next = numbers.end;
        Ok(())
    }

    /// Return how many numbers are requested, including those that are about to be.
    fn requested(&self) -> NumberRequest {
        let open = self.requested.iter().chain(&self.needed);
        open.fold(NumberRequest::default(), |sum, open| NumberRequest {
            count: sum.count + open.numbers.count,
            ahead: sum.ahead + open.numbers.ahead,
        })
    }

    /// Return how many numbers to request for later packets if `spare` of those that were allocated or requested are for
    /// such packets.
    fn missing_ahead(&self, spare: u64) -> u64 {
        if spare > 2 * self.demand {
            return 0;
        }
        let enough = (3 * self.demand).clamp(MIN_AHEAD, MAX_AHEAD);
        enough.saturating_sub(spare)
    }

    /// Measure the demand when the balancer has answered `request`.
    fn on_answer(&mut self, request: OpenRequest) {
        let produced = self.produced - request.produced;
        self.demand = produced.max(3 * self.demand / 4);
    }

    fn append(&mut self, numbers: Range<u64>) {
        if !numbers.is_empty() {
            self.count += numbers.end - numbers.start;
            self.numbers.push_back(numbers);
        }
    }

    fn discard_below(&mut self, below: u64) {
        self.numbers.retain_mut(|range| {
            range.start = range.start.max(below);
            !range.is_empty()
        });
        self.count = self
            .numbers
            .iter()
            .map(|range| range.end - range.start)
            .sum();
    }
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

    /// Request numbers for the packets that neither have one nor wait for an answer. If noq has just produced packets, after
    /// `produced` earlier ones, also request numbers for those that will follow.
    fn request_missing(&self, state: &mut State, produced: Option<u64>) {
        let requested = state.requested();
        let waiting = state.packets.len() as u64;
        let covered = state.count + requested.count;
        let count = waiting.saturating_sub(covered);
        let spare = covered + count + requested.ahead - waiting;
        let ahead = produced.map_or(0, |_| state.missing_ahead(spare));
        if count + ahead > 0 {
            let needed = state.needed.get_or_insert(OpenRequest {
                numbers: NumberRequest::default(),
                produced: produced.unwrap_or(state.produced),
            });
            needed.numbers.count += count;
            needed.numbers.ahead += ahead;
            self.needed.notify_one();
        }
    }

    /// Queue packets, unless the grant has ended.
    pub fn push(&self, packets: impl Iterator<Item = UnnumberedPacket>) {
        let state = &mut *self.state();
        if !state.is_closed {
            let (produced, waiting) = (state.produced, state.packets.len());
            state.packets.extend(packets);
            state.produced += (state.packets.len() - waiting) as u64;
            self.request_missing(state, Some(produced));
            self.ready.notify_one();
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
    pub async fn needed(&self) -> NumberRequest {
        loop {
            self.needed.notified().await;
            let state = &mut *self.state();
            if let Some(needed) = state.needed.take() {
                state.requested.push_back(needed);
                return needed.numbers;
            }
        }
    }

    /// Add the numbers that answer the oldest open request, in ascending ranges. Numbers that are missing for packets that
    /// wait are needed again.
    pub fn add(&self, numbers: &[Range<u64>]) -> Result<(), Error> {
        let state = &mut *self.state();
        if let Some(request) = state.requested.pop_front() {
            state.on_answer(request);
        }
        for range in numbers {
            state.advance(range)?;
            state.append(range.clone());
        }
        self.request_missing(state, None);
        self.ready.notify_one();
        Ok(())
    }

    /// Add numbers ahead of the packets that will use them. They replace unused ones.
    pub fn add_ahead(&self, numbers: Range<u64>) -> Result<(), Error> {
        let state = &mut *self.state();
        state.advance(&numbers)?;
        state.discard_below(numbers.start);
        state.append(numbers);
        self.request_missing(state, None);
        self.ready.notify_one();
        Ok(())
    }

    /// Discard unused numbers below `below`. The packets need others.
    pub fn discard_numbers_below(&self, below: u64) {
        let state = &mut *self.state();
        state.discard_below(below);
        self.request_missing(state, None);
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
mod tests;
