//! One packet-number space with several senders (QDSR, appendix A): for clients without multipath.
//!
//! A client forgets which numbers it has seen once they are some hundred below the highest (RFC 9000, section 13.2.3), and takes what comes then for
//! sent again. So the balancer hands numbers out in the order in which they are wanted, a few at a time, and nobody keeps any for later. Its
//! [`Ledger`] knows whose each is, and with that what an acknowledgement says to whom. Each sender numbers its packets in a row for itself; its [`Table`]
//! leads from there to the numbers on the wire and back.

use std::collections::VecDeque;
use std::ops::Range;

/// Runs of numbers that are remembered. What was sent before is acknowledged or lost by then, and an acknowledgement of it is news to nobody.
const RUNS: usize = 1 << 12;

/// Whose the numbers are.
#[derive(Debug)]
pub struct Ledger<O> {
    next: u64,
    /// In order, without holes, neighbours of different owners.
    runs: VecDeque<(Range<u64>, O)>,
}

/// An acknowledgement of a number that nobody was given (RFC 9000, section 13.1: PROTOCOL_VIOLATION).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsent(pub u64);

impl std::fmt::Display for Unsent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "packet {} is acknowledged, which nobody sent", self.0)
    }
}

impl std::error::Error for Unsent {}

impl<O: Copy + PartialEq> Ledger<O> {
    /// All numbers below `next` are `owner`'s.
    pub fn new(next: u64, owner: O) -> Self {
        Self {
            next,
            runs: VecDeque::from([(0..next, owner)]),
        }
    }

    /// The first that nobody was given.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The next `count` numbers, from now on `owner`'s.
    pub fn take(&mut self, owner: O, count: u64) -> Range<u64> {
        let given = self.next..self.next + count;
        if given.is_empty() {
            return given;
        }
        self.next = given.end;
        match self.runs.back_mut() {
            Some((run, last)) if *last == owner => run.end = given.end,
            _ => self.runs.push_back((given.clone(), owner)),
        }
        if self.runs.len() > RUNS {
            self.runs.pop_front();
        }
        given
    }

    /// What an acknowledgement of `ranges` says to each owner: `say` is called with each part of them that is one owner's, the highest first.
    /// It is not called at all if there is an error. `ranges` are disjoint, the highest first, as in a frame.
    pub fn split(
        &self,
        ranges: &[Range<u64>],
        mut say: impl FnMut(O, Range<u64>),
    ) -> Result<(), Unsent> {
        if let Some(first) = ranges.first().filter(|range| range.end > self.next) {
            return Err(Unsent(first.end - 1));
        }
        for range in ranges {
            let above = self.runs.partition_point(|(run, _)| run.start < range.end);
            let parts = self.runs.range(..above).rev();
            for (run, owner) in parts.take_while(|(run, _)| run.end > range.start) {
                let part = run.start.max(range.start)..run.end.min(range.end);
                if !part.is_empty() {
                    say(*owner, part);
                }
            }
        }
        Ok(())
    }
}

/// From a sender's own numbers to those on the wire, and back. Both only grow.
#[derive(Debug, Default)]
pub struct Table {
    /// Own number, number on the wire, how many in a row.
    runs: VecDeque<(u64, u64, u64)>,
}

impl Table {
    /// Its numbers below `next` are those on the wire.
    pub fn new(next: u64) -> Self {
        Self {
            runs: VecDeque::from([(0, 0, next)]),
        }
    }

    /// The packet that is `own` to its sender leaves as `wire`: each above all before.
    pub fn sent(&mut self, own: u64, wire: u64) {
        if let Some((first, on_wire, count)) = self.runs.back_mut() {
            debug_assert!(own >= *first + *count && wire >= *on_wire + *count);
            if (*first + *count, *on_wire + *count) == (own, wire) {
                *count += 1;
                return;
            }
        }
        self.runs.push_back((own, wire, 1));
        if self.runs.len() > RUNS {
            self.runs.pop_front();
        }
    }

