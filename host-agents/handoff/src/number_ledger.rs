// SPDX-License-Identifier: Apache-2.0
//! One packet number space with several senders, for clients without multipath (QDSR, appendix A).
//!
//! Clients treat packet numbers some hundred below the highest one as duplicates (RFC 9000, section 13.2.3). The balancer
//! therefore allocates numbers in the order of the requests, a few at a time, and no sender keeps any for later. Its
//! [`NumberLedger`] records the owner of each number, and splits ACKs by owner. Each sender numbers its own packets
//! consecutively. Its [`NumberMap`] maps them to the numbers on the wire and back.

use std::collections::VecDeque;
use std::ops::Range;

/// Number of runs that are remembered. Older packets have been acknowledged or lost, so ACKs of them are ignored.
const MAX_RUNS: usize = 1 << 12;

/// Owners of packet numbers.
#[derive(Debug)]
pub struct NumberLedger<O> {
    next: u64,
    /// Ascending and contiguous; adjacent runs have different owners.
    runs: VecDeque<(Range<u64>, O)>,
}

/// ACK of a number that was not allocated (RFC 9000, section 13.1: PROTOCOL_VIOLATION).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsent(pub u64);

impl std::fmt::Display for Unsent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ACK of packet {}, which was never sent", self.0)
    }
}

impl std::error::Error for Unsent {}

impl<O: Copy + PartialEq> NumberLedger<O> {
    /// Create a ledger in which `owner` has all numbers below `next`.
    pub fn new(next: u64, owner: O) -> Self {
        Self {
            next,
            runs: VecDeque::from([(0..next, owner)]),
        }
    }

    /// Return the first number that was not allocated.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Allocate the next `count` numbers to `owner`.
    pub fn allocate(&mut self, owner: O, count: u64) -> Range<u64> {
        let allocated = self.next..self.next + count;
        if allocated.is_empty() {
            return allocated;
        }
        self.next = allocated.end;
        match self.runs.back_mut() {
            Some((run, last)) if *last == owner => run.end = allocated.end,
            _ => self.runs.push_back((allocated.clone(), owner)),
        }
        if self.runs.len() > MAX_RUNS {
            self.runs.pop_front();
        }
        allocated
    }

    /// Call `on_part` with each part of `ranges` that belongs to one owner, in descending order. `ranges` are disjoint and in
    /// descending order, as in an ACK frame. The last argument is true if only numbers of one other owner lie between this
    /// part and the owner's previous one.
    ///
    /// # Errors
    /// If a number was not allocated. `on_part` has not been called then.
    pub fn split(
        &self,
        ranges: &[Range<u64>],
        mut on_part: impl FnMut(O, Range<u64>, bool),
    ) -> Result<(), Unsent> {
        if let Some(first) = ranges.first().filter(|range| range.end > self.next) {
            return Err(Unsent(first.end - 1));
        }
        let mut above = self.runs.len();
        // Positions of the runs of the last two parts, if a part begins with its run.
        let mut begun = [None; 2];
        for range in ranges {
            above = start_below(&self.runs, above, range.end, |(run, _)| run.start);
            let parts = self.runs.range(..above).enumerate().rev();
            for (at, (run, owner)) in parts.take_while(|(_, (run, _))| run.end > range.start) {
                let part = run.start.max(range.start)..run.end.min(range.end);
                if part.is_empty() {
                    continue;
                }
                let is_next = begun.contains(&Some(at + 2)) && self.runs[at + 2].1 == *owner;
                let continues = is_next && part.end == run.end;
                begun = [(part.start == run.start).then_some(at), begun[0]];
                on_part(*owner, part, continues);
            }
        }
        Ok(())
    }
}

/// Map between a sender's own numbers and those on the wire. Both only increase.
#[derive(Debug, Default)]
pub struct NumberMap {
    /// First own number, first number on the wire, and length of each run.
    runs: VecDeque<(u64, u64, u64)>,
}

impl NumberMap {
    /// Create a map in which the numbers below `next` are the same.
    pub fn new(next: u64) -> Self {
        Self {
            runs: VecDeque::from([(0, 0, next)]),
        }
    }

    /// Record that packet `own` is sent with number `wire`. Each must exceed all earlier ones.
    pub fn insert(&mut self, own: u64, wire: u64) {
        if let Some((first, on_wire, count)) = self.runs.back_mut() {
            debug_assert!(own >= *first + *count && wire >= *on_wire + *count);
            if (*first + *count, *on_wire + *count) == (own, wire) {
                *count += 1;
                return;
            }
        }
        self.runs.push_back((own, wire, 1));
        if self.runs.len() > MAX_RUNS {
            self.runs.pop_front();
        }
    }

    /// Map the numbers of `wire` that the sender used to its own numbers: in descending order, adjacent ranges merged.
    pub fn own(&self, wire: &[Range<u64>]) -> Vec<Range<u64>> {
        let mut own: Vec<Range<u64>> = Vec::new();
        let mut above = self.runs.len();
        for range in wire {
            above = start_below(&self.runs, above, range.end, |(_, first, _)| *first);
            let runs = self.runs.range(..above).rev();
            for (own_first, first, count) in
                runs.take_while(|(_, first, n)| first + n > range.start)
            {
                let (from, to) = (range.start.max(*first), range.end.min(first + count));
                if from >= to {
                    continue;
                }
                let part = own_first + (from - first)..own_first + (to - first);
                match own.last_mut() {
                    Some(last) if last.start == part.end => last.start = part.start,
                    _ => own.push(part),
                }
            }
        }
        own
    }
}

