// SPDX-License-Identifier: Apache-2.0
//! Client migration: which of the server's addresses each client uses, or through which tunnel it comes.
//!
//! The [`PathTable`] learns this from datagrams as the socket receives them, before anything is decrypted. A 1-RTT
//! datagram that does not arrive at its client's confirmed address is an *unverified arrival*: anyone may have forged
//! it. It has no effect until a connection has authenticated the packet and confirms the arrival (`tracker.rs`).

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU8;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use parking_lot::Mutex;

use crate::recent::RecentMap;

/// Least number of clients that the table remembers. A forgotten client is learnt again.
const MIN_CLIENTS: usize = 1 << 16;
/// Least number of unverified arrivals that the table remembers.
const MIN_ARRIVALS: usize = 1 << 10;
/// Authentic packets in a row that match no unverified arrival, after which all waiting arrivals count as forged.
const MAX_ARRIVAL_MISSES: u32 = 1 << 12;

/// The AEAD tag at the end of a 1-RTT packet (RFC 9001, section 5.3). Nothing between socket and decryption changes
/// it, so it identifies the packet.
pub type Tag = [u8; 16];

/// The server's address as a client uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalAddress {
    /// The VIP. The switch forwards its packets to the server's own address.
    Vip,
    /// The static cookie's address, with the epoch of the key that sealed it.
    Cookie(u32),
    /// An address without a cookie.
    Plain(IpAddr),
    /// A service address, reached through a tunnel from another site.
    Tunnel(TunnelRoute),
}

/// The route of a client whose packets come through a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelRoute {
    /// Site at which the packets enter. Responses leave by the replica's own site.
    pub origin: NonZeroU8,
    /// Service address to which the client sends.
    pub service: SocketAddr,
}

#[derive(Clone, Copy, Debug)]
struct Client {
    /// Address of its latest packet with a long header, from which the server responds during a handshake.
    handshake: LocalAddress,
    /// Address of the first such packet of the current handshake; a client may complete the handshake at another
    /// address.
    initial: LocalAddress,
    /// Address of one of its connections, confirmed by an authentic packet since the last long header.
    confirmed: Option<LocalAddress>,
    /// True if its latest 1-RTT datagram did not arrive at the confirmed address.
    is_elsewhere: bool,
}

/// The addresses that recent clients use.
#[derive(Debug)]
pub struct PathTable {
    /// Keyed by address and port.
    clients: Mutex<RecentMap<(u128, u16), Client>>,
    arrivals: Mutex<UnverifiedArrivals>,
    /// True if `arrivals` has any, so that most packets need not lock it.
    has_arrivals: AtomicBool,
    /// Connections that migrated from the VIP to the static cookie's address.
    pub migrated: AtomicU64,
    /// Connections that migrated from a tunnel to another address.
    pub left_tunnel: AtomicU64,
    /// Stateless resets that were not sent, because their cause was a late packet of a client that had migrated.
    pub withheld_resets: AtomicU64,
}

#[derive(Debug)]
struct UnverifiedArrivals {
    by_tag: RecentMap<Tag, (SocketAddr, LocalAddress)>,
    /// Authentic packets in a row that had no entry.
    misses: u32,
}

impl Default for UnverifiedArrivals {
    fn default() -> Self {
        Self {
            by_tag: RecentMap::new(MIN_ARRIVALS),
            misses: 0,
        }
    }
}

impl Default for PathTable {
    fn default() -> Self {
        Self {
            clients: Mutex::new(RecentMap::new(MIN_CLIENTS)),
            arrivals: Mutex::default(),
            has_arrivals: AtomicBool::new(false),
            migrated: AtomicU64::new(0),
            left_tunnel: AtomicU64::new(0),
            withheld_resets: AtomicU64::new(0),
        }
    }
}

impl PathTable {
    /// Record that `datagrams` from `client` arrived at `address`. All of them but the last have `stride` bytes.
    ///
    /// Return whether all were expected there. If so, the caller may skip this call for later ones of the same kind.
    pub fn on_datagrams(
        &self,
        client: SocketAddr,
        address: LocalAddress,
        datagrams: &[u8],
        stride: usize,
    ) -> bool {
        let mut all_expected = true;
        for datagram in datagrams.chunks(stride.max(1)) {
            if has_long_header(datagram) {
                self.on_long_header(client, address);
            } else if self.is_confirmed(client, address) {
                continue;
            } else {
                self.on_unverified(client, address, datagram);
            }
            all_expected = false;
        }
        all_expected
    }

