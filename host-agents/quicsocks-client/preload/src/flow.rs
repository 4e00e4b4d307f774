// SPDX-License-Identifier: Apache-2.0
//! The path of one UDP socket's datagrams: first through the proxy, then directly. A pure state machine.
//!
//! ```text
//!   Proxied ---- the server answers the probe, and the handshake is old enough ----> Trying
//!   Trying ----- a datagram arrives from the server --------------------------------> Direct
//!   Trying ----- none arrives in time ----------------------------------------------> Refused: through the proxy
//! ```
//!
//! The program's QUIC stack is not involved. To it and to the server, the change looks like a NAT rebinding
//! (RFC 9000, section 9.3): the server validates the new path.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use frontage_quicsocks_client::probe::{self, Ids};
use frontage_quicsocks_client::socks::{self, Destination, Reply};

/// Time within which the server must answer the first datagram on the direct path.
const TRIAL: Duration = Duration::from_secs(3);
/// Time between two probes, and their number.
const PROBE_INTERVAL: Duration = Duration::from_millis(500);
const PROBES: u32 = 6;

/// The destination of a datagram of the program.
#[derive(Debug, PartialEq, Eq)]
pub enum Way {
    /// To the proxy, after the SOCKS header.
    Proxy,
    Server(SocketAddr),
}

/// A received datagram.
#[derive(Debug, PartialEq, Eq)]
pub enum Received<'a> {
    /// For the program.
    Payload(&'a [u8]),
    /// For this library, or from a stranger.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Proxied,
    Trying { since: Instant },
    Direct,
    Refused,
}

/// A socket's datagrams from and to one server.
#[derive(Debug)]
pub struct Flow {
    header: Vec<u8>,
    relay: SocketAddr,
    server: Option<SocketAddr>,
    /// The reason why the proxy cannot reach the server.
    pub rejected: Option<Reply>,
    state: State,
    ids: Ids,
    probes: u32,
    probed: Option<Instant>,
    answered: bool,
    began: Option<Instant>,
    /// Time at which the handshake counts as confirmed: twice the time until the client's first short header.
    confirmed: Option<Instant>,
    releases: bool,
}

impl Flow {
    /// Create the flow of a socket to a name, through the proxy's UDP socket `relay`. `ids` are those of the probe.
    pub fn new(destination: &Destination, relay: SocketAddr, ids: Ids) -> Self {
        Self {
            header: socks::encode_header(destination),
            relay,
            server: None,
            rejected: None,
            state: State::Proxied,
            ids,
            probes: 0,
            probed: None,
            answered: false,
            began: None,
            confirmed: None,
            releases: false,
        }
    }

    /// The header of datagrams to the proxy. Alone, it releases the proxy's flow.
    pub fn header(&self) -> &[u8] {
        &self.header
    }

    /// The proxy's address for datagrams.
    pub const fn relay(&self) -> SocketAddr {
        self.relay
    }

    /// Return the path of a datagram that the program sends.
    pub fn send(&mut self, packet: &[u8], now: Instant) -> Way {
        let began = *self.began.get_or_insert(now);
        let is_short = packet.first().is_some_and(|first| first & 0x80 == 0);
        if is_short && self.confirmed.is_none() {
            self.confirmed = Some(now + (now - began));
        }
        match (self.state, self.server) {
            (State::Proxied, Some(server))
                if is_short && self.answered && self.confirmed.is_some_and(|at| now >= at) =>
            {
                self.state = State::Trying { since: now };
                Way::Server(server)
            }
            (State::Trying { since }, _) if now - since > TRIAL => {
                self.state = State::Refused;
                Way::Proxy
            }
            (State::Trying { .. } | State::Direct, Some(server)) => Way::Server(server),
            _ => Way::Proxy,
        }
    }

