// SPDX-License-Identifier: Apache-2.0
//! The state that the packet threads share.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::Handle;
use super::entrance::Entrance;
use super::outlet::Outlet;
use super::switching::Switching;

/// Number of ports that can be added while the switch runs.
pub(super) const SPARE_SLOTS: usize = 512;

/// The state that the threads share.
pub(super) struct Shared {
    pub(super) handle: Arc<Handle>,
    pub(super) switching: Mutex<Switching>,
    /// One per slot, with empty ones for ports that are added later.
    pub(super) outlets: Box<[OnceLock<Outlet>]>,
    /// Changes that each thread has not yet made.
    pub(super) changes: Vec<Mutex<Vec<Change>>>,
    /// Seed of the links' losses.
    pub(super) seed: u64,
}

/// A change of the ports on which a thread receives.
pub(super) enum Change {
    Attach(Entrance),
    /// The port in this slot.
    Detach(usize),
}
