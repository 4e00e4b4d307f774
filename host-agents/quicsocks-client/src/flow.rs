// SPDX-License-Identifier: Apache-2.0
//! The client's side of a flow at the proxy, for programs with their own QUIC stack and sockets. It does no I/O.
//!
//! It adds and removes the SOCKS header, reads the proxy's report about the name, and decides when to probe the direct
//! path. The C library and the `LD_PRELOAD` library use it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::probe::{self, Ids};
use crate::socks::{self, Destination, Reply};

/// Time between two probes.
const PROBE_INTERVAL: Duration = Duration::from_millis(500);
/// Number of probes.
const MAX_PROBES: u32 = 6;

/// A received datagram.
#[derive(Debug, PartialEq, Eq)]
pub enum Received<'a> {
    /// A packet of the server that the proxy forwarded.
    Proxied(&'a [u8]),
    /// A packet of the server on the direct path.
    Direct(&'a [u8]),
    /// The proxy's report, an answer to the probe, or a datagram of another sender.
    Nothing,
}

/// A flow to one name, and the state of the probe of its direct path.
#[derive(Debug)]
pub struct Flow {
    destination: Destination,
    header: Vec<u8>,
    relay: SocketAddr,
    server: Option<SocketAddr>,
    rejected: Option<Reply>,
    ids: Ids,
    probes: u32,
    probed: Option<Instant>,
    answered: bool,
}

impl Flow {
    /// Create a flow to `destination` through the proxy's UDP address `relay`. `ids` are those of the probe.
    pub fn new(destination: Destination, relay: SocketAddr, ids: Ids) -> Self {
        Self {
            header: socks::encode_header(&destination),
            destination,
            relay,
            server: None,
            rejected: None,
            ids,
            probes: 0,
            probed: None,
            answered: false,
        }
    }

    /// Return the header of datagrams to the proxy. A datagram without payload releases the proxy's flow.
    pub fn header(&self) -> &[u8] {
        &self.header
    }

    /// Return the proxy's address for datagrams.
    pub const fn relay(&self) -> SocketAddr {
        self.relay
    }

    /// Return the server's address, once the proxy has reported it.
    pub const fn server(&self) -> Option<SocketAddr> {
        self.server
    }

    /// Return the reason why the proxy cannot reach the server, once it has reported one.
    pub const fn rejected(&self) -> Option<Reply> {
        self.rejected
    }

    /// Return true if the server has answered a probe of the direct path.
    pub const fn is_reachable(&self) -> bool {
        self.answered
    }

    /// Return true if the server has answered none of the probes in time.
    pub fn is_unreachable(&self, now: Instant) -> bool {
        !self.answered && self.probes == MAX_PROBES && self.is_due(now)
    }

    /// Process a datagram from the network.
    pub fn receive<'a>(&mut self, from: SocketAddr, datagram: &'a [u8]) -> Received<'a> {
        if from == self.relay {
            match socks::parse_datagram(datagram) {
                Ok((Destination::Address(_), packet)) => return Received::Proxied(packet),
                Ok((name, report)) if name == self.destination => self.on_report(report),
                _ => {}
            }
        } else if Some(from) == self.server {
            if !probe::is_answer(datagram, &self.ids) {
                return Received::Direct(datagram);
            }
            self.answered = true;
        }
        Received::Nothing
    }

    fn on_report(&mut self, report: &[u8]) {
        match socks::parse_reply(report) {
            Ok((Reply::Succeeded, Destination::Address(address))) => self.server = Some(address),
            Ok((Reply::Succeeded, Destination::Name(..))) | Err(_) => {}
            Ok((reply, _)) => self.rejected = Some(reply),
        }
    }

    /// Return the server and a probe to send to it, if one is due.
    pub fn probe(&mut self, now: Instant) -> Option<(SocketAddr, Vec<u8>)> {
        let server = self.server?;
        if self.answered || self.probes == MAX_PROBES || !self.is_due(now) {
            return None;
        }
        self.probes += 1;
        self.probed = Some(now);
        Some((server, probe::encode(&self.ids)))
    }

    /// Return when the next probe is due, or when the last one counts as unanswered.
    pub fn next_probe(&self) -> Option<Instant> {
        let probed = self.probed.filter(|_| !self.answered)?;
        Some(probed + PROBE_INTERVAL)
    }

    fn is_due(&self, now: Instant) -> bool {
        self.probed.is_none_or(|at| now - at >= PROBE_INTERVAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: &[u8] = &[0x40, 1, 2, 3];
    const IDS: Ids = [7; 16];

    fn server() -> SocketAddr {
        "192.0.2.1:443".parse().unwrap()
    }

    fn relay() -> SocketAddr {
        "198.51.100.1:1080".parse().unwrap()
    }

    fn name(name: &str) -> Destination {
        Destination::name(name.as_bytes(), 443).unwrap()
    }

    fn flow() -> Flow {
        Flow::new(name("films.example"), relay(), IDS)
    }

    fn report(flow: &mut Flow, about: &str, reply: Reply) {
        let mut wire = socks::encode_header(&name(about));
        wire.extend(socks::encode_reply(reply, server()));
        assert_eq!(flow.receive(relay(), &wire), Received::Nothing);
    }

    #[test]
    fn report_about_the_name_starts_the_probes() {
        let (mut flow, start) = (flow(), Instant::now());
        assert_eq!(flow.probe(start), None, "the address is unknown");
        report(&mut flow, "other.example", Reply::Succeeded);
        assert_eq!(flow.server(), None, "a report about another name");
        report(&mut flow, "films.example", Reply::Succeeded);
        assert_eq!(flow.server(), Some(server()));
        let mut probes = 0;
        for ms in (0..20_000).step_by(100) {
            let now = start + Duration::from_millis(ms);
            probes += u32::from(flow.probe(now).is_some());
            assert_eq!(flow.is_unreachable(now), ms >= 3000, "{ms}");
        }
        assert_eq!(probes, MAX_PROBES);
    }

    #[test]
    fn answer_ends_the_probes() {
        let (mut flow, start) = (flow(), Instant::now());
        report(&mut flow, "films.example", Reply::Succeeded);
        let (to, packet) = flow.probe(start).unwrap();
        assert_eq!((to, packet.len()), (server(), 1200));
        assert_eq!(flow.next_probe(), Some(start + PROBE_INTERVAL));
        let answer = probe::answer(&IDS);
        assert_eq!(flow.receive(server(), &answer), Received::Nothing);
        assert!(flow.is_reachable());
        assert_eq!(flow.next_probe(), None);
        let later = start + Duration::from_secs(60);
        assert!(flow.probe(later).is_none() && !flow.is_unreachable(later));
    }

    #[test]
    fn packets_are_told_apart_by_their_path() {
        let mut flow = flow();
        let mut wire = socks::encode_header(&Destination::Address(server()));
        wire.extend(PACKET);
        assert_eq!(flow.receive(relay(), &wire), Received::Proxied(PACKET));
        assert_eq!(flow.receive(relay(), PACKET), Received::Nothing);
        assert_eq!(flow.receive(server(), PACKET), Received::Nothing);
        report(&mut flow, "films.example", Reply::Succeeded);
        assert_eq!(flow.receive(server(), PACKET), Received::Direct(PACKET));
        let stranger = "203.0.113.9:443".parse().unwrap();
        assert_eq!(flow.receive(stranger, PACKET), Received::Nothing);
    }

    #[test]
    fn failure_of_the_proxy_is_kept() {
        let mut flow = flow();
        report(&mut flow, "films.example", Reply::HostUnreachable);
        assert_eq!(flow.rejected(), Some(Reply::HostUnreachable));
        assert_eq!(flow.server(), None);
    }
}
