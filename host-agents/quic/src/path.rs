//! Where a connection's client is, by what its packets say: the newest that does more than probe a path counts (RFC 9000, section 9.3), from wherever it
//! came. What was on its way when the client moved (section 9.6.2) changes nothing, and neither does what somebody else sends or sends again.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use crate::frames::{self, Frame};
use crate::places::{Place, Places};
use crate::session::Packet;

/// Paths beside the first whose numbers are remembered.
const PATHS: usize = 16;
/// Questions that wait for their answers.
const CHALLENGES: usize = 4;

/// A connection's.
#[derive(Debug)]
pub(crate) struct Path {
    places: Arc<Places>,
    /// Above the number of each packet received on the first path.
    next: AtomicU64,
    /// The same of others (draft-ietf-quic-multipath).
    others: Mutex<Vec<(u32, u64)>>,
}

/// What is known of it.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// None before the first packet.
    place: Option<Place>,
    /// It left the place where it began.
    left: bool,
    /// Data of PATH_CHALLENGE frames, and where they came: there the answer goes (RFC 9000, section 8.2.2).
    challenges: Vec<([u8; 8], Place)>,
}

/// What a packet says that came from an unexpected place.
pub(crate) struct Sighting {
    client: SocketAddr,
    place: Place,
    newest: bool,
}

impl Path {
    pub(crate) fn new(places: Arc<Places>) -> Self {
        Self {
            places,
            next: AtomicU64::new(0),
            others: Mutex::default(),
        }
    }

    /// Where the handshake of a client's connection came.
    pub(crate) fn opening(&self, client: SocketAddr) -> Place {
        self.places.opening(client)
    }

    /// A packet was received and is authentic. noq opens a connection's packets one after the other.
    #[inline]
    pub(crate) fn received(&self, packet: &Packet<'_>) -> Option<Sighting> {
        let newest = if packet.path == 0 {
            let newest = packet.number >= self.next.load(Relaxed);
            if newest {
                self.next.store(packet.number + 1, Relaxed);
            }
            newest
        } else {
            self.is_newest(packet)
        };
        let (client, place) = self.places.sighting(packet.tag?)?;
        Some(Sighting {
            client,
            place,
            newest,
        })
    }

    /// Whether it is the newest of its path, of which the numbers are a space of their own.
    fn is_newest(&self, packet: &Packet<'_>) -> bool {
        let mut others = self.others.lock().expect("nobody panics with it");
        let Some((_, next)) = others.iter_mut().find(|(path, _)| *path == packet.path) else {
            if others.len() == PATHS {
                others.remove(0);
            }
            others.push((packet.path, packet.number + 1));
            return true;
        };
        let newest = packet.number >= *next;
        if newest {
            *next = packet.number + 1;
        }
        newest
    }
}

impl Known {
    /// Where packets to the client leave from, once it is known.
    pub(crate) fn place(&self) -> Option<Place> {
        self.place
    }

    /// Another host hears the client there, and this one does not hear it at all.
    pub(crate) fn told(&mut self, place: Place) {
        self.place = Some(place);
    }

    /// Where the answer to a PATH_CHALLENGE leaves from, if it was asked elsewhere.
    pub(crate) fn asked(&self, data: [u8; 8]) -> Option<Place> {
        let mut challenges = self.challenges.iter();
        let (_, place) = challenges.find(|(asked, _)| *asked == data)?;
        Some(*place)
    }

    /// Takes in what a packet of `payload` says by where it came.
    pub(crate) fn sighted(&mut self, path: &Path, sighting: &Sighting, payload: &[u8]) {
        let mut probes = true;
        for frame in frames::read(payload) {
            match frame {
                Frame::PathChallenge { data } => {
                    if self.challenges.len() == CHALLENGES {
                        self.challenges.remove(0);
                    }
                    self.challenges.push((data, sighting.place));
                }
                Frame::PathResponse { .. } | Frame::Probing => {}
                _ => probes = false,
            }
        }
        if sighting.newest && !probes {
            self.settle(&path.places, sighting.client, sighting.place);
        }
    }

