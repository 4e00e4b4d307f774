// SPDX-License-Identifier: Apache-2.0
//! Packet numbers that real servers have and may not have used yet.
//!
//! A real server gets some together with a request, so that the first packets of a response need no round trip to the balancer.
//! It may use numbers late, because its response takes time, or not at all. A client treats numbers far below the
//! largest one as duplicates. A real server therefore gets few numbers with a request, and none while many packets are in
//! flight. All numbers expire when other senders have used [`MAX_DISTANCE`] higher ones.
//!
//! Chromium ignores packets with lower numbers than the largest one that it has acknowledged, once the server has acknowledged that
//! ACK. Numbers therefore also expire as soon as the client acknowledges higher ones of other senders.

use std::ops::Range;

/// Number of numbers that a real server gets with a request: the packets of its initial congestion window (RFC 9002, section
/// 7.2).
const COUNT: u64 = 10;

/// Distance to the highest number at which numbers expire: half of a client's duplicate window. The other half is for packets
/// under way.
const MAX_DISTANCE: u64 = 64;

/// Numbers of one delegation.
#[derive(Debug)]
struct Allotment {
    id: u32,
    numbers: Range<u64>,
    /// One past the largest number of the delegation that the client has acknowledged.
    acknowledged: u64,
}

impl Allotment {
    /// Return how many numbers the real server still has, as far as the acknowledgments show.
    fn left(&self) -> u64 {
        let used = self.acknowledged.max(self.numbers.start);
        self.numbers.end.saturating_sub(used)
    }
}

/// Numbers that real servers have ahead.
#[derive(Debug, Default)]
pub(super) struct AheadNumbers {
    list: Vec<Allotment>,
    /// Delegations, and the number below which all of theirs have expired.
    expired: Vec<(u32, u64)>,
    /// One past the largest number of any sender that the client has acknowledged.
    acknowledged: u64,
}

impl AheadNumbers {
    /// Return one past the largest number that the client has acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Return how many numbers delegation `id` may get now, if `next` is the first number that was not allocated.
    pub(super) fn available(&self, id: u32, next: u64) -> u64 {
        let known = self.list.iter().find(|allotment| allotment.id == id);
        let left = known.map_or(0, Allotment::left);
        let in_flight = next.saturating_sub(self.acknowledged);
        match left < COUNT / 2 && in_flight + COUNT <= MAX_DISTANCE {
            true => COUNT,
            false => 0,
        }
    }

    /// Record that delegation `id` got `numbers`, instead of those that it has not used.
    pub(super) fn insert(&mut self, id: u32, numbers: Range<u64>) {
        self.list.retain(|allotment| allotment.id != id);
        self.list.push(Allotment {
            id,
            acknowledged: numbers.start,
            numbers,
        });
    }

    /// Record that delegation `id` got `numbers`, which are above all earlier ones, for packets that it has or expects.
    pub(super) fn extend(&mut self, id: u32, numbers: Range<u64>) {
        match self.list.iter_mut().find(|allotment| allotment.id == id) {
            Some(allotment) => allotment.numbers.end = numbers.end,
            None => self.insert(id, numbers),
        }
    }

    /// Handle an ACK up to `largest`, with these parts of delegations.
    pub(super) fn on_ack(&mut self, largest: u64, delegated: &[(u32, Range<u64>)]) {
        self.acknowledged = self.acknowledged.max(largest + 1);
        for allotment in &mut self.list {
            let own = delegated.iter().filter(|(id, _)| *id == allotment.id);
            let largest = own.map(|(_, part)| part.end).max().unwrap_or(0);
            allotment.acknowledged = allotment.acknowledged.max(largest);
            let lowest = allotment.acknowledged.max(allotment.numbers.start);
            if lowest < self.acknowledged {
                allotment.numbers.start = self.acknowledged;
                self.expired.push((allotment.id, self.acknowledged));
            }
        }
        self.list
            .retain(|allotment| allotment.numbers.start < allotment.numbers.end);
    }

    /// Let the numbers of delegation `id` expire that are too far below `next`, the number that the next sender gets.
    pub(super) fn expire(&mut self, id: u32, next: u64) {
        let below = next.saturating_sub(MAX_DISTANCE / 2);
        let mut own = self.list.iter_mut().filter(|allotment| allotment.id == id);
        if let Some(allotment) = own
            .next()
            .filter(|allotment| allotment.acknowledged < below)
        {
            allotment.numbers.start = allotment.numbers.start.max(below);
            self.expired.push((id, below));
        }
    }

