//! What is to happen, in exact order: by time, and in the order of planning where times are equal.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use softswitch_pipeline::Nanos;

/// Something that happens at a time. Numbers are positions in the simulation's lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// The first frame on its way has crossed a channel.
    Arrival {
        /// Which channel.
        channel: u32,
    },
    /// A channel is free to send again.
    Free {
        /// Which channel.
        channel: u32,
    },
    /// A connection's timer may have run out.
    Timer {
        /// Whose connection.
        host: u32,
        /// Its place at that host.
        connection: u32,
    },
    /// A workload's next flow begins.
    Flow {
        /// Which workload.
        workload: u32,
    },
}

/// Events to come.
///
/// What belongs to the next few microseconds, at most two events a channel, is kept apart from the timers, which are as many as
/// connections and mostly put off before they run out. It is kept as one number each: the time (64 bits), the number of
/// the planning (43), the channel (20) and what happens to it (1), so that a comparison is one of numbers.
#[derive(Debug, Default)]
pub struct Agenda {
    near: BinaryHeap<Reverse<u128>>,
    far: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    planned: u64,
}

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
                return self.far.push(Reverse((at, self.planned, event)));
            }
        };
        let low = self.planned << ORDER_SHIFT | u64::from(channel) << 1 | arrives;
        self.near
            .push(Reverse(u128::from(at) << 64 | u128::from(low)));
    }

    /// Takes the next event.
    pub fn next(&mut self) -> Option<(Nanos, Event)> {
        let far = self.far.peek().map(|Reverse((at, order, _))| (*at, *order));
        let near = self
            .near
            .peek()
            .map(|Reverse(entry)| ((entry >> 64) as Nanos, *entry as u64));
        match (near, far) {
            (Some((at, low)), far) if far.is_none_or(|far| (at, low >> ORDER_SHIFT) < far) => {
                self.near.pop();
                let channel = (low >> 1) as u32 & (MOST_CHANNELS as u32 - 1);
                let arrives = low & 1 == 1;
                let event = if arrives {
                    Event::Arrival { channel }
                } else {
                    Event::Free { channel }
                };
                Some((at, event))
            }
            _ => self.far.pop().map(|Reverse((at, _, event))| (at, event)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn order_is_by_time_and_then_by_planning(times in prop::collection::vec((0u64..50, any::<bool>()), 0..300)) {
            let mut agenda = Agenda::default();
            let mut expected = Vec::new();
            for (n, &(at, near)) in (0..).zip(&times) {
                let event = if near { Event::Arrival { channel: n } } else { Event::Flow { workload: n } };
                agenda.plan(at, event);
                expected.push((at, event));
            }
            expected.sort_by_key(|&(at, _)| at); // stable
            let order: Vec<_> = std::iter::from_fn(|| agenda.next()).collect();
            prop_assert_eq!(order, expected);
        }
    }
}
