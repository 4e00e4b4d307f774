// SPDX-License-Identifier: Apache-2.0
//! A port's name and counters, for monitoring.

use std::sync::Arc;

use super::counters::PortCounters;

/// A port, for monitoring.
#[derive(Debug, Clone)]
pub struct PortView {
    /// The port's number.
    pub number: u32,
    /// The interface's name.
    pub name: String,
    /// The port's counters.
    pub counters: Arc<PortCounters>,
}

/// A port's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortStatus {
    /// The port's number.
    pub number: u32,
    /// The interface's name.
    pub name: String,
    /// True unless the interface is known to be down or without carrier.
    pub up: bool,
}
