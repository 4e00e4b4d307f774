//! The balancer's side of a client's connection, of which paths are lent.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use frontage_handoff::lend::Lender;
use frontage_handoff::message::Cookie;
use frontage_handoff::place::address_of;
use frontage_quic::meter::Meter;
use frontage_quic::migration::LocalAddress;
use frontage_quic::socket::CookiePrefix;
use noq::{Connection, PathId};

/// What a loan is of.
#[derive(Clone)]
pub struct Owner {
    /// The client's.
    pub connection: Connection,
    /// The client as it came; it may have left path 0 since.
    pub client: SocketAddr,
    /// Its lender.
    pub lender: Arc<Lender<Meter>>,
    /// Where the endpoint listens.
    pub listen: SocketAddr,
    /// What the sources of its packets are made of, if of cookies.
    pub cookie_prefix: Option<CookiePrefix>,
}

impl Owner {
    /// What the client takes the balancer's address for, and what is in the source of packets; none if real servers cannot send from there.
    pub fn known_as(&self) -> Option<(SocketAddr, Option<Cookie>)> {
        let (ip, cookie) = match &self.cookie_prefix {
            None => (self.address()?, None),
            Some(cookie_prefix) => {
                let place = self.lender.inner().local_address(self.client);
                let cookie = Cookie {
                    sid: cookie_prefix.keys.sid(),
                    prefix: cookie_prefix.prefix,
                    epoch: match place {
                        LocalAddress::Cookie(epoch) => Some(epoch),
                        _ => None,
                    },
                };
                (address_of(cookie_prefix, place)?.into(), Some(cookie))
            }
        };
        Some((SocketAddr::new(ip, self.listen.port()), cookie))
    }

    /// The balancer's address, where it needs no cookie.
    fn address(&self) -> Option<IpAddr> {
        let specific = Some(self.listen.ip()).filter(|ip| !ip.is_unspecified());
        specific.or_else(|| {
            let path = self.connection.path(PathId::ZERO)?;
            path.local_ip().ok()?
        })
    }
}
