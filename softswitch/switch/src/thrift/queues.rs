// SPDX-License-Identifier: Apache-2.0
//! Depths and rates of egress queues.

use std::convert::Infallible;
use std::num::NonZeroU64;

use softswitch_queue::PRIORITIES;
use softswitch_thrift::interface::Queues;

use super::Services;
use crate::dataplane::QueueLimit;

/// The result of a function that has limited a queue.
const DONE: i32 = 0;
/// The result of a function for a port or a priority that does not exist.
const NO_SUCH_QUEUE: i32 = 1;

type Result = std::result::Result<i32, Infallible>;

impl Services {
    /// Limits queues: all without `port`, and those of all priorities without `priority`.
    fn limit(&self, port: Option<i32>, priority: Option<i32>, limit: QueueLimit) -> Result {
        // BMv2 counts these priorities from the most urgent one, unlike those of packets.
        let most_urgent = self.priority_queues.saturating_sub(1);
        let class = match priority.map(u32::try_from) {
            None => None,
            Some(Ok(priority)) if priority <= most_urgent => Some(most_urgent - priority),
            Some(_) => return Ok(NO_SUCH_QUEUE),
        };
        let classes = class.map_or(0..PRIORITIES, |class| class as usize..class as usize + 1);
        let Ok(port) = port.map(u32::try_from).transpose() else {
            return Ok(NO_SUCH_QUEUE);
        };
        match self.ports.limit(port, classes, limit) {
            true => Ok(DONE),
            false => Ok(NO_SUCH_QUEUE),
        }
    }
}

/// BMv2 reads a negative depth as a large number.
fn depth(packets: i32) -> QueueLimit {
    QueueLimit::Depth(packets.cast_unsigned().into())
}

fn rate(pps: i64) -> QueueLimit {
    QueueLimit::Rate(NonZeroU64::new(pps.cast_unsigned()))
}

impl Queues for Services {
    fn set_egress_priority_queue_depth(&self, port: i32, priority: i32, packets: i32) -> Result {
        self.limit(Some(port), Some(priority), depth(packets))
    }

    fn set_egress_queue_depth(&self, port: i32, packets: i32) -> Result {
        self.limit(Some(port), None, depth(packets))
    }

    fn set_all_egress_queue_depths(&self, packets: i32) -> Result {
        self.limit(None, None, depth(packets))
    }

    fn set_egress_priority_queue_rate(&self, port: i32, priority: i32, pps: i64) -> Result {
        self.limit(Some(port), Some(priority), rate(pps))
    }

    fn set_egress_queue_rate(&self, port: i32, pps: i64) -> Result {
        self.limit(Some(port), None, rate(pps))
    }

    fn set_all_egress_queue_rates(&self, pps: i64) -> Result {
        self.limit(None, None, rate(pps))
    }
}
