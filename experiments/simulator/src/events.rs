// SPDX-License-Identifier: Apache-2.0
//! Planned events in exact order: by time, and in the order of planning for equal times.

mod wheel;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use softswitch_pipeline::Nanos;

use wheel::Wheel;

/// Something that happens at a time. Numbers are positions in the simulation's lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// The first frame on its way has crossed a channel.
    Arrival {
        /// Channel index.
        channel: u32,
    },
    /// A channel is free to send again.
    Free {
        /// Channel index.
        channel: u32,
    },
    /// A connection's timer may have run out.
    Timer {
        /// Host of the connection.
        host: u32,
        /// Its place at that host.
        connection: u32,
    },
    /// A workload's next flow begins.
    Flow {
        /// Workload index.
        workload: u32,
    },
}

/// The planned events.
///
/// Events of channels, at most two per channel and only microseconds ahead, are separate from the timers. There are as many timers as
/// connections, and most of them are postponed before they expire. A channel event is one number, so that a comparison is cheap: time (64
/// bits), sequence number (43), channel (20) and kind (1). Timers wait in a wheel until their time is near.
#[derive(Debug, Default)]
pub struct Agenda {
    near: BinaryHeap<Reverse<u128>>,
    timers: BinaryHeap<Reverse<Planned>>,
    wheel: Wheel,
    planned: u64,
}

/// When, in which order, and what.
type Planned = (Nanos, u64, Event);

/// Channels that there can be.
pub const MOST_CHANNELS: usize = 1 << CHANNEL_BITS;
const CHANNEL_BITS: u32 = 20;
const ORDER_SHIFT: u32 = CHANNEL_BITS + 1;

impl Agenda {
    /// Plans an event.
    pub fn plan(&mut self, at: Nanos, event: Event) {
        self.planned += 1;
        let (channel, arrives) = match event {
            Event::Arrival { channel } => (channel, 1),
            Event::Free { channel } => (channel, 0),
            Event::Timer { .. } | Event::Flow { .. } => {
                let planned = (at, self.planned, event);
                if let Err(soon) = self.wheel.add(planned) {
                    self.timers.push(Reverse(soon));
                }
                return;
            }
        };
        let low = self.planned << ORDER_SHIFT | u64::from(channel) << 1 | arrives;
        self.near
            .push(Reverse(u128::from(at) << 64 | u128::from(low)));
    }

    /// Takes the next event.
    pub fn take(&mut self) -> Option<(Nanos, Event)> {
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
            if self.wheel.reaches(first.map(|(at, _)| at)) {
                self.timers.extend(self.wheel.turn().map(Reverse));
                continue;
            }
            let (at, low) = first?;
            if !is_channels {
                let Reverse((at, _, event)) = self.timers.pop()?;
                return Some((at, event));
            }
            self.near.pop();
            let channel = (low >> 1) as u32 & (MOST_CHANNELS as u32 - 1);
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
        /// Against a sorted list, with events planned while others happen, near and far.
        #[test]
        fn order_is_by_time_and_then_by_planning(
            steps in prop::collection::vec((0u64..1 << 33, 0u32..34, any::<bool>(), any::<bool>()), 0..300),
        ) {
            let mut agenda = Agenda::default();
            let mut model: Vec<(Nanos, u32)> = Vec::new();
            let mut now = 0;
            for (n, &(ahead, shift, near, take)) in (0..).zip(&steps) {
                let at = now + (ahead >> shift);
                agenda.plan(at, event(n, near));
                model.push((at, n));
                model.sort();
                if take {
                    let (at, n) = model.remove(0);
                    now = at;
                    prop_assert_eq!(agenda.take(), Some((at, event(n, steps[n as usize].2))));
                }
            }
            for (at, n) in model {
                prop_assert_eq!(agenda.take(), Some((at, event(n, steps[n as usize].2))));
            }
            prop_assert_eq!(agenda.take(), None);
        }
    }
}
