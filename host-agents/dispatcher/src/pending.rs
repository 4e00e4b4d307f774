// SPDX-License-Identifier: Apache-2.0
//! Unfinished first flights: their packets are held until the service is known.
//!
//! The memory is fixed, and the oldest flight is evicted when it is full. A flood of unfinished flights can therefore only evict
//! other unfinished flights.

use foldhash::{HashMap, HashMapExt as _};
use frontage_first_flight::Crypto;

/// Marks the absence of a slot.
const NONE: u32 = u32::MAX;

/// The held packets of one flight, with their tunnel headers.
#[derive(Clone, Debug)]
struct HeldPackets {
    bytes: [u8; Self::MAX_BYTES],
    ends: [u16; Self::MAX_PACKETS],
    count: u8,
}

impl HeldPackets {
    /// Maximum number of bytes: six packets of the usual size. RFC 9002, section 7.2, allows ten packets before the first answer,
    /// but those of the ClientHello come first.
    const MAX_BYTES: usize = 8192;
    /// Maximum number of packets.
    const MAX_PACKETS: usize = 8;

    const fn used(&self) -> usize {
        match self.count {
            0 => 0,
            n => self.ends[n as usize - 1] as usize,
        }
    }

    /// Adds a packet; returns false if a limit is reached.
    fn push(&mut self, packet: &[u8]) -> bool {
        let start = self.used();
        let end = start + packet.len();
        if end > Self::MAX_BYTES || usize::from(self.count) == Self::MAX_PACKETS {
            return false;
        }
        self.bytes[start..end].copy_from_slice(packet);
        self.ends[usize::from(self.count)] = end as u16;
        self.count += 1;
        true
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends[..self.count.into()].iter().map(move |end| {
            let packet = &self.bytes[start..usize::from(*end)];
            start = usize::from(*end);
            packet
        })
    }
}

#[derive(Clone, Debug)]
struct PendingFlight {
    key: u64,
    crypto: Crypto,
    held: HeldPackets,
    /// Slots of the next older and the next younger flight.
    older: u32,
    younger: u32,
}

/// The unfinished flights of a worker.
#[derive(Debug)]
pub struct PendingFlights {
    slots: Vec<PendingFlight>,
    free: Vec<u32>,
    by_key: HashMap<u64, u32>,
    oldest: u32,
    youngest: u32,
}

impl PendingFlights {
    /// Allocates memory for `capacity` flights.
    pub fn new(capacity: usize) -> Self {
        let flight = PendingFlight {
            key: 0,
            crypto: Crypto::default(),
            held: HeldPackets {
                bytes: [0; HeldPackets::MAX_BYTES],
                ends: [0; HeldPackets::MAX_PACKETS],
                count: 0,
            },
            older: NONE,
            younger: NONE,
        };
        Self {
            slots: vec![flight; capacity],
            free: (0..capacity as u32).rev().collect(),
            // Twice the capacity, so that the map can rehash in place and never allocates.
            by_key: HashMap::with_capacity(2 * capacity),
            oldest: NONE,
            youngest: NONE,
        }
    }

    /// Returns the number of flights.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Returns true if there are no flights.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Returns the CRYPTO stream of a flight.
    #[inline]
    pub fn crypto(&mut self, key: u64) -> Option<&mut Crypto> {
        let slot = *self.by_key.get(&key)?;
        Some(&mut self.slots[slot as usize].crypto)
    }

    /// Adds a flight with the received part of its CRYPTO stream; returns true if another flight was evicted.
    pub fn insert(&mut self, key: u64, crypto: &Crypto) -> bool {
        let is_full = self.free.is_empty();
        if is_full {
            self.remove(self.slots[self.oldest as usize].key);
        }
        let slot = self.free.pop().expect("a full table was evicted from");
        let flight = &mut self.slots[slot as usize];
        flight.key = key;
        flight.crypto.clone_from(crypto);
        flight.held.count = 0;
        (flight.older, flight.younger) = (self.youngest, NONE);
        match self.youngest {
            NONE => self.oldest = slot,
            youngest => self.slots[youngest as usize].younger = slot,
        }
        self.youngest = slot;
        self.by_key.insert(key, slot);
        is_full
    }

    /// Holds a packet of a flight; returns false if the flight is unknown or has reached its limit.
    pub fn hold(&mut self, key: u64, packet: &[u8]) -> bool {
        let slot = self.by_key.get(&key);
        slot.is_some_and(|slot| self.slots[*slot as usize].held.push(packet))
    }

    /// Returns the held packets of a flight in the order of their arrival.
    pub fn held(&self, key: u64) -> impl Iterator<Item = &[u8]> {
        let slot = self.by_key.get(&key);
        slot.into_iter()
            .flat_map(|slot| self.slots[*slot as usize].held.iter())
    }

    /// Removes a flight.
    pub fn remove(&mut self, key: u64) {
        let Some(slot) = self.by_key.remove(&key) else {
            return;
        };
        let PendingFlight { older, younger, .. } = self.slots[slot as usize];
        match older {
            NONE => self.oldest = younger,
            older => self.slots[older as usize].younger = younger,
        }
        match younger {
            NONE => self.youngest = older,
            younger => self.slots[younger as usize].older = older,
        }
        self.free.push(slot);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares with a simple model: a queue of keys and packets.
        #[test]
        fn oldest_flight_is_evicted(steps in prop::collection::vec((0..3_u8, 1..9_u64, 0..3000_usize), 0..200)) {
            let mut flights = PendingFlights::new(3);
            let mut model: VecDeque<(u64, Vec<Vec<u8>>)> = VecDeque::new();
            for (step, key, n) in steps {
                let at = model.iter().position(|(k, _)| *k == key);
                match (step, at) {
                    (0, None) => {
                        let evicts = model.len() == 3;
                        prop_assert_eq!(flights.insert(key, &Crypto::default()), evicts);
                        if evicts {
                            model.pop_front();
                        }
                        model.push_back((key, vec![]));
                    }
                    (1, Some(at)) => {
                        flights.remove(key);
                        model.remove(at);
                    }
                    _ => {
                        let packet = vec![n as u8; n];
                        let fits = at.is_some_and(|at| {
                            let held = &mut model[at].1;
                            let fits = held.len() < 8 && held.concat().len() + n <= 8192;
                            if fits {
                                held.push(packet.clone());
                            }
                            fits
                        });
                        prop_assert_eq!(flights.hold(key, &packet), fits);
                    }
                }
                prop_assert_eq!(flights.len(), model.len());
                for (key, held) in &model {
                    prop_assert!(flights.held(*key).eq(held.iter().map(Vec::as_slice)));
                    prop_assert!(flights.crypto(*key).is_some());
                }
            }
        }
    }
}
