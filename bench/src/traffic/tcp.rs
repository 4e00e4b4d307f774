// SPDX-License-Identifier: Apache-2.0
//! Downloads over TCP and IPv4.

use std::net::{Ipv4Addr, SocketAddrV4};

use anyhow::Result;
use frontage_cookie::tcp;
use frontage_simulator::scenario::Secret;
use serde::Deserialize;

use super::packet::{
    FIRST_CLIENT_PORT, FLOWS, FLOWS_PER_CONNECTION, Link, Packet, arriving, leaving,
};
use crate::frame::{self, ACK, SYN, Segment};

/// Downloads from one service: two full segments of the server for each acknowledgment of a client, and some new
/// connections.
#[derive(Deserialize)]
pub struct Frontage {
    outside: Link,
    inside: Link,
    clients: Vec<Ipv4Addr>,
    vip: SocketAddrV4,
    servers: Vec<(u16, SocketAddrV4)>,
    key_id: u32,
    secret: Secret,
}

/// Payload of an IP packet of 1,500 bytes: it has two headers of 20 bytes and 12 bytes of timestamps.
const FULL_PAYLOAD: usize = 1448;

impl Frontage {
    pub fn packets(&self) -> Result<Vec<Packet>> {
        let key = tcp::Key::new(self.key_id, &self.secret.0);
        let mut packets = Vec::new();
        for i in 0..FLOWS {
            let client_ip = self.clients[usize::from(i) % self.clients.len()];
            let client = SocketAddrV4::new(client_ip, FIRST_CLIENT_PORT + i);
            let (sid, dip) = self.servers[usize::from(i) % self.servers.len()];
            let flow = Flow {
                site: self,
                key: &key,
                client,
                sid: tcp::Sid::new(sid)?,
                dip,
            };
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
}

struct Flow<'a> {
    site: &'a Frontage,
    key: &'a tcp::Key,
    client: SocketAddrV4,
    sid: tcp::Sid,
    dip: SocketAddrV4,
}

const CLOCK_MS: u32 = 1 << 30;
const CLIENT_CLOCK: u32 = 77_000;

impl Flow<'_> {
    /// Returns the TSval that the client sees.
    fn static_cookie(&self) -> u32 {
        let (client, vip) = (self.client, self.site.vip);
        let tuple = tcp::Tuple::v4(*client.ip(), *vip.ip(), client.port(), vip.port());
        self.key
            .encode_static(&tuple, self.sid, tcp::coarse_clock(CLOCK_MS))
    }

    fn up(&self) -> Packet {
        let (from, to) = (&self.site.outside, &self.site.inside);
        let segment = Segment {
            flags: ACK,
            ck: false,
            tsval: CLIENT_CLOCK,
            tsecr: self.static_cookie(),
            payload: 0,
        };
        let out = frame::tcp(&leaving(to, self.client, self.dip), &segment);
        packet(
            "up",
            (from, self.client, self.site.vip),
            &segment,
            to,
            Some(out),
        )
    }

    fn syn(&self) -> Packet {
        let (from, to) = (&self.site.outside, &self.site.inside);
        let segment = Segment {
            flags: SYN,
            ck: false,
            tsval: CLIENT_CLOCK,
            tsecr: 0,
            payload: 0,
        };
        // Its server depends on the current loads.
        packet(
            "syn",
            (from, self.client, self.site.vip),
            &segment,
            to,
            None,
        )
    }

    fn down(&self, signals: tcp::Signals) -> Packet {
        let (from, to) = (&self.site.inside, &self.site.outside);
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
        let out = frame::tcp(&leaving(to, self.site.vip, self.client), &masked);
        packet(
            "down",
            (from, self.dip, self.client),
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
