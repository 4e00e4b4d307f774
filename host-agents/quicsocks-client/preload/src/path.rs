// SPDX-License-Identifier: Apache-2.0
//! The path of one UDP socket's datagrams: first through the proxy, then directly. It does no I/O.
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

use frontage_quicsocks_client::flow::{Flow, Received};

/// Time within which the server must answer the first datagram on the direct path.
const TRIAL: Duration = Duration::from_secs(3);

/// The destination of a datagram of the program.
#[derive(Debug, PartialEq, Eq)]
pub enum Way {
    /// To the proxy, after the SOCKS header.
    Proxy,
    Server(SocketAddr),
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
pub struct Path {
    pub flow: Flow,
    state: State,
    began: Option<Instant>,
    /// Time at which the handshake counts as confirmed: twice the time until the client's first short header.
    confirmed: Option<Instant>,
    releases: bool,
}

impl Path {
    /// Create the path of a socket's datagrams, which begins as `flow` at the proxy.
    pub const fn new(flow: Flow) -> Self {
        Self {
            flow,
            state: State::Proxied,
            began: None,
            confirmed: None,
            releases: false,
        }
    }

    /// Return the path of a datagram that the program sends.
    pub fn send(&mut self, packet: &[u8], now: Instant) -> Way {
        let began = *self.began.get_or_insert(now);
        let is_short = packet.first().is_some_and(|first| first & 0x80 == 0);
        if is_short && self.confirmed.is_none() {
            self.confirmed = Some(now + (now - began));
        }
        let is_confirmed = self.confirmed.is_some_and(|at| now >= at);
        match (self.state, self.flow.server()) {
            (State::Proxied, Some(server))
                if is_short && self.flow.is_reachable() && is_confirmed =>
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

    /// Process a datagram from the network. Return its payload for the program, if any.
    pub fn receive<'a>(&mut self, from: SocketAddr, datagram: &'a [u8]) -> Option<&'a [u8]> {
        match self.flow.receive(from, datagram) {
            Received::Nothing => None,
            Received::Proxied(packet) => Some(packet),
            Received::Direct(packet) => {
                if let State::Trying { .. } = self.state {
                    self.state = State::Direct;
                    self.releases = true;
                }
                Some(packet)
            }
        }
    }

    /// Return true once, when the proxy's flow is no longer needed.
    pub fn releases(&mut self) -> bool {
        std::mem::take(&mut self.releases)
    }

    /// Return true if datagrams go directly.
    pub fn is_direct(&self) -> bool {
        self.state == State::Direct
    }
}

#[cfg(test)]
mod tests {
    use frontage_quicsocks_client::socks::{self, Destination, Reply};

    use super::*;

    const SHORT: &[u8] = &[0x40, 1, 2, 3];
    const LONG: &[u8] = &[0xc0, 0, 0, 0, 1];

    struct Bed {
        path: Path,
        at: Instant,
    }

    fn server() -> SocketAddr {
        "192.0.2.1:443".parse().unwrap()
    }

    fn relay() -> SocketAddr {
        "198.51.100.1:1080".parse().unwrap()
    }

    impl Bed {
        /// Create a path whose name the proxy has resolved.
        fn new() -> Self {
            let name = Destination::name(b"films.example", 443).unwrap();
            let mut report = socks::encode_header(&name);
            report.extend(socks::encode_reply(Reply::Succeeded, server()));
            let mut path = Path::new(Flow::new(name, relay(), [7; 16]));
            assert_eq!(path.receive(relay(), &report), None);
            Self {
                path,
                at: Instant::now(),
            }
        }

        fn send(&mut self, packet: &[u8], ms: u64) -> Way {
            self.path.send(packet, self.at + Duration::from_millis(ms))
        }

        /// Answer the current probe, as a server does: with its connection ids in reverse order.
        fn answer(&mut self, ms: u64) {
            let now = self.at + Duration::from_millis(ms);
            let (to, packet) = self.path.flow.probe(now).unwrap();
            assert_eq!(to, server());
            let (destination, source) = (&packet[5..14], &packet[14..23]);
            let answer = [&[0x80, 0, 0, 0, 0], source, destination, &[0, 0, 0, 1]].concat();
            assert_eq!(self.path.receive(server(), &answer), None);
            assert!(self.path.flow.is_reachable());
        }

        fn pass_on(&mut self, payload: &[u8]) {
            let mut wire = socks::encode_header(&Destination::Address(server()));
            wire.extend(payload);
            assert_eq!(self.path.receive(relay(), &wire), Some(payload));
        }
    }

    #[test]
    fn goes_directly_after_a_confirmed_handshake() {
        let mut bed = Bed::new();
        assert_eq!(bed.send(LONG, 0), Way::Proxy);
        bed.answer(20);
        bed.pass_on(LONG);
        assert_eq!(bed.send(SHORT, 40), Way::Proxy);
        // 40 ms until the first short header: confirmed after another 40 ms.
        assert_eq!(bed.send(SHORT, 79), Way::Proxy);
        assert_eq!(bed.send(LONG, 81), Way::Proxy);
        assert_eq!(bed.send(SHORT, 82), Way::Server(server()));
        assert!(!bed.path.releases());
        bed.pass_on(SHORT);
        assert_eq!(bed.path.receive(server(), SHORT), Some(SHORT));
        assert!(bed.path.is_direct());
        assert!(bed.path.releases());
        assert!(!bed.path.releases(), "once");
        assert_eq!(bed.send(SHORT, 90_000), Way::Server(server()));
    }

    #[test]
    fn stays_at_the_proxy_without_an_answer_to_the_probe() {
        let mut bed = Bed::new();
        assert_eq!(bed.send(LONG, 0), Way::Proxy);
        for ms in (0..20_000).step_by(100) {
            let _ = bed.path.flow.probe(bed.at + Duration::from_millis(ms));
            assert_eq!(bed.send(SHORT, ms), Way::Proxy);
        }
    }

    #[test]
    fn returns_to_the_proxy_if_the_server_rejects_the_new_path() {
        let mut bed = Bed::new();
        bed.send(LONG, 0);
        bed.answer(10);
        bed.send(SHORT, 20);
        assert_eq!(bed.send(SHORT, 50), Way::Server(server()));
        bed.pass_on(SHORT);
        assert_eq!(bed.send(SHORT, 3000), Way::Server(server()));
        assert_eq!(bed.send(SHORT, 3100), Way::Proxy);
        assert_eq!(bed.send(SHORT, 3200), Way::Proxy, "for good");
        assert!(!bed.path.releases());
    }
}
