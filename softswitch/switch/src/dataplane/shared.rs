// SPDX-License-Identifier: Apache-2.0
//! The state that the packet threads share.

use std::sync::Arc;

use parking_lot::Mutex;

use super::Handle;
use super::outlet::Outlet;
use super::switching::Switching;

/// The state that the threads share.
pub(super) struct Shared {
    pub(super) handle: Arc<Handle>,
    pub(super) switching: Mutex<Switching>,
    /// One per port.
    pub(super) outlets: Vec<Outlet>,
}
