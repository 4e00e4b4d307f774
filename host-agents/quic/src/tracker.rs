// SPDX-License-Identifier: Apache-2.0
//! Where the client of one connection is: the address of its newest packet that is not merely a path probe (RFC 9000,
//! section 9.3).
//!
//! Older packets change nothing: they were still under way when the client migrated (section 9.6.2). Forged and
//! replayed packets change nothing either, because only authentic packets with new numbers count.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use frontage_quic_wire::frames::{self, Frame};
use parking_lot::Mutex;

use crate::migration::{LocalAddress, PathTable};
use crate::session::Packet;

/// Most multipath paths, beside path 0, whose largest packet number the tracker remembers.
const MAX_PATHS: usize = 16;
/// Most PATH_CHALLENGE frames that wait for their response.
const MAX_CHALLENGES: usize = 4;

/// Tracks which packets of a connection are the newest of their path.
#[derive(Debug)]
pub(crate) struct PathTracker {
    path_table: Arc<PathTable>,
    /// One more than the largest packet number on path 0.
    next_number: AtomicU64,
    /// Path id and next number of other paths (draft-ietf-quic-multipath), each of which has its own number space.
    other_paths: Mutex<Vec<(u32, u64)>>,
}

/// The client's address and its pending path probes.
#[derive(Debug, Default)]
pub(crate) struct PathState {
    /// `None` before the first 1-RTT packet.
    address: Option<LocalAddress>,
    /// True if the client has migrated since its handshake began; only the first migration is counted.
    has_migrated: bool,
    /// Data of PATH_CHALLENGE frames, and the addresses at which they arrived: responses leave from there (RFC 9000,
    /// section 8.2.2).
    challenges: Vec<([u8; 8], LocalAddress)>,
}

/// The unverified arrival of a packet that has turned out to be authentic.
pub(crate) struct Arrival {
    client: SocketAddr,
    address: LocalAddress,
    is_newest: bool,
}

impl PathTracker {
    pub(crate) fn new(path_table: Arc<PathTable>) -> Self {
        Self {
            path_table,
            next_number: AtomicU64::new(0),
            other_paths: Mutex::default(),
        }
    }

    /// Return the address at which the latest handshake of `client` arrived.
    pub(crate) fn handshake_address(&self, client: SocketAddr) -> LocalAddress {
        self.path_table.handshake_address(client)
    }

    /// Record an authentic packet, and return its arrival if that was unverified. noq decrypts the packets of a
    /// connection one at a time.
    #[inline]
    pub(crate) fn on_packet(&self, packet: &Packet<'_>) -> Option<Arrival> {
        let is_newest = if packet.path == 0 {
            let is_newest = packet.number >= self.next_number.load(Relaxed);
            if is_newest {
                self.next_number.store(packet.number + 1, Relaxed);
            }
            is_newest
        } else {
            self.is_newest_of_other_path(packet)
        };
        let (client, address) = self.path_table.take_arrival(packet.tag?)?;
        Some(Arrival {
            client,
            address,
            is_newest,
        })
    }

    fn is_newest_of_other_path(&self, packet: &Packet<'_>) -> bool {
        let mut paths = self.other_paths.lock();
        let Some((_, next)) = paths.iter_mut().find(|(path, _)| *path == packet.path) else {
            if paths.len() == MAX_PATHS {
                paths.remove(0);
            }
            paths.push((packet.path, packet.number + 1));
            return true;
        };
        let is_newest = packet.number >= *next;
        if is_newest {
            *next = packet.number + 1;
        }
        is_newest
    }
}

impl PathState {
    /// Return the address from which packets to the client leave, once it is known.
    pub(crate) fn address(&self) -> Option<LocalAddress> {
        self.address
    }

    /// Set the address that another host reports: this host does not receive the client's packets itself (QDSR).
    pub(crate) fn on_remote_update(&mut self, address: LocalAddress) {
        self.address = Some(address);
    }

    /// Return the address at which the PATH_CHALLENGE with `data` arrived, if that was unverified.
    pub(crate) fn challenge_address(&self, data: [u8; 8]) -> Option<LocalAddress> {
        let mut challenges = self.challenges.iter();
        let (_, address) = challenges.find(|(challenge, _)| *challenge == data)?;
        Some(*address)
    }

