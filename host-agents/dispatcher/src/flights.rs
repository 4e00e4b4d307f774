//! First flights whose service is not yet known: their packets are held until it is. Its memory is fixed, and the oldest
//! flight gives way, so that a flood of halves costs others' halves at worst.

use foldhash::{HashMap, HashMapExt as _};
use frontage_first_flight::Crypto;

/// No slot.
const NONE: u32 = u32::MAX;

/// Packets of one flight, as they came out of the tunnel's socket.
#[derive(Clone, Debug)]
struct Held {
    bytes: [u8; Self::BYTES],
    ends: [u16; Self::PACKETS],
    count: u8,
}

impl Held {
    /// Bytes of packets: six of the usual size, more than a client may have under way before it is answered (RFC 9002, 7.2,
    /// allows ten, but the ClientHello's come first).
    const BYTES: usize = 8192;
    const PACKETS: usize = 8;

    const fn used(&self) -> usize {
        match self.count {
            0 => 0,
            n => self.ends[n as usize - 1] as usize,
        }
    }

    /// Whether there was room.
    fn push(&mut self, packet: &[u8]) -> bool {
        let start = self.used();
        let end = start + packet.len();
        if end > Self::BYTES || usize::from(self.count) == Self::PACKETS {
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
struct Flight {
    key: u64,
    crypto: Crypto,
    held: Held,
    /// The next older and younger one.
    older: u32,
    younger: u32,
}

/// All unfinished flights.
#[derive(Debug)]
pub struct Flights {
    slots: Vec<Flight>,
    free: Vec<u32>,
    by_key: HashMap<u64, u32>,
    oldest: u32,
    youngest: u32,
}

impl Flights {
    /// Room for `capacity` flights, all of it taken at once.
    pub fn new(capacity: usize) -> Self {
        let flight = Flight {
            key: 0,
            crypto: Crypto::default(),
            held: Held {
                bytes: [0; Held::BYTES],
                ends: [0; Held::PACKETS],
                count: 0,
            },
            older: NONE,
            younger: NONE,
        };
        Self {
            slots: vec![flight; capacity],
            free: (0..capacity as u32).rev().collect(),
            // Twice, so that it can always clean itself where it is.
            by_key: HashMap::with_capacity(2 * capacity),
            oldest: NONE,
            youngest: NONE,
        }
    }

    /// Number of flights.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// What has come of a flight's CRYPTO stream.
    #[inline]
    pub fn crypto(&mut self, key: u64) -> Option<&mut Crypto> {
        let slot = *self.by_key.get(&key)?;
        Some(&mut self.slots[slot as usize].crypto)
    }

    /// Begins a flight with what has come of its CRYPTO stream; whether another gave way.
    pub fn begin(&mut self, key: u64, crypto: &Crypto) -> bool {
        let evicts = self.free.is_empty();
        if evicts {
            self.remove(self.slots[self.oldest as usize].key);
        }
        let slot = self
            .free
            .pop()
            .expect("one was just freed, or there is one");
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
        evicts
    }

    /// Holds a packet of a flight; whether there was room.
    pub fn hold(&mut self, key: u64, packet: &[u8]) -> bool {
        let slot = self.by_key.get(&key);
        slot.is_some_and(|slot| self.slots[*slot as usize].held.push(packet))
    }

    /// The packets that a flight holds, in the order in which they came.
    pub fn held(&self, key: u64) -> impl Iterator<Item = &[u8]> {
        let slot = self.by_key.get(&key);
        slot.into_iter()
            .flat_map(|slot| self.slots[*slot as usize].held.iter())
    }

    /// Forgets a flight.
    pub fn remove(&mut self, key: u64) {
        let Some(slot) = self.by_key.remove(&key) else {
            return;
        };
        let Flight { older, younger, .. } = self.slots[slot as usize];
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
        /// Against a plain model: a queue of keys and packets.
        #[test]
        fn the_oldest_gives_way(steps in prop::collection::vec((0..3_u8, 1..9_u64, 0..3000_usize), 0..200)) {
            let mut flights = Flights::new(3);
            let mut model: VecDeque<(u64, Vec<Vec<u8>>)> = VecDeque::new();
            for (step, key, n) in steps {
                let at = model.iter().position(|(k, _)| *k == key);
                match (step, at) {
                    (0, None) => {
                        let evicts = model.len() == 3;
                        prop_assert_eq!(flights.begin(key, &Crypto::default()), evicts);
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