    /// The sender's own numbers of those of `wire` that it sent, the highest first, in as few ranges as can be.
    pub fn own(&self, wire: &[Range<u64>]) -> Vec<Range<u64>> {
        let mut own: Vec<Range<u64>> = Vec::new();
        for range in wire {
            let above = self
                .runs
                .partition_point(|(_, first, _)| *first < range.end);
            let runs = self.runs.range(..above).rev();
            for (mine, first, count) in runs.take_while(|(_, first, n)| first + n > range.start) {
                let (from, to) = (range.start.max(*first), range.end.min(first + count));
                if from >= to {
                    continue;
                }
                let part = mine + (from - first)..mine + (to - first);
                match own.last_mut() {
                    Some(last) if last.start == part.end => last.start = part.start,
                    _ => own.push(part),
                }
            }
        }
        own
    }
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "ranges of numbers")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Disjoint ranges, the highest first, of `flags`: which numbers they hold.
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
        /// Every acknowledged number is told to its owner, once, and leads back to the packet that it was sent as.
        #[test]
        fn nothing_is_lost_and_nothing_twice(
            begun in 0..20u64,
            taken in prop::collection::vec((0..4usize, 1..9u64), 0..40),
            acked in prop::collection::vec(any::<bool>(), 400),
        ) {
            let mut ledger = Ledger::new(begun, 0);
            let mut tables: [Table; 4] = Default::default();
            tables[0] = Table::new(begun);
            let mut sent: [Vec<u64>; 4] = Default::default();
            sent[0].extend(0..begun);
            for (owner, count) in taken {
                for number in ledger.take(owner, count) {
                    tables[owner].sent(sent[owner].len() as u64, number);
                    sent[owner].push(number);
                }
            }
            let all = sent.iter().map(|numbers| numbers.len()).sum::<usize>();
            let acked = ranges(&acked[..all]);
            let mut told: [Vec<Range<u64>>; 4] = Default::default();
            prop_assert_eq!(ledger.split(&acked, |owner, part| told[owner].push(part)), Ok(()));
            let mut heard = Vec::new();
            for ((table, sent), told) in tables.iter().zip(&sent).zip(&told) {
                let own = table.own(told);
                prop_assert!(own.windows(2).all(|two| two[1].end < two[0].start));
                heard.extend(own.into_iter().flatten().map(|own| sent[own as usize]));
            }
            heard.sort_unstable();
            let mut expected: Vec<u64> = acked.into_iter().flatten().collect();
            expected.sort_unstable();
            prop_assert_eq!(heard, expected);
        }
    }

    #[test]
    fn what_nobody_sent_is_a_lie() {
        let mut ledger = Ledger::new(3, 'b');
        ledger.take('s', 4);
        let mut said = Vec::new();
        assert_eq!(
            ledger.split(&[5..8, 0..1], |owner, part| said.push((owner, part))),
            Err(Unsent(7))
        );
        assert!(said.is_empty());
        let split = ledger.split(&[1..7], |owner, part| said.push((owner, part)));
        assert_eq!((split, said), (Ok(()), vec![('s', 3..7), ('b', 1..3)]));
    }

    #[test]
    fn who_wants_none_pushes_nobody_out() {
        let mut ledger = Ledger::new(3, 'b');
        for owner in ['s', 't'].repeat(RUNS) {
            assert_eq!(ledger.take(owner, 0), 3..3);
        }
        let mut said = Vec::new();
        let split = ledger.split(&[1..3], |owner, part| said.push((owner, part)));
        assert_eq!((split, said), (Ok(()), vec![('b', 1..3)]));
    }

    #[test]
    fn what_was_long_ago_is_news_to_nobody() {
        let (mut ledger, mut table) = (Ledger::new(0, 0), Table::default());
        for number in 0..2 * RUNS as u64 {
            ledger.take(number % 2, 1);
            table.sent(number, 2 * number);
        }
        let mut told = 0;
        ledger
            .split(&[0..2 * RUNS as u64], |_, part| told += part.count())
            .unwrap();
        assert_eq!((told, ledger.runs.len()), (RUNS, RUNS));
        assert_eq!(table.own(&[0..10]), []);
        let last = 2 * RUNS as u64 - 1;
        assert_eq!(table.own(&[2 * last..2 * last + 1]), [last..last + 1]);
    }
}
