// SPDX-License-Identifier: Apache-2.0
//! A client connection of which paths and streams are delegated.

use std::net::{IpAddr, SocketAddr};
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
}

impl Client {
    /// Return the balancer's address as the client knows it, and the cookie for the source addresses; `None` if real
    /// servers cannot send from there.
    pub fn server_address(&self) -> Option<(SocketAddr, Option<Cookie>)> {
        let (ip, cookie) = match &self.cookie_prefix {
            None => (self.plain_address()?, None),
            Some(cookie_prefix) => {
                let place = self.delegator.inner().local_address(self.address);
                let cookie = Cookie {
                    sid: cookie_prefix.keys.sid(),
                    prefix: cookie_prefix.prefix,
                    epoch: match place {
                        LocalAddress::Cookie(epoch) => Some(epoch),
                        _ => None,
                    },
                };
                let address = client_address::encode(cookie_prefix, place)?;
                (address.into(), Some(cookie))
            }
        };
        Some((SocketAddr::new(ip, self.listen.port()), cookie))
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
