// SPDX-License-Identifier: Apache-2.0
//! The packets of a site, and the expected output for each.

use std::net::{Ipv4Addr, SocketAddrV4};

use anyhow::Result;
use frontage_cookie::tcp;
use serde::Deserialize;

use crate::acl::Probe;
use crate::frame::{self, ACK, Header, Macs, SYN, Segment};
use crate::quic::Quic;
use frontage_simulator::scenario::Secret;

/// An input frame of the switch, and its expected output.
pub struct Packet {
    pub kind: &'static str,
    pub port: u32,
    pub frame: Vec<u8>,
    pub out_port: u32,
    /// The expected output frame, if it depends only on the input.
    pub out_frame: Option<Vec<u8>>,
}

/// A port of the switch and the only neighbor behind it.
#[derive(Clone, Copy, Deserialize)]
pub struct Link {
    pub port: u32,
    mac: [u8; 6],
    neighbor: [u8; 6],
}

impl Link {
    /// Returns the MAC addresses of a frame from the neighbor to the switch.
    pub fn arriving(&self) -> Macs {
        Macs {
            src: self.neighbor,
            dst: self.mac,
        }
    }

    /// Returns the MAC addresses of a frame from the switch to the neighbor.
    pub fn leaving(&self) -> Macs {
        Macs {
            src: self.mac,
            dst: self.neighbor,
        }
    }
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Traffic {
    Frontage(Frontage),
    Quic(Quic),
    Router(Router),
    Acl(Filter),
}

impl Traffic {
    pub fn packets(&self) -> Result<Vec<Packet>> {
        match self {
            Self::Frontage(site) => site.packets(),
            Self::Quic(site) => site.packets(),
            Self::Router(site) => Ok(site.packets()),
            Self::Acl(site) => Ok(site.packets()),
        }
    }
}

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

pub const FLOWS: u16 = 1000;
/// One of so many flows starts in each round of the traffic, so a connection has 20 full segments, 29 kB.
pub const FLOWS_PER_CONNECTION: u16 = 10;
pub const FIRST_CLIENT_PORT: u16 = 20_000;
/// Payload of an IP packet of 1,500 bytes: it has two headers of 20 bytes and 12 bytes of timestamps.
const FULL_PAYLOAD: usize = 1448;
pub const TTL: u8 = 64;

impl Frontage {
    fn packets(&self) -> Result<Vec<Packet>> {
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

fn arriving(link: &Link, src: SocketAddrV4, dst: SocketAddrV4) -> Header {
    Header {
        macs: link.arriving(),
        src,
        dst,
        ttl: TTL,
    }
}

fn leaving(link: &Link, src: SocketAddrV4, dst: SocketAddrV4) -> Header {
    Header {
        macs: link.leaving(),
        src,
        dst,
        ttl: TTL - 1,
    }
}

/// Datagrams in the shortest frames, one for each route.
#[derive(Deserialize)]
pub struct Router {
    from: Link,
    to: Link,
    destinations: Vec<Ipv4Addr>,
}

const SHORTEST_FRAME: usize = 60; // without the FCS of 4 bytes

impl Router {
    fn packets(&self) -> Vec<Packet> {
        let src = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 1000);
        self.destinations
            .iter()
            .map(|&ip| {
                let dst = SocketAddrV4::new(ip, 53);
                Packet {
                    kind: "udp",
                    port: self.from.port,
                    frame: frame::udp(&arriving(&self.from, src, dst), SHORTEST_FRAME),
                    out_port: self.to.port,
                    out_frame: Some(frame::udp(&leaving(&self.to, src, dst), SHORTEST_FRAME)),
                }
            })
            .collect()
    }
}

/// Packets for the rules of a filter, in the shortest frames. The destination of each output frame is its rule's number.
#[derive(Deserialize)]
pub struct Filter {
    from: Link,
    to: Link,
    packets: Vec<Probe>,
}

impl Filter {
    fn packets(&self) -> Vec<Packet> {
        self.packets
            .iter()
            .map(|probe| {
                let header = arriving(&self.from, probe.tuple.src, probe.tuple.dst);
                let frame = frame::any(&header, probe.tuple.proto, SHORTEST_FRAME);
                let mut out = frame.clone();
                out[..6].copy_from_slice(&probe.class.to_be_bytes()[2..]);
                Packet {
                    kind: "acl",
                    port: self.from.port,
                    frame,
                    out_port: self.to.port,
                    out_frame: Some(out),
                }
            })
            .collect()
    }
}
