// SPDX-License-Identifier: Apache-2.0
//! Scheduled events in exact order: by time, and for equal times in the order of scheduling.

mod wheel;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use softswitch_pipeline::Nanos;

use wheel::Wheel;

/// An event. Numbers are indices of the simulation's lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// The first frame in flight has crossed a channel.
    Arrival {
        /// Channel index.
        channel: u32,
    },
    /// A channel can send again.
    Free {
        /// Channel index.
        channel: u32,
    },
    /// A connection's timer may have expired.
    Timer {
        /// Host number.
        host: u32,
        /// Index of the connection at that host.
        connection: u32,
    },
    /// The next flow of a workload starts.
    Flow {
        /// Workload index.
        workload: u32,
    },
}

/// The scheduled events.
///
/// Channel events are separate from timers: there are at most two per channel, and they are only microseconds ahead. There are as many
/// timers as connections, and most of them are postponed before they expire. A channel event is one number, so that a comparison is cheap:
/// time (64 bits), sequence number (43), channel (20) and kind (1). Timers wait in a timing wheel until shortly before their time.
#[derive(Debug, Default)]
pub struct EventQueue {
    near: BinaryHeap<Reverse<u128>>,
    timers: BinaryHeap<Reverse<Scheduled>>,
    wheel: Wheel,
    scheduled: u64,
}

/// Time, sequence number and event.
type Scheduled = (Nanos, u64, Event);

/// Maximum number of channels.
pub const MAX_CHANNELS: usize = 1 << CHANNEL_BITS;
const CHANNEL_BITS: u32 = 20;
const ORDER_SHIFT: u32 = CHANNEL_BITS + 1;

impl EventQueue {
    /// Schedules an event.
    pub fn schedule(&mut self, at: Nanos, event: Event) {
        self.scheduled += 1;
        let (channel, arrives) = match event {
            Event::Arrival { channel } => (channel, 1),
            Event::Free { channel } => (channel, 0),
            Event::Timer { .. } | Event::Flow { .. } => {
                let scheduled = (at, self.scheduled, event);
                if let Err(soon) = self.wheel.add(scheduled) {
                    self.timers.push(Reverse(soon));
                }
                return;
            }
        };
        let low = self.scheduled << ORDER_SHIFT | u64::from(channel) << 1 | arrives;
        self.near
            .push(Reverse(u128::from(at) << 64 | u128::from(low)));
    }

    /// Removes and returns the next event.
    pub fn pop(&mut self) -> Option<(Nanos, Event)> {
        loop {
            let timer = self
                .timers
                .peek()
                .map(|Reverse((at, order, _))| (*at, *order));
            let near = self
                .near
                .peek()
                .map(|Reverse(entry)| ((entry >> 64) as Nanos, *entry as u64));
            let is_channels = match (near, timer) {
                (Some((at, low)), Some(timer)) => (at, low >> ORDER_SHIFT) < timer,
                (near, _) => near.is_some(),
            };
            let first = if is_channels { near } else { timer };
            if self.wheel.may_precede(first.map(|(at, _)| at)) {
                self.timers.extend(self.wheel.advance().map(Reverse));
                continue;
            }
            let (at, low) = first?;
            if !is_channels {
                let Reverse((at, _, event)) = self.timers.pop()?;
                return Some((at, event));
            }
            self.near.pop();
            let channel = (low >> 1) as u32 & (MAX_CHANNELS as u32 - 1);
            let event = match low & 1 {
                1 => Event::Arrival { channel },
                _ => Event::Free { channel },
            };
            return Some((at, event));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn event(n: u32, near: bool) -> Event {
        match near {
            true => Event::Arrival { channel: n },
            false => Event::Flow { workload: n },
        }
    }

    proptest! {
        /// Compares the queue with a sorted list, for near and distant events that are scheduled between removals.
        #[test]
        fn events_are_ordered_by_time_and_then_by_scheduling(
            steps in prop::collection::vec((0u64..1 << 33, 0u32..34, any::<bool>(), any::<bool>()), 0..300),
        ) {
            let mut queue = EventQueue::default();
            let mut model: Vec<(Nanos, u32)> = Vec::new();
            let mut now = 0;
            for (n, &(ahead, shift, near, take)) in (0..).zip(&steps) {
                let at = now + (ahead >> shift);
                queue.schedule(at, event(n, near));
                model.push((at, n));
                model.sort();
                if take {
                    let (at, n) = model.remove(0);
                    now = at;
                    prop_assert_eq!(queue.pop(), Some((at, event(n, steps[n as usize].2))));
                }
            }
            for (at, n) in model {
                prop_assert_eq!(queue.pop(), Some((at, event(n, steps[n as usize].2))));
            }
            prop_assert_eq!(queue.pop(), None);
        }
    }
}