    /// A connection may begin, so the next 1-RTT packet is an unverified arrival.
    fn on_long_header(&self, client: SocketAddr, address: LocalAddress) {
        self.clients.lock().update(key(client), |before| Client {
            handshake: address,
            initial: before
                .filter(|before| before.confirmed.is_none())
                .map_or(address, |before| before.initial),
            confirmed: None,
            is_elsewhere: false,
        });
    }

    /// Return whether `address` is the confirmed one of `client`.
    fn is_confirmed(&self, client: SocketAddr, address: LocalAddress) -> bool {
        let (mut clients, key) = (self.clients.lock(), key(client));
        let entry = clients.get(&key);
        let Some(entry) = entry.filter(|entry| entry.confirmed.is_some()) else {
            return false;
        };
        let is_elsewhere = entry.confirmed != Some(address);
        if is_elsewhere != entry.is_elsewhere {
            clients.update(key, |_| Client {
                is_elsewhere,
                ..entry
            });
        }
        !is_elsewhere
    }

    /// Return, and count, whether a stateless reset to `client` must not be sent.
    ///
    /// A client that migrates retires its previous connection id (RFC 9000, section 5.1.2). Its packets with that id
    /// may arrive late, by the longer route, and then belong to no connection. A reset in response would end the
    /// client's current connection.
    pub(crate) fn withholds_reset(&self, client: SocketAddr) -> bool {
        let entry = self.clients.lock().get(&key(client));
        let withholds = entry.is_some_and(|entry| entry.is_elsewhere);
        self.withheld_resets
            .fetch_add(u64::from(withholds), Relaxed);
        withholds
    }

    /// Remember where `datagram` arrived, until a connection authenticates it.
    fn on_unverified(&self, client: SocketAddr, address: LocalAddress, datagram: &[u8]) {
        if let Some(tag) = datagram.last_chunk() {
            let mut arrivals = self.arrivals.lock();
            arrivals.misses = 0;
            arrivals.by_tag.update(*tag, |_| (client, address));
            self.has_arrivals.store(true, Release);
        }
    }

    /// Return where the authentic packet with this tag arrived, if that was unverified.
    #[inline]
    pub(crate) fn take_arrival(&self, tag: &Tag) -> Option<(SocketAddr, LocalAddress)> {
        if self.has_arrivals.load(Acquire) {
            self.take_waiting_arrival(tag)
        } else {
            None
        }
    }

    #[inline(never)]
    fn take_waiting_arrival(&self, tag: &Tag) -> Option<(SocketAddr, LocalAddress)> {
        let mut arrivals = self.arrivals.lock();
        let found = arrivals.by_tag.remove(tag);
        if found.is_none() {
            arrivals.misses += 1;
            if arrivals.misses > MAX_ARRIVAL_MISSES {
                *arrivals = UnverifiedArrivals::default();
            }
        }
        if arrivals.by_tag.is_empty() {
            self.has_arrivals.store(false, Relaxed);
        }
        found
    }

    /// Record that a connection of `client` is at `address`, by an authentic packet.
    pub(crate) fn confirm(&self, client: SocketAddr, address: LocalAddress) {
        self.clients.lock().update(key(client), |before| Client {
            handshake: before.map_or(address, |before| before.handshake),
            initial: before.map_or(address, |before| before.initial),
            confirmed: Some(address),
            is_elsewhere: false,
        });
    }

    /// Return the address of the latest long header of `client`, from which the server responds during a handshake.
    pub fn handshake_address(&self, client: SocketAddr) -> LocalAddress {
        let entry = self.clients.lock().get(&key(client));
        entry.map_or(LocalAddress::Vip, |entry| entry.handshake)
    }

    /// Return the address at which the latest handshake of `client` began.
    pub(crate) fn initial_address(&self, client: SocketAddr) -> LocalAddress {
        let entry = self.clients.lock().get(&key(client));
        entry.map_or(LocalAddress::Vip, |entry| entry.initial)
    }

    /// Return the address that `client` uses: the confirmed one, or that of its handshake.
    pub fn address_of(&self, client: SocketAddr) -> LocalAddress {
        let entry = self.clients.lock().get(&key(client));
        entry.map_or(LocalAddress::Vip, |entry| {
            entry.confirmed.unwrap_or(entry.handshake)
        })
    }
}

