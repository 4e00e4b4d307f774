// SPDX-License-Identifier: Apache-2.0
//! Limits of queues that the control plane sets.

use std::num::NonZeroU64;

/// A limit of a priority's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueLimit {
    /// Maximum number of waiting packets.
    Depth(u64),
    /// Packets per second; `None` means unlimited.
    Rate(Option<NonZeroU64>),
}