    /// Process the `arrival` of a packet with this `payload`: remember its challenges, and confirm its address if the
    /// client has migrated.
    pub(crate) fn on_arrival(&mut self, tracker: &PathTracker, arrival: &Arrival, payload: &[u8]) {
        let mut is_probe = true;
        for frame in frames::read(payload) {
            match frame {
                Frame::PathChallenge { data } => {
                    if self.challenges.len() == MAX_CHALLENGES {
                        self.challenges.remove(0);
                    }
                    self.challenges.push((data, arrival.address));
                }
                Frame::PathResponse { .. } | Frame::NewConnectionId { .. } | Frame::Probing => {}
                _ => is_probe = false,
            }
        }
        if arrival.is_newest && !is_probe {
            self.confirm(&tracker.path_table, arrival.client, arrival.address);
        }
    }

    fn confirm(&mut self, path_table: &PathTable, client: SocketAddr, address: LocalAddress) {
        let before = self
            .address
            .unwrap_or_else(|| path_table.initial_address(client));
        let counter = match (before, address) {
            (LocalAddress::Vip, LocalAddress::Cookie(_)) => Some(&path_table.migrated),
            (
                LocalAddress::Tunnel(_),
                LocalAddress::Vip | LocalAddress::Cookie(_) | LocalAddress::Plain(_),
            ) => Some(&path_table.left_tunnel),
            _ => None,
        };
        if let Some(counter) = counter.filter(|_| !self.has_migrated) {
            counter.fetch_add(1, Relaxed);
            self.has_migrated = true;
        }
        self.address = Some(address);
        path_table.confirm(client, address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migration::Tag;

    const PING: &[u8] = &[0x01];
    const CHALLENGE: &[u8] = &[0x1a, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0];
    const COOKIE: LocalAddress = LocalAddress::Cookie(0);

    fn client() -> SocketAddr {
        "[2001:db8::1]:1".parse().expect("a socket address")
    }

    /// A connection that its client opened at the VIP.
    struct Connection {
        path_table: Arc<PathTable>,
        tracker: PathTracker,
        state: PathState,
    }

    impl Connection {
        fn new(path_table: &Arc<PathTable>) -> Self {
            path_table.on_datagrams(client(), LocalAddress::Vip, &[0xc0; 40], 40);
            Self {
                path_table: path_table.clone(),
                tracker: PathTracker::new(path_table.clone()),
                state: PathState::default(),
            }
        }

        /// Receive a datagram that does not authenticate.
        fn forged(&self, number: u64, address: LocalAddress) -> Tag {
            let tag = u128::from(number).to_be_bytes();
            let datagram = [&[0x40; 24], &tag[..]].concat();
            self.path_table
                .on_datagrams(client(), address, &datagram, 40);
            tag
        }

        /// Receive a packet on path 0, and return where the client is then.
        fn packet(
            &mut self,
            number: u64,
            address: LocalAddress,
            payload: &[u8],
        ) -> Option<LocalAddress> {
            self.packet_of(0, number, address, payload)
        }

        fn packet_of(
            &mut self,
            path: u32,
            number: u64,
            address: LocalAddress,
            payload: &[u8],
        ) -> Option<LocalAddress> {
            let tag = self.forged(number, address);
            let packet = Packet {
                path,
                number,
                generation: 0,
                header: &[],
                payload,
                tag: Some(&tag),
            };
            if let Some(arrival) = self.tracker.on_packet(&packet) {
                self.state.on_arrival(&self.tracker, &arrival, payload);
            }
            self.state.address()
        }

        fn migrated(&self) -> u64 {
            self.path_table.migrated.load(Relaxed)
        }
    }

    #[test]
    fn newest_packet_decides_where_the_client_is() {
        let mut connection = Connection::new(&Arc::default());
        assert_eq!(
            connection.packet(0, LocalAddress::Vip, PING),
            Some(LocalAddress::Vip)
        );
        assert_eq!(connection.packet(3, COOKIE, PING), Some(COOKIE));
        // Sent earlier, or replayed by an attacker.
        assert_eq!(connection.packet(2, LocalAddress::Vip, PING), Some(COOKIE));
        assert_eq!(connection.packet(3, LocalAddress::Vip, PING), Some(COOKIE));
        assert_eq!(connection.migrated(), 1);
        assert_eq!(
            connection.packet(4, LocalAddress::Vip, PING),
            Some(LocalAddress::Vip)
        );
        assert_eq!(connection.packet(5, COOKIE, PING), Some(COOKIE));
        assert_eq!(connection.migrated(), 1);
    }

    #[test]
    fn each_path_has_its_own_numbers() {
        let mut connection = Connection::new(&Arc::default());
        let mut packet = |path, number, address| connection.packet_of(path, number, address, PING);
        assert_eq!(packet(0, 90, LocalAddress::Vip), Some(LocalAddress::Vip));
        assert_eq!(packet(1, 5, COOKIE), Some(COOKIE));
        assert_eq!(packet(1, 4, LocalAddress::Vip), Some(COOKIE));
        assert_eq!(packet(2, 0, LocalAddress::Vip), Some(LocalAddress::Vip));
        // So many other paths that the first of them is forgotten.
        for path in 3..20 {
            assert_eq!(packet(path, 0, COOKIE), Some(COOKIE));
        }
        assert_eq!(packet(2, 0, LocalAddress::Vip), Some(LocalAddress::Vip));
    }

    #[test]
    fn client_that_completes_its_handshake_at_another_address_has_migrated() {
        let path_table = Arc::<PathTable>::default();
        let mut connection = Connection::new(&path_table);
        // Responses leave from where the client completes the handshake.
        path_table.on_datagrams(client(), COOKIE, &[0xe0; 40], 40);
        assert_eq!(path_table.address_of(client()), COOKIE);
        assert_eq!(connection.packet(0, COOKIE, PING), Some(COOKIE));
        assert_eq!(connection.migrated(), 1);
        // The next connection from that port begins anew.
        path_table.on_datagrams(client(), COOKIE, &[0xc0; 40], 40);
        let mut next = PathState::default();
        next.confirm(&path_table, client(), COOKIE);
        assert_eq!(connection.migrated(), 1);
    }

    #[test]
    fn packet_that_does_not_authenticate_changes_nothing() {
        let path_table = Arc::<PathTable>::default();
        let mut connection = Connection::new(&path_table);
        connection.packet(0, LocalAddress::Vip, PING);
        connection.packet(1, COOKIE, PING);
        for number in 2..100 {
            connection.forged(number, LocalAddress::Vip);
        }
        path_table.on_datagrams(client(), LocalAddress::Vip, &[0xc0; 40], 40);
        assert_eq!(connection.state.address(), Some(COOKIE));
        assert_eq!(connection.packet(100, COOKIE, PING), Some(COOKIE));
        assert_eq!(path_table.address_of(client()), COOKIE);
    }

    #[test]
    fn probe_is_answered_at_its_address_and_migrates_no_client() {
        let mut connection = Connection::new(&Arc::default());
        connection.packet(0, LocalAddress::Vip, PING);
        assert_eq!(
            connection.packet(1, COOKIE, CHALLENGE),
            Some(LocalAddress::Vip)
        );
        assert_eq!(
            connection.state.challenge_address([1, 2, 3, 4, 5, 6, 7, 8]),
            Some(COOKIE)
        );
        assert_eq!(connection.state.challenge_address([0; 8]), None);
        // The tracker remembers the latest challenges only.
        for number in 0..9 {
            let mut payload = [number; 9];
            payload[0] = 0x1a;
            connection.packet(2 + u64::from(number), COOKIE, &payload);
        }
        assert_eq!(
            connection.state.challenge_address([1, 2, 3, 4, 5, 6, 7, 8]),
            None
        );
        assert_eq!(connection.state.challenge_address([8; 8]), Some(COOKIE));
    }

    #[test]
    fn connections_from_one_port_migrate_independently() {
        let path_table = Arc::<PathTable>::default();
        let mut first = Connection::new(&path_table);
        first.packet(0, COOKIE, PING);
        let mut second = Connection::new(&path_table);
        assert_eq!(
            second.packet(0, LocalAddress::Vip, PING),
            Some(LocalAddress::Vip)
        );
        assert_eq!(first.state.address(), Some(COOKIE));
        assert_eq!(second.packet(1, COOKIE, PING), Some(COOKIE));
        assert_eq!(second.migrated(), 2);
    }
}