/// Return whether a datagram begins with a long header (RFC 8999, section 5.1), as those of handshakes do.
pub(crate) fn has_long_header(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & 0x80 != 0)
}

fn key(client: SocketAddr) -> (u128, u16) {
    let ip = match client.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    (ip.to_bits(), client.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client() -> SocketAddr {
        "[2001:db8::1]:1".parse().expect("a socket address")
    }

    const INITIAL: [u8; 40] = [0xc0; 40];

    fn short(number: u8) -> [u8; 40] {
        let mut datagram = [0x40; 40];
        datagram[39] = number;
        datagram
    }

    fn tag(number: u8) -> Tag {
        *short(number).last_chunk().expect("40 bytes")
    }

    #[test]
    fn only_unexpected_datagrams_are_unverified_arrivals() {
        let path_table = PathTable::default();
        let on_datagram =
            |address, datagram: &[u8]| path_table.on_datagrams(client(), address, datagram, 40);
        assert!(!on_datagram(LocalAddress::Vip, &INITIAL));
        // The first 1-RTT packet of a connection is unverified.
        assert!(!on_datagram(LocalAddress::Vip, &short(1)));
        assert_eq!(
            path_table.take_arrival(&tag(1)),
            Some((client(), LocalAddress::Vip))
        );
        path_table.confirm(client(), LocalAddress::Vip);
        assert!(on_datagram(LocalAddress::Vip, &short(2)));
        assert_eq!(path_table.take_arrival(&tag(2)), None);
        assert!(!on_datagram(LocalAddress::Cookie(0), &short(3)));
        assert_eq!(path_table.address_of(client()), LocalAddress::Vip);
        // Two datagrams in one batch.
        let both = [short(4), short(5)].concat();
        assert!(!path_table.on_datagrams(client(), LocalAddress::Cookie(0), &both, 40));
        for number in 3..=5 {
            let arrival = path_table.take_arrival(&tag(number));
            assert_eq!(arrival, Some((client(), LocalAddress::Cookie(0))));
        }
        path_table.confirm(client(), LocalAddress::Cookie(0));
        assert!(on_datagram(LocalAddress::Cookie(0), &short(6)));
        // Another connection from the same port.
        assert!(!on_datagram(LocalAddress::Vip, &INITIAL));
        assert_eq!(path_table.handshake_address(client()), LocalAddress::Vip);
        assert!(!on_datagram(LocalAddress::Cookie(0), &short(7)));
    }

    #[test]
    fn late_packet_at_previous_address_causes_no_reset() {
        let path_table = PathTable::default();
        let on_datagram =
            |address, datagram: &[u8]| path_table.on_datagrams(client(), address, datagram, 40);
        on_datagram(LocalAddress::Vip, &INITIAL);
        on_datagram(LocalAddress::Vip, &short(1));
        assert!(!path_table.withholds_reset(client()));
        path_table.confirm(client(), LocalAddress::Cookie(0));
        assert!(!path_table.withholds_reset(client()));
        on_datagram(LocalAddress::Vip, &short(2));
        assert!(path_table.withholds_reset(client()));
        // At the confirmed address, for a connection that has ended.
        on_datagram(LocalAddress::Cookie(0), &short(3));
        assert!(!path_table.withholds_reset(client()));
        assert_eq!(path_table.withheld_resets.load(Relaxed), 1);
    }

    #[test]
    fn unverified_arrivals_are_bounded_and_forgotten() {
        let path_table = PathTable::default();
        let cookie = LocalAddress::Cookie(0);
        for number in 0..100_000u32 {
            let mut datagram = [0x40; 40];
            datagram[30..34].copy_from_slice(&number.to_be_bytes());
            path_table.on_datagrams(client(), cookie, &datagram, 40);
        }
        path_table.on_datagrams(client(), cookie, &short(1), 40);
        assert!(path_table.take_arrival(&tag(1)).is_some());
        assert!(path_table.take_arrival(&tag(1)).is_none());
        for _ in 0..=MAX_ARRIVAL_MISSES {
            assert_eq!(path_table.take_arrival(&tag(2)), None);
        }
        assert!(!path_table.has_arrivals.load(Relaxed));
        path_table.on_datagrams(client(), cookie, &short(3), 40);
        assert!(path_table.has_arrivals.load(Relaxed));
        assert!(path_table.take_arrival(&tag(3)).is_some());
        assert!(!path_table.has_arrivals.load(Relaxed));
    }
}
