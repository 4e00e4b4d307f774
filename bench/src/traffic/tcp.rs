// SPDX-License-Identifier: Apache-2.0
//! Downloads over TCP and IPv4.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::Range;

use anyhow::Result;
use frontage_cookie::tcp;
use frontage_simulator::scenario::Secret;
use serde::Deserialize;

use super::packet::{
    FIRST_CLIENT_PORT, FLOWS, FLOWS_PER_CONNECTION, Link, Packet, arriving, leaving,
};
use crate::frame::{self, ACK, SYN, Segment};

/// Downloads: two full segments of the server for each acknowledgment of a client, and some new connections.
#[derive(Deserialize)]
pub struct Frontage {
    outside: Link,
    /// One client per network.
    clients: Vec<Ipv4Addr>,
    services: Vec<Service>,
    key_id: u32,
    secret: Secret,
}

#[derive(Deserialize)]
struct Service {
    vip: SocketAddrV4,
    servers: Vec<Server>,
}

#[derive(Deserialize)]
struct Server {
    sid: u16,
    address: SocketAddrV4,
    inside: Link,
}

/// Payload of an IP packet of 1,500 bytes: it has two headers of 20 bytes and 12 bytes of timestamps.
const FULL_PAYLOAD: usize = 1448;

/// Number of connections of one client address.
const PORTS_PER_HOST: u64 = 40_000;

impl Frontage {
    pub fn packets(&self) -> Result<Vec<Packet>> {
        let key = tcp::Key::new(self.key_id, &self.secret.0);
        let mut packets = Vec::new();
        for i in 0..FLOWS {
            let client_ip = self.clients[usize::from(i) % self.clients.len()];
            let client = SocketAddrV4::new(client_ip, FIRST_CLIENT_PORT + i);
            let flow = self.flow(&key, usize::from(i), client)?;
            let sid = flow.server.sid;
            // Loads differ among servers and change from flow to flow.
            let n_af = u64::from(i % 40 + sid % 7);
            let signals = tcp::Signals {
                rpt_us: 200 * u64::from(i % 50),
                n_af,
                n_ff: n_af / 3,
            };
            packets.extend([flow.down(signals), flow.down(signals), flow.up()]);
            if i % FLOWS_PER_CONNECTION == 0 {
                packets.push(flow.syn());
            }
        }
        Ok(packets)
    }

    /// Returns acknowledgments of established connections with these numbers, all different.
    pub fn acknowledgments(&self, numbers: Range<u64>) -> Result<Vec<Packet>> {
        let key = tcp::Key::new(self.key_id, &self.secret.0);
        let clients = self.clients.len() as u64;
        let acknowledgment = |number| {
            let (round, client) = (number / clients, (number % clients) as usize);
            let (host, port) = (round / PORTS_PER_HOST, round % PORTS_PER_HOST);
            let host = Ipv4Addr::from_bits(self.clients[client].to_bits() + u32::try_from(host)?);
            let client = SocketAddrV4::new(host, FIRST_CLIENT_PORT + port as u16);
            Ok(self.flow(&key, usize::try_from(number)?, client)?.up())
        };
        numbers.map(acknowledgment).collect()
    }

    /// Returns a connection, which the services and their servers share evenly.
    fn flow<'a>(
        &'a self,
        key: &'a tcp::Key,
        number: usize,
        client: SocketAddrV4,
    ) -> Result<Flow<'a>> {
        let count = self.services.len();
        let service = &self.services[number % count];
        let server = &service.servers[number / count % service.servers.len()];
        Ok(Flow {
            site: self,
            key,
            client,
            vip: service.vip,
            sid: tcp::Sid::new(server.sid)?,
            server,
        })
    }
}

struct Flow<'a> {
    site: &'a Frontage,
    key: &'a tcp::Key,
    client: SocketAddrV4,
    vip: SocketAddrV4,
    sid: tcp::Sid,
    server: &'a Server,
}

const CLOCK_MS: u32 = 1 << 30;
const CLIENT_CLOCK: u32 = 77_000;

impl Flow<'_> {
    /// Returns the TSval that the client sees.
    fn static_cookie(&self) -> u32 {
        let (client, vip) = (self.client, self.vip);
        let tuple = tcp::Tuple::v4(*client.ip(), *vip.ip(), client.port(), vip.port());
        self.key
            .encode_static(&tuple, self.sid, tcp::coarse_clock(CLOCK_MS))
    }

    fn up(&self) -> Packet {
        let (from, to) = (&self.site.outside, &self.server.inside);
        let segment = Segment {
            flags: ACK,
            ck: false,
            tsval: CLIENT_CLOCK,
            tsecr: self.static_cookie(),
            payload: 0,
        };
        let out = frame::tcp(&leaving(to, self.client, self.server.address), &segment);
        packet("up", (from, self.client, self.vip), &segment, to, Some(out))
    }

    fn syn(&self) -> Packet {
        let (from, to) = (&self.site.outside, &self.server.inside);
        let segment = Segment {
            flags: SYN,
            ck: false,
            tsval: CLIENT_CLOCK,
            tsecr: 0,
            payload: 0,
        };
        // Its server depends on the current loads.
        packet("syn", (from, self.client, self.vip), &segment, to, None)
    }

    fn down(&self, signals: tcp::Signals) -> Packet {
        let (from, to) = (&self.server.inside, &self.site.outside);
        let segment = Segment {
            flags: ACK,
            ck: true,
            tsval: tcp::encode_dynamic(CLOCK_MS, signals),
            tsecr: CLIENT_CLOCK,
            payload: FULL_PAYLOAD,
        };
        let masked = Segment {
            ck: false,
            tsval: self.static_cookie(),
            ..segment
        };
        let out = frame::tcp(&leaving(to, self.vip, self.client), &masked);
        packet(
            "down",
            (from, self.server.address, self.client),
            &segment,
            to,
            Some(out),
        )
    }
}

fn packet(
    kind: &'static str,
    (from, src, dst): (&Link, SocketAddrV4, SocketAddrV4),
    segment: &Segment,
    to: &Link,
    out_frame: Option<Vec<u8>>,
) -> Packet {
    let frame = frame::tcp(&arriving(from, src, dst), segment);
    Packet {
        kind,
        port: from.port,
        frame,
        out_port: to.port,
        out_frame,
    }
}