    /// Receive a datagram from the network.
    pub fn receive<'a>(&mut self, from: SocketAddr, datagram: &'a [u8]) -> Received<'a> {
        if from == self.relay {
            match socks::parse_datagram(datagram) {
                Ok((Destination::Address(_), payload)) => Received::Payload(payload),
                Ok((Destination::Name(..), report)) => {
                    self.note(report);
                    Received::Nothing
                }
                Err(_) => Received::Nothing,
            }
        } else if Some(from) == self.server {
            if probe::is_answer(datagram, &self.ids) {
                self.answered = true;
                return Received::Nothing;
            }
            if let State::Trying { .. } = self.state {
                self.state = State::Direct;
                self.releases = true;
            }
            Received::Payload(datagram)
        } else {
            Received::Nothing
        }
    }

    /// Return the server and the probe to send to it, if one is due.
    pub fn probe(&mut self, now: Instant) -> Option<(SocketAddr, Vec<u8>)> {
        let server = self.server?;
        let is_due = self.probed.is_none_or(|at| now - at >= PROBE_INTERVAL);
        if self.answered || self.probes >= PROBES || !is_due {
            return None;
        }
        self.probes += 1;
        self.probed = Some(now);
        Some((server, probe::encode(&self.ids)))
    }

    /// Return once whether the proxy's flow is no longer needed.
    pub fn releases(&mut self) -> bool {
        std::mem::take(&mut self.releases)
    }

    /// Return whether datagrams go directly.
    pub fn is_direct(&self) -> bool {
        self.state == State::Direct
    }

    /// Receive the proxy's report about the name.
    fn note(&mut self, report: &[u8]) {
        match socks::parse_reply(report) {
            Ok((Reply::Succeeded, Destination::Address(address))) => self.server = Some(address),
            Ok((Reply::Succeeded, Destination::Name(..))) | Err(_) => {}
            Ok((reply, _)) => self.rejected = Some(reply),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: &[u8] = &[0x40, 1, 2, 3];
    const LONG: &[u8] = &[0xc0, 0, 0, 0, 1];

    struct Bed {
        flow: Flow,
        at: Instant,
        ids: Ids,
    }

    fn server() -> SocketAddr {
        "192.0.2.1:443".parse().unwrap()
    }

    fn relay() -> SocketAddr {
        "198.51.100.1:1080".parse().unwrap()
    }

    impl Bed {
        fn new() -> Self {
            let ids = [7; 16];
            let name = Destination::name(b"films.example", 443).unwrap();
            Self {
                flow: Flow::new(&name, relay(), ids),
                at: Instant::now(),
                ids,
            }
        }

        /// Let the proxy report an address, or a failure.
        fn report(&mut self, reply: Reply) {
            let name = Destination::name(b"films.example", 443).unwrap();
            let mut wire = socks::encode_header(&name);
            wire.extend(socks::encode_reply(reply, server()));
            assert_eq!(self.flow.receive(relay(), &wire), Received::Nothing);
        }

        fn send(&mut self, packet: &[u8], ms: u64) -> Way {
            self.flow.send(packet, self.at + Duration::from_millis(ms))
        }

        /// Answer the current probe, as a server does.
        fn answer(&mut self, ms: u64) {
            let now = self.at + Duration::from_millis(ms);
            let (to, packet) = self.flow.probe(now).unwrap();
            assert_eq!(to, server());
            assert_eq!(packet.len(), 1200);
            let mut answer = vec![0x80, 0, 0, 0, 0, 8];
            answer.extend(&self.ids[8..]);
            answer.push(8);
            answer.extend(&self.ids[..8]);
            answer.extend([0, 0, 0, 1]);
            assert_eq!(self.flow.receive(server(), &answer), Received::Nothing);
        }

        fn pass_on(&mut self, payload: &[u8]) {
            let mut wire = socks::encode_header(&Destination::Address(server()));
            wire.extend(payload);
            assert_eq!(
                self.flow.receive(relay(), &wire),
                Received::Payload(payload)
            );
        }
    }

    #[test]
    fn goes_directly_after_a_confirmed_handshake() {
        let mut bed = Bed::new();
        assert_eq!(bed.send(LONG, 0), Way::Proxy);
        assert!(bed.flow.probe(bed.at).is_none(), "the address is unknown");
        bed.report(Reply::Succeeded);
        bed.answer(20);
        bed.pass_on(LONG);
        assert_eq!(bed.send(SHORT, 40), Way::Proxy);
        // 40 ms until the first short header: confirmed after another 40 ms.
        assert_eq!(bed.send(SHORT, 79), Way::Proxy);
        assert_eq!(bed.send(LONG, 81), Way::Proxy);
        assert_eq!(bed.send(SHORT, 82), Way::Server(server()));
        assert!(!bed.flow.releases());
        bed.pass_on(SHORT);
        assert_eq!(bed.flow.receive(server(), SHORT), Received::Payload(SHORT));
        assert!(bed.flow.is_direct());
        assert!(bed.flow.releases());
        assert!(!bed.flow.releases(), "once");
        assert_eq!(bed.send(SHORT, 90_000), Way::Server(server()));
    }

    #[test]
    fn stays_at_the_proxy_without_an_answer_to_the_probe() {
        let mut bed = Bed::new();
        assert_eq!(bed.send(LONG, 0), Way::Proxy);
        bed.report(Reply::Succeeded);
        let mut probes = 0;
        for ms in (0..20_000).step_by(100) {
            probes += u32::from(bed.flow.probe(bed.at + Duration::from_millis(ms)).is_some());
            assert_eq!(bed.send(SHORT, ms), Way::Proxy);
        }
        assert_eq!(probes, PROBES);
    }

    #[test]
    fn returns_to_the_proxy_if_the_server_rejects_the_new_path() {
        let mut bed = Bed::new();
        bed.send(LONG, 0);
        bed.report(Reply::Succeeded);
        bed.answer(10);
        bed.send(SHORT, 20);
        assert_eq!(bed.send(SHORT, 50), Way::Server(server()));
        bed.pass_on(SHORT);
        assert_eq!(bed.send(SHORT, 3000), Way::Server(server()));
        assert_eq!(bed.send(SHORT, 3100), Way::Proxy);
        assert_eq!(bed.send(SHORT, 3200), Way::Proxy, "for good");
        assert!(!bed.flow.releases());
    }

    #[test]
    fn strangers_are_not_heard() {
        let mut bed = Bed::new();
        bed.send(LONG, 0);
        let stranger = "203.0.113.9:443".parse().unwrap();
        assert_eq!(bed.flow.receive(stranger, SHORT), Received::Nothing);
        assert_eq!(bed.flow.receive(server(), SHORT), Received::Nothing);
        assert_eq!(bed.flow.receive(relay(), &[1, 2]), Received::Nothing);
    }

    #[test]
    fn failure_of_the_proxy_is_kept() {
        let mut bed = Bed::new();
        bed.send(LONG, 0);
        bed.report(Reply::HostUnreachable);
        assert_eq!(bed.flow.rejected, Some(Reply::HostUnreachable));
        assert!(bed.flow.probe(bed.at).is_none());
    }
}
