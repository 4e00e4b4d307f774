// SPDX-License-Identifier: Apache-2.0
//! The tunnel endpoints to which a first flight is forwarded.

use std::net::{IpAddr, SocketAddr};

use frontage_tunnel::vxlan;

/// Maximum number of sites that receive a copy of a flight (X in the paper's evaluation).
pub const MAX_REDUNDANCY: usize = 4;

/// The tunnel endpoints to which a flight is forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Targets {
    endpoints: [Option<IpAddr>; MAX_REDUNDANCY],
}

impl Targets {
    /// Collects the first [`MAX_REDUNDANCY`] of `endpoints`.
    pub fn new(endpoints: impl IntoIterator<Item = IpAddr>) -> Self {
        let mut targets = Self::default();
        for (slot, endpoint) in targets.endpoints.iter_mut().zip(endpoints) {
            *slot = Some(endpoint);
        }
        targets
    }

    /// Iterates over the tunnel endpoints.
    pub fn iter(&self) -> impl Iterator<Item = IpAddr> {
        self.endpoints.iter().map_while(|endpoint| *endpoint)
    }

    /// Returns true if the flight cannot be forwarded.
    pub const fn is_empty(&self) -> bool {
        self.endpoints[0].is_none()
    }
}

/// Returns the socket address of the tunnel endpoint at `address`.
pub const fn tunnel_address(address: IpAddr) -> SocketAddr {
    SocketAddr::new(address, vxlan::PORT)
}