    fn settle(&mut self, places: &Places, client: SocketAddr, place: Place) {
        let before = self.place.unwrap_or_else(|| places.began(client));
        let counter = match (before, place) {
            (Place::Vip, Place::Cookie(_)) => Some(&places.moved),
            (Place::Detour(_), Place::Vip | Place::Cookie(_) | Place::Plain(_)) => {
                Some(&places.returned)
            }
            _ => None,
        };
        if let Some(counter) = counter.filter(|_| !self.left) {
            counter.fetch_add(1, Relaxed);
            self.left = true;
        }
        self.place = Some(place);
        places.settle(client, place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::places::Tag;

    const PING: &[u8] = &[0x01];
    const CHALLENGE: &[u8] = &[0x1a, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0];
    const COOKIE: Place = Place::Cookie(0);

    fn client() -> SocketAddr {
        "[2001:db8::1]:1".parse().expect("an address")
    }

    /// A connection whose client opened it at the VIP.
    struct Connection {
        places: Arc<Places>,
        path: Path,
        known: Known,
    }

    impl Connection {
        fn new(places: &Arc<Places>) -> Self {
            places.came(client(), Place::Vip, &[0xc0; 40], 40);
            Self {
                places: places.clone(),
                path: Path::new(places.clone()),
                known: Known::default(),
            }
        }

        /// A datagram comes that no key opens.
        fn forged(&self, number: u64, place: Place) -> Tag {
            let tag = u128::from(number).to_be_bytes();
            let datagram = [&[0x40; 24], &tag[..]].concat();
            self.places.came(client(), place, &datagram, 40);
            tag
        }

        /// A packet comes; where the client is then.
        fn packet(&mut self, number: u64, place: Place, payload: &[u8]) -> Option<Place> {
            self.packet_of(0, number, place, payload)
        }

        fn packet_of(
            &mut self,
            path: u32,
            number: u64,
            place: Place,
            payload: &[u8],
        ) -> Option<Place> {
            let tag = self.forged(number, place);
            let packet = Packet {
                path,
                number,
                generation: 0,
                header: &[],
                payload,
                tag: Some(&tag),
            };
            if let Some(sighting) = self.path.received(&packet) {
                self.known.sighted(&self.path, &sighting, payload);
            }
            self.known.place()
        }

        fn moved(&self) -> u64 {
            self.places.moved.load(Relaxed)
        }
    }

    #[test]
    fn the_newest_packet_says_where_the_client_is() {
        let mut connection = Connection::new(&Arc::default());
        assert_eq!(connection.packet(0, Place::Vip, PING), Some(Place::Vip));
        assert_eq!(connection.packet(3, COOKIE, PING), Some(COOKIE));
        // Sent before, or once more by somebody else.
        assert_eq!(connection.packet(2, Place::Vip, PING), Some(COOKIE));
        assert_eq!(connection.packet(3, Place::Vip, PING), Some(COOKIE));
        assert_eq!(connection.moved(), 1);
        assert_eq!(connection.packet(4, Place::Vip, PING), Some(Place::Vip));
        assert_eq!(connection.packet(5, COOKIE, PING), Some(COOKIE));
        assert_eq!(connection.moved(), 1);
    }

    #[test]
    fn paths_count_apart() {
        let mut connection = Connection::new(&Arc::default());
        let mut packet = |path, number, place| connection.packet_of(path, number, place, PING);
        assert_eq!(packet(0, 90, Place::Vip), Some(Place::Vip));
        assert_eq!(packet(1, 5, COOKIE), Some(COOKIE));
        assert_eq!(packet(1, 4, Place::Vip), Some(COOKIE));
        assert_eq!(packet(2, 0, Place::Vip), Some(Place::Vip));
        // So many others that the first of them is forgotten.
        for path in 3..20 {
            assert_eq!(packet(path, 0, COOKIE), Some(COOKIE));
        }
        assert_eq!(packet(2, 0, Place::Vip), Some(Place::Vip));
    }

    #[test]
    fn a_client_that_completes_its_handshake_elsewhere_has_moved() {
        let places = Arc::<Places>::default();
        let mut connection = Connection::new(&places);
        // Its answers go where it completes the handshake.
        places.came(client(), COOKIE, &[0xe0; 40], 40);
        assert_eq!(places.of(client()), COOKIE);
        assert_eq!(connection.packet(0, COOKIE, PING), Some(COOKIE));
        assert_eq!(connection.moved(), 1);
        // The next connection of that port begins anew.
        places.came(client(), COOKIE, &[0xc0; 40], 40);
        let mut next = Known::default();
        next.settle(&places, client(), COOKIE);
        assert_eq!(connection.moved(), 1);
    }

    #[test]
    fn what_no_key_opens_says_nothing() {
        let places = Arc::<Places>::default();
        let mut connection = Connection::new(&places);
        connection.packet(0, Place::Vip, PING);
        connection.packet(1, COOKIE, PING);
        for number in 2..100 {
            connection.forged(number, Place::Vip);
        }
        places.came(client(), Place::Vip, &[0xc0; 40], 40);
        assert_eq!(connection.known.place(), Some(COOKIE));
        assert_eq!(connection.packet(100, COOKIE, PING), Some(COOKIE));
        assert_eq!(places.of(client()), COOKIE);
    }

    #[test]
    fn a_probe_is_answered_where_it_came_and_moves_nobody() {
        let mut connection = Connection::new(&Arc::default());
        connection.packet(0, Place::Vip, PING);
        assert_eq!(connection.packet(1, COOKIE, CHALLENGE), Some(Place::Vip));
        assert_eq!(
            connection.known.asked([1, 2, 3, 4, 5, 6, 7, 8]),
            Some(COOKIE)
        );
        assert_eq!(connection.known.asked([0; 8]), None);
        // The last questions are remembered.
        for number in 0..9 {
            let mut payload = [number; 9];
            payload[0] = 0x1a;
            connection.packet(2 + u64::from(number), COOKIE, &payload);
        }
        assert_eq!(connection.known.asked([1, 2, 3, 4, 5, 6, 7, 8]), None);
        assert_eq!(connection.known.asked([8; 8]), Some(COOKIE));
    }

    #[test]
    fn connections_of_one_port_are_where_each_is() {
        let places = Arc::<Places>::default();
        let mut first = Connection::new(&places);
        first.packet(0, COOKIE, PING);
        let mut second = Connection::new(&places);
        assert_eq!(second.packet(0, Place::Vip, PING), Some(Place::Vip));
        assert_eq!(first.known.place(), Some(COOKIE));
        assert_eq!(second.packet(1, COOKIE, PING), Some(COOKIE));
        assert_eq!(second.moved(), 2);
    }
}
