// SPDX-License-Identifier: Apache-2.0
//! A client connection of which paths and streams are delegated.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use frontage_handoff::client_address;
use frontage_handoff::delegator::Delegator;
use frontage_handoff::message::Cookie;
use frontage_quic::meter::Meter;
use frontage_quic::migration::LocalAddress;
use frontage_quic::socket::CookiePrefix;
use noq::{Connection, PathId};

/// A client's connection and its delegator.
#[derive(Clone)]
pub struct Client {
    /// noq's connection.
    pub connection: Connection,
    /// The client's first address; the client may have left path 0 since.
    pub address: SocketAddr,
    /// The delegator of the connection.
    pub delegator: Arc<Delegator<Meter>>,
    /// Where the balancer's endpoint listens.
    pub listen: SocketAddr,
    /// Contents of the packets' source addresses, if they are cookies.
    pub cookie_prefix: Option<CookiePrefix>,
    /// Service Address that is also the VIP of the balancer's cookies.
    pub vip: Option<Ipv6Addr>,
}

impl Client {
    /// Return the balancer's address as the client knows it, and the cookie for the source addresses; `None` if real
    /// servers cannot send from there.
    pub fn server_address(&self) -> Option<(SocketAddr, Option<Cookie>)> {
        let (ip, cookie) = match &self.cookie_prefix {
            None => (self.plain_address()?, None),
            Some(cookie_prefix) => {
                let source = self.address_in_cookie();
                let cookie = Cookie {
                    sid: cookie_prefix.keys.sid(),
                    prefix: cookie_prefix.prefix,
                    epoch: match source {
                        LocalAddress::Cookie(epoch) => Some(epoch),
                        _ => None,
                    },
                };
                let address = client_address::encode(cookie_prefix, source)?;
                (address.into(), Some(cookie))
            }
        };
        Some((SocketAddr::new(ip, self.listen.port()), cookie))
    }

    /// Return where the client's responses must come from, if their source addresses are cookies.
    ///
    /// Responses to a client in a tunnel come from its Service Address, and leave by the balancer's own site. If this
    /// address is the VIP, the switch shows it as the source of packets that answer the VIP, so they need no tunnel.
    fn address_in_cookie(&self) -> LocalAddress {
        match self.delegator.inner().local_address(self.address) {
            LocalAddress::Tunnel(route) if Some(route.service.ip()) == self.vip.map(IpAddr::V6) => {
                LocalAddress::Vip
            }
            address => address,
        }
    }

    /// Return the balancer's address if its packets need no cookie.
    fn plain_address(&self) -> Option<IpAddr> {
        let specific = Some(self.listen.ip()).filter(|ip| !ip.is_unspecified());
        specific.or_else(|| {
            let path = self.connection.path(PathId::ZERO)?;
            path.local_ip().ok()?
        })
    }
}
