// SPDX-License-Identifier: Apache-2.0
//! The receiving side of a port in the data plane.

use std::sync::Arc;

use super::counters::PortCounters;
use crate::port::Receive;

/// A port on which a thread receives.
pub(super) struct Entrance {
    pub(super) slot: usize,
    pub(super) receiver: Box<dyn Receive>,
    pub(super) counters: Arc<PortCounters>,
    pub(super) filled: bool,
}

impl Entrance {
    pub(super) fn new(
        slot: usize,
        receiver: Box<dyn Receive>,
        counters: Arc<PortCounters>,
    ) -> Self {
        Self {
            slot,
            receiver,
            counters,
            filled: false,
        }
    }
}