    /// Remove numbers that have expired, if `next` is the first number that was not allocated. Returns their delegation and
    /// one past the largest of them.
    pub(super) fn take_expired(&mut self, next: u64) -> Option<(u32, u64)> {
        if let Some(expired) = self.expired.pop() {
            return Some(expired);
        }
        let has_expired = |allotment: &Allotment| next >= allotment.numbers.end + MAX_DISTANCE;
        let at = self.list.iter().position(has_expired)?;
        let allotment = self.list.swap_remove(at);
        Some((allotment.id, allotment.numbers.end))
    }

    /// Handle a key update: real servers discard their numbers when they get the new keys.
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.expired.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_server_gets_more_once_it_has_used_most() {
        let mut ahead = AheadNumbers::default();
        assert_eq!(ahead.available(1, 5), COUNT);
        ahead.insert(1, 5..15);
        assert_eq!((ahead.available(1, 15), ahead.available(2, 15)), (0, COUNT));
        ahead.on_ack(9, &[(1, 5..10), (2, 3..4)]);
        assert_eq!(ahead.available(1, 15), 0);
        ahead.on_ack(10, &[(1, 10..11)]);
        assert_eq!(ahead.available(1, 15), COUNT);
    }

    #[test]
    fn no_numbers_while_many_packets_are_in_flight() {
        let mut ahead = AheadNumbers::default();
        let limit = MAX_DISTANCE - COUNT;
        assert_eq!(
            (ahead.available(1, limit), ahead.available(1, limit + 1)),
            (COUNT, 0)
        );
        ahead.on_ack(99, &[]);
        let limit = 100 + limit;
        assert_eq!(
            (ahead.available(1, limit), ahead.available(1, limit + 1)),
            (COUNT, 0)
        );
    }

    #[test]
    fn numbers_far_below_the_next_one_expire_early() {
        let mut ahead = AheadNumbers::default();
        ahead.extend(1, 5..15);
        ahead.extend(1, 40..500);
        ahead.on_ack(99, &[(1, 5..100)]);
        ahead.expire(2, 500);
        assert_eq!(ahead.take_expired(500), None);
        ahead.expire(1, 500);
        assert_eq!(ahead.take_expired(500), Some((1, 500 - MAX_DISTANCE / 2)));
        assert_eq!(ahead.take_expired(500), None);
        // All that are left may have been used.
        ahead.on_ack(470, &[(1, 460..471)]);
        ahead.expire(1, 500);
        assert_eq!(ahead.take_expired(500), None);
        assert_eq!(ahead.take_expired(500 + MAX_DISTANCE), Some((1, 500)));
    }

    #[test]
    fn unused_numbers_below_an_acknowledged_one_expire() {
        let mut ahead = AheadNumbers::default();
        ahead.insert(1, 5..15);
        ahead.on_ack(4, &[]);
        ahead.on_ack(8, &[(1, 5..9)]);
        assert_eq!(ahead.take_expired(15), None);
        // Another sender's packet arrived before those with numbers 9 to 11.
        ahead.on_ack(12, &[]);
        assert_eq!(ahead.take_expired(15), Some((1, 13)));
        ahead.on_ack(13, &[(1, 13..14)]);
        assert_eq!(ahead.take_expired(15), None);
        ahead.on_ack(20, &[]);
        assert_eq!(ahead.take_expired(21), Some((1, 21)));
        assert_eq!(ahead.take_expired(1000), None);
        assert_eq!(ahead.available(1, 21), COUNT);
    }

    #[test]
    fn numbers_expire_once_when_others_are_far_ahead() {
        let mut ahead = AheadNumbers::default();
        ahead.insert(1, 5..15);
        ahead.insert(2, 20..30);
        assert_eq!(ahead.take_expired(14 + MAX_DISTANCE), None);
        assert_eq!(ahead.take_expired(15 + MAX_DISTANCE), Some((1, 15)));
        assert_eq!(ahead.take_expired(15 + MAX_DISTANCE), None);
        ahead.clear();
        assert_eq!(ahead.take_expired(1000), None);
    }
}