/// Return how many of the first `above` runs begin below `end`. The search starts at the last of them, because the ranges of
/// an ACK are close to each other and to the newest numbers.
fn start_below<R>(runs: &VecDeque<R>, above: usize, end: u64, start: impl Fn(&R) -> u64) -> usize {
    let below = runs.range(..above).rev().position(|run| start(run) < end);
    below.map_or(0, |distance| above - distance)
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "ranges of numbers")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Return the numbers whose flag is set as disjoint ranges, in descending order.
    fn ranges(flags: &[bool]) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for (number, _) in flags.iter().enumerate().filter(|(_, flag)| **flag) {
            let number = number as u64;
            match ranges.last_mut() {
                Some(last) if last.end == number => last.end += 1,
                _ => ranges.push(number..number + 1),
            }
        }
        ranges.reverse();
        ranges
    }

    proptest! {
        /// Every acknowledged number reaches its owner once and maps back to the owner's packet.
        #[test]
        fn each_acked_number_maps_to_its_packet_once(
            begun in 0..20u64,
            allocations in prop::collection::vec((0..4usize, 1..9u64), 0..40),
            acked in prop::collection::vec(any::<bool>(), 400),
        ) {
            let mut ledger = NumberLedger::new(begun, 0);
            let mut maps: [NumberMap; 4] = Default::default();
            maps[0] = NumberMap::new(begun);
            let mut sent: [Vec<u64>; 4] = Default::default();
            sent[0].extend(0..begun);
            for (owner, count) in allocations {
                for number in ledger.allocate(owner, count) {
                    maps[owner].insert(sent[owner].len() as u64, number);
                    sent[owner].push(number);
                }
            }
            let all = sent.iter().map(|numbers| numbers.len()).sum::<usize>();
            let acked = ranges(&acked[..all]);
            let mut parts: [Vec<Range<u64>>; 4] = Default::default();
            let split = ledger.split(&acked, |owner, part, continues| match parts[owner].last_mut() {
                Some(previous) if continues => previous.start = part.start,
                _ => parts[owner].push(part),
            });
            prop_assert_eq!(split, Ok(()));
            let mut mapped = Vec::new();
            for ((map, sent), parts) in maps.iter().zip(&sent).zip(&parts) {
                let own = map.own(parts);
                prop_assert!(own.windows(2).all(|two| two[1].end < two[0].start));
                mapped.extend(own.into_iter().flatten().map(|own| sent[own as usize]));
            }
            mapped.sort_unstable();
            let mut expected: Vec<u64> = acked.into_iter().flatten().collect();
            expected.sort_unstable();
            prop_assert_eq!(mapped, expected);
        }
    }

    #[test]
    fn ack_of_unallocated_number_is_an_error() {
        let mut ledger = NumberLedger::new(3, 'b');
        ledger.allocate('s', 4);
        let mut parts = Vec::new();
        assert_eq!(
            ledger.split(&[5..8, 0..1], |owner, part, _| parts.push((owner, part))),
            Err(Unsent(7))
        );
        assert!(parts.is_empty());
        let split = ledger.split(&[1..7], |owner, part, _| parts.push((owner, part)));
        assert_eq!((split, parts), (Ok(()), vec![('s', 3..7), ('b', 1..3)]));
    }

    #[test]
    fn part_continues_the_previous_one_across_numbers_of_another_owner() {
        let mut ledger = NumberLedger::new(2, 'b');
        for (owner, count) in [('s', 3), ('b', 1), ('s', 3), ('b', 1), ('s', 3)] {
            ledger.allocate(owner, count);
        }
        let mut parts = Vec::new();
        let acked = [11..13, 6..9, 2..4];
        ledger
            .split(&acked, |_, part, continues| parts.push((part, continues)))
            .unwrap();
        // Number 4 is missing.
        assert_eq!(parts, [(11..13, false), (6..9, false), (2..4, false)]);
        parts.clear();
        let acked = [10..13, 6..9, 3..5];
        ledger
            .split(&acked, |_, part, continues| parts.push((part, continues)))
            .unwrap();
        assert_eq!(parts, [(10..13, false), (6..9, true), (3..5, true)]);
    }

    #[test]
    fn empty_allocation_does_not_evict_a_run() {
        let mut ledger = NumberLedger::new(3, 'b');
        for owner in ['s', 't'].repeat(MAX_RUNS) {
            assert_eq!(ledger.allocate(owner, 0), 3..3);
        }
        let mut parts = Vec::new();
        let split = ledger.split(&[1..3], |owner, part, _| parts.push((owner, part)));
        assert_eq!((split, parts), (Ok(()), vec![('b', 1..3)]));
    }

    #[test]
    fn oldest_runs_are_forgotten() {
        let (mut ledger, mut map) = (NumberLedger::new(0, 0), NumberMap::default());
        for number in 0..2 * MAX_RUNS as u64 {
            ledger.allocate(number % 2, 1);
            map.insert(number, 2 * number);
        }
        let mut count = 0;
        ledger
            .split(&[0..2 * MAX_RUNS as u64], |_, part, _| {
                count += part.count()
            })
            .unwrap();
        assert_eq!((count, ledger.runs.len()), (MAX_RUNS, MAX_RUNS));
        assert_eq!(map.own(&[0..10]), []);
        let last = 2 * MAX_RUNS as u64 - 1;
        assert_eq!(map.own(&[2 * last..2 * last + 1]), [last..last + 1]);
    }
}
