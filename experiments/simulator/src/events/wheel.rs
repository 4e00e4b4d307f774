// SPDX-License-Identifier: Apache-2.0
//! A hashed timing wheel (Varghese and Lauck, SOSP 1987) for distant events, which need not be sorted.

use softswitch_pipeline::Nanos;

use super::Scheduled;

/// Logarithm of the duration of a slot in nanoseconds: about a millisecond.
const SLOT_SHIFT: u32 = 20;
const SLOTS: usize = 1024;

/// Events by slot of their time. Slots that are a full rotation apart share a bucket.
#[derive(Debug)]
pub struct Wheel {
    buckets: Vec<Vec<Scheduled>>,
    waiting: usize,
    /// Slot up to which events have been removed.
    current: u64,
    /// Lower bound of the slots that contain events.
    next: u64,
    due: Vec<Scheduled>,
}

impl Default for Wheel {
    fn default() -> Self {
        Self {
            buckets: vec![Vec::new(); SLOTS],
            waiting: 0,
            current: 0,
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
    /// Returns the event if its slot has been removed already.
    pub fn add(&mut self, scheduled: Scheduled) -> Result<(), Scheduled> {
        let slot = slot(scheduled.0);
        if slot <= self.current {
            return Err(scheduled);
        }
        self.buckets[bucket(slot)].push(scheduled);
        self.waiting += 1;
        self.next = self.next.min(slot);
        Ok(())
    }

    /// Returns true if the wheel may contain an event before `at`; without `at`, if it contains any.
    pub fn may_precede(&self, at: Option<Nanos>) -> bool {
        self.waiting > 0 && at.is_none_or(|at| self.next <= slot(at))
    }

    /// Removes the events of the next slot that may contain any.
    pub fn advance(&mut self) -> impl Iterator<Item = Scheduled> {
        let current = self.next;
        self.current = current;
        let (bucket_now, due) = (&mut self.buckets[bucket(current)], &mut self.due);
        bucket_now.retain(|scheduled| {
            let later = slot(scheduled.0) > current;
            if !later {
                due.push(*scheduled);
            }
            later
        });
        self.waiting -= self.due.len();
        self.next = match self.waiting {
            0 => u64::MAX,
            _ => (current + 1..)
                .find(|&slot| !self.buckets[bucket(slot)].is_empty())
                .unwrap_or(u64::MAX),
        };
        self.due.drain(..)
    }
}
