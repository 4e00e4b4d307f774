// SPDX-License-Identifier: Apache-2.0
//! Scheduled events of a shard in exact order: by time, and then by kind and index.
//!
//! The order of a node's events does not depend on when they were scheduled, and so not on the shards of other nodes.

mod wheel;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use softswitch_pipeline::Nanos;

use wheel::Wheel;

/// An event. Numbers are indices of the shard's lists. Simultaneous events occur in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A channel can send again.
    Free {
        /// Channel index.
        channel: u32,
    },
    /// The first frame on a wire arrives.
    Arrival {
        /// Wire index.
        wire: u32,
    },
    /// A connection's timer may have expired.
    Timer(Timer),
}

/// The timer of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timer {
    /// Node index of the host.
    pub host: u32,
    /// Index of the connection at that host.
    pub connection: u32,
}

/// The scheduled events.
///
/// Events of channels and wires are separate from timers: there is at most one per channel and per wire, and they are only microseconds
/// ahead. There are as many timers as connections, and most of them are postponed before they expire. An event of a channel or wire is one
/// number, so that a comparison is cheap: time (64 bits), kind (1) and index (32). Timers wait in a timing wheel until shortly before their
/// time.
#[derive(Debug, Default)]
pub struct EventQueue {
    near: BinaryHeap<Reverse<u128>>,
    timers: BinaryHeap<Reverse<Scheduled>>,
    wheel: Wheel,
}

type Scheduled = (Nanos, Timer);

const TIME_SHIFT: u32 = 64;
const ARRIVAL: u64 = 1 << 32;

impl EventQueue {
    /// Schedules an event.
    pub fn schedule(&mut self, at: Nanos, event: Event) {
        let low = match event {
            Event::Free { channel } => u64::from(channel),
            Event::Arrival { wire } => ARRIVAL | u64::from(wire),
            Event::Timer(timer) => {
                if let Err(soon) = self.wheel.add((at, timer)) {
                    self.timers.push(Reverse(soon));
                }
                return;
            }
        };
        let entry = u128::from(at) << TIME_SHIFT | u128::from(low);
        self.near.push(Reverse(entry));
    }

    /// Returns the time of the next event.
    pub fn next_time(&mut self) -> Option<Nanos> {
        loop {
            let near = self.next_near();
            let timer = self.timers.peek().map(|Reverse((at, _))| *at);
            let first = near.into_iter().chain(timer).min();
            if !self.wheel.may_precede(first) {
                return first;
            }
            self.timers.extend(self.wheel.advance().map(Reverse));
        }
    }

    /// Removes and returns the next event, if it is before `end`.
    pub fn pop_before(&mut self, end: Nanos) -> Option<(Nanos, Event)> {
        let at = self.next_time().filter(|&at| at < end)?;
        if self.next_near() != Some(at) {
            let Reverse((at, timer)) = self.timers.pop()?;
            return Some((at, Event::Timer(timer)));
        }
        let Reverse(entry) = self.near.pop()?;
        let index = entry as u32;
        let event = match entry as u64 & ARRIVAL {
            0 => Event::Free { channel: index },
            _ => Event::Arrival { wire: index },
        };
        Some((at, event))
    }

    /// Returns the time of the next event of a channel or wire.
    fn next_near(&self) -> Option<Nanos> {
        let Reverse(entry) = self.near.peek()?;
        Some((entry >> TIME_SHIFT) as Nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn event(n: u32, kind: u8) -> Event {
        match kind {
            0 => Event::Free { channel: n },
            1 => Event::Arrival { wire: n },
            _ => Event::Timer(Timer {
                host: n % 3,
                connection: n,
            }),
        }
    }

    proptest! {
        /// Compares the queue with a sorted list, for near and distant events that are scheduled between removals.
        #[test]
        fn events_are_ordered_by_time_kind_and_index(
            steps in prop::collection::vec((0u64..1 << 33, 0u32..34, 0u8..3, any::<bool>()), 0..300),
        ) {
            let mut queue = EventQueue::default();
            let mut model: Vec<(Nanos, Event)> = Vec::new();
            let mut now = 0;
            for (n, &(ahead, shift, kind, take)) in (0..).zip(&steps) {
                let scheduled = (now + (ahead >> shift), event(n, kind));
                queue.schedule(scheduled.0, scheduled.1);
                model.push(scheduled);
                model.sort();
                prop_assert_eq!(queue.next_time(), Some(model[0].0));
                if take {
                    let next = model.remove(0);
                    now = next.0;
                    prop_assert_eq!(queue.pop_before(now), None);
                    prop_assert_eq!(queue.pop_before(now + 1), Some(next));
                }
            }
            for next in model {
                prop_assert_eq!(queue.pop_before(Nanos::MAX), Some(next));
            }
            prop_assert_eq!(queue.next_time(), None);
        }
    }
}
