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
    /// A series is to be sampled.
    Sample {
        /// Which series.
        series: u32,
    },
}

type Entry = Reverse<(Nanos, u64, Event)>;

/// Events to come.
///
/// What belongs to the next few microseconds, at most two events a channel, is kept apart from the timers, which are as many as
/// connections and mostly put off before they run out.
#[derive(Debug, Default)]
pub struct Agenda {
    near: BinaryHeap<Entry>,
    far: BinaryHeap<Entry>,
    planned: u64,
}

impl Agenda {
    /// Plans an event.
    pub fn plan(&mut self, at: Nanos, event: Event) {
        self.planned += 1;
        let heap = match event {
            Event::Arrival { .. } | Event::Free { .. } => &mut self.near,
            Event::Timer { .. } | Event::Flow { .. } | Event::Sample { .. } => &mut self.far,
        };
        heap.push(Reverse((at, self.planned, event)));
    }

    /// Takes the next event.
    pub fn next(&mut self) -> Option<(Nanos, Event)> {
        let far_first = match (self.near.peek(), self.far.peek()) {
            (Some(Reverse(near)), Some(Reverse(far))) => far < near,
            (near, _) => near.is_none(),
        };
        let heap = if far_first {
            &mut self.far
        } else {
            &mut self.near
        };
        let Reverse((at, _, event)) = heap.pop()?;
        Some((at, event))
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
