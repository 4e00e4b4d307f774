// SPDX-License-Identifier: Apache-2.0
//! A server's IPv6 prefix, under which every interface id is a cookie.

use std::net::Ipv6Addr;
use std::sync::Arc;

use frontage_cookie::ipv6::Cookie;
use frontage_cookie::load::{Loads, rpt_us};
use frontage_cookie::tcp::Signals;

use crate::keys::{Keys, SealedCookies};

/// A server's IPv6 prefix, and what its interface ids carry.
#[derive(Clone, Debug)]
pub struct CookiePrefix {
    /// The upper 64 bits of the server's addresses; `ip -6 route add local PREFIX::/64 dev lo` makes all of them
    /// local.
    pub prefix: u64,
    /// The keys that seal and open interface ids.
    pub keys: Arc<Keys>,
    /// The server's loads.
    pub loads: Arc<Loads>,
    /// Bandwidth in bit/s that a connection is assumed to get: RPT = remaining bytes / bandwidth.
    pub bandwidth: u64,
}

impl CookiePrefix {
    /// Return the source address of a batch of packets. Before the batch, its response had `remaining` bytes left.
    /// `cookie_address` is the epoch of the static cookie's address that the client expects, or `None` if it expects
    /// the VIP.
    pub fn source(
        &self,
        cookie_address: Option<u32>,
        remaining: u64,
        sealed: &mut SealedCookies,
    ) -> Ipv6Addr {
        let cookie = Cookie {
            sid: self.keys.sid(),
            expects_cookie_address: cookie_address.is_some(),
            signals: Some(Signals {
                rpt_us: rpt_us(remaining, self.bandwidth),
                n_af: self.loads.n_af(),
                n_ff: self.loads.n_ff(),
            }),
        };
        let interface_id = self.keys.seal(&cookie, cookie_address, sealed);
        join_address(self.prefix, interface_id)
    }

    /// Return whether `address` has this prefix.
    pub fn contains(&self, address: Ipv6Addr) -> bool {
        (address.to_bits() >> 64) as u64 == self.prefix
    }
}

/// Return the address `prefix::interface_id`.
pub fn join_address(prefix: u64, interface_id: u64) -> Ipv6Addr {
    (u128::from(prefix) << 64 | u128::from(interface_id)).into()
}
