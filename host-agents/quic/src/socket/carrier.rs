//! What a server's sources are made of.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use frontage_cookie::ipv6::Cookie;
use frontage_cookie::tcp::Signals;
use frontage_signals::rpt_us;

use crate::keys::{Keys, Sealed};
use crate::meter::Loads;
use crate::places::Place;

/// A server's addresses, and what it writes into them.
#[derive(Clone, Debug)]
pub struct Carrier {
    /// The upper 64 bits of the server's addresses; `ip -6 route add local PREFIX::/64 dev lo` makes them its own.
    pub prefix: u64,
    /// Seal and open interface ids.
    pub keys: Arc<Keys>,
    /// The server's loads.
    pub loads: Arc<Loads>,
    /// Assumed of a connection, in bit/s: RPT = remaining bytes / bandwidth.
    pub bandwidth: u64,
}

impl Carrier {
    /// The source of a batch of packets before which their response had so many bytes `remaining`.
    pub(super) fn source(
        &self,
        cookie_address: Option<u32>,
        remaining: u64,
        sealed: &mut Sealed,
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
        address(self.prefix, self.keys.seal(&cookie, cookie_address, sealed))
    }

    pub(super) fn place(&self, at: IpAddr) -> Place {
        match at {
            IpAddr::V6(v6) if (v6.to_bits() >> 64) as u64 == self.prefix => self
                .keys
                .epoch_of_static(v6.to_bits() as u64)
                .map_or(Place::Vip, Place::Cookie),
            _ => Place::Plain(at),
        }
    }
}

/// `prefix::interface_id`.
pub fn address(prefix: u64, interface_id: u64) -> Ipv6Addr {
    (u128::from(prefix) << 64 | u128::from(interface_id)).into()
}
