// SPDX-License-Identifier: Apache-2.0
//! A hashed timing wheel (Varghese and Lauck, SOSP 1987): events that are not due soon, which cost nothing to sort.

use softswitch_pipeline::Nanos;

use super::Planned;

/// A slot is 2^20 ns, about a millisecond.
const SLOT_SHIFT: u32 = 20;
const SLOTS: usize = 1024;

/// Events by slot of their time. Slots a whole turn apart share a bucket.
#[derive(Debug)]
pub struct Wheel {
    buckets: Vec<Vec<Planned>>,
    waiting: usize,
    /// The slot up to which events have been given out.
    turned: u64,
    /// No event is in a slot before this one.
    next: u64,
    due: Vec<Planned>,
}

impl Default for Wheel {
    fn default() -> Self {
        Self {
            buckets: vec![Vec::new(); SLOTS],
            waiting: 0,
            turned: 0,
            next: u64::MAX,
            due: Vec::new(),
        }
    }
}

fn slot(at: Nanos) -> u64 {
    at >> SLOT_SHIFT
}

fn bucket(slot: u64) -> usize {
    slot as usize % SLOTS
}

impl Wheel {
    /// Adds an event.
    ///
    /// # Errors
    /// Gives it back if its slot has been given out.
    pub fn add(&mut self, planned: Planned) -> Result<(), Planned> {
        let slot = slot(planned.0);
        if slot <= self.turned {
            return Err(planned);
        }
        self.buckets[bucket(slot)].push(planned);
        self.waiting += 1;
        self.next = self.next.min(slot);
        Ok(())
    }

    /// Whether something waits here that may come before an event at this time, or with none, at all.
    pub fn reaches(&self, at: Option<Nanos>) -> bool {
        self.waiting > 0 && at.is_none_or(|at| self.next <= slot(at))
    }

    /// Gives out the next slot in which something may be.
    pub fn turn(&mut self) -> impl Iterator<Item = Planned> {
        let turned = self.next;
        self.turned = turned;
        let (bucket_now, due) = (&mut self.buckets[bucket(turned)], &mut self.due);
        bucket_now.retain(|planned| {
            let later = slot(planned.0) > turned;
            if !later {
                due.push(*planned);
            }
            later
        });
        self.waiting -= self.due.len();
        self.next = match self.waiting {
            0 => u64::MAX,
            _ => (turned + 1..)
                .find(|&slot| !self.buckets[bucket(slot)].is_empty())
                .unwrap_or(u64::MAX),
        };
        self.due.drain(..)
    }
}
