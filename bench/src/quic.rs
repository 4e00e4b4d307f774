// SPDX-License-Identifier: Apache-2.0
//! Downloads of one QUIC service over IPv6 (`docs/quic.md`): half of the clients stay at the VIP, half have moved to the cookie address.

use std::net::{Ipv6Addr, SocketAddrV6};

use anyhow::Result;
use frontage_cookie::cid;
use frontage_cookie::ipv6::{Cookie, Key};
use frontage_cookie::tcp::Signals;
use serde::Deserialize;

use crate::frame::udp6;
use crate::traffic::{FIRST_CLIENT_PORT, FLOWS, FLOWS_PER_CONNECTION, Link, Packet, TTL};
use frontage_simulator::scenario::Secret;

/// To each acknowledgment of a client two full packets of its server, and now and then a new connection.
#[derive(Deserialize)]
pub struct Quic {
    outside: Link,
    inside: Link,
    clients: Vec<Ipv6Addr>,
    vip: SocketAddrV6,
    cookie_prefix: Ipv6Addr,
    servers: Vec<(u16, SocketAddrV6)>,
    key_id: u32,
    secret: Secret,
}

/// Makes an IP packet of 1,500 bytes.
const FULL: usize = 1452;
/// An acknowledgment of a few ranges.
const ACKNOWLEDGMENT: usize = 40;
/// The smallest that an Initial may be (RFC 9000, section 14.1).
const INITIAL: usize = 1200;

impl Quic {
    pub fn packets(&self) -> Result<Vec<Packet>> {
        let key = Key::new(self.key_id, &self.secret.0);
        let mut packets = Vec::new();
        for i in 0..FLOWS {
            let address = self.clients[usize::from(i) % self.clients.len()];
            let (sid, dip) = self.servers[usize::from(i / 2) % self.servers.len()];
            let flow = Flow {
                site: self,
                key: &key,
                client: SocketAddrV6::new(address, FIRST_CLIENT_PORT + i, 0, 0),
                sid,
                dip,
                moved: i % 2 == 1,
            };
            // Loads differ among servers and change from flow to flow.
            let n_af = u64::from(i % 40 + sid % 7);
            let signals = Signals {
                rpt_us: 200 * u64::from(i % 50),
                n_af,
                n_ff: n_af / 3,
            };
            packets.extend([flow.down(signals), flow.down(signals), flow.up(i)]);
            if i % FLOWS_PER_CONNECTION == 0 {
                packets.push(flow.initial(i));
            }
        }
        Ok(packets)
    }
}

struct Flow<'a> {
    site: &'a Quic,
    key: &'a Key,
    client: SocketAddrV6,
    sid: u16,
    dip: SocketAddrV6,
    /// To the cookie address.
    moved: bool,
}

impl Flow<'_> {
    fn interface_id(&self, signals: Option<Signals>) -> u64 {
        self.key.seal(&Cookie {
            sid: self.sid,
            expects_cookie_address: signals.is_some() && self.moved,
            signals,
        })
    }

    /// The server's address that the client knows.
    fn shown(&self) -> SocketAddrV6 {
        if self.moved {
            let address = within(self.site.cookie_prefix, self.interface_id(None));
            SocketAddrV6::new(address, self.site.vip.port(), 0, 0)
        } else {
            self.site.vip
        }
    }

    /// Carries the sealed id that this server chose, by which it is found if the client is at the VIP.
    fn up(&self, i: u16) -> Packet {
        let id = cid::sealed(self.key, self.sid, 1 + u32::from(i), [0x5a; 3]);
        let to = if self.moved {
            let address = within(*self.dip.ip(), self.interface_id(None));
            SocketAddrV6::new(address, self.dip.port(), 0, 0)
        } else {
            self.dip
        };
        let kind = if self.moved { "up_address" } else { "up_id" };
        self.upwards(
            kind,
            self.shown(),
            &payload(&[0x40], &id, ACKNOWLEDGMENT),
            Some(to),
        )
    }

    /// Which server it reaches depends on the loads of that moment.
    fn initial(&self, i: u16) -> Packet {
        // Version 1, and an id that no server chose.
        let head = [0xc0, 0, 0, 0, 1, 8];
        let id = [0xff, 0, 0, 0, 0, 0, (i >> 8) as u8, i as u8];
        self.upwards(
            "initial",
            self.site.vip,
            &payload(&head, &id, INITIAL),
            None,
        )
    }

    fn upwards(
        &self,
        kind: &'static str,
        to: SocketAddrV6,
        payload: &[u8],
        server: Option<SocketAddrV6>,
    ) -> Packet {
        let (from, into) = (&self.site.outside, &self.site.inside);
        Packet {
            kind,
            port: from.port,
            frame: udp6(from.arriving(), self.client, to, TTL, payload),
            out_port: into.port,
            out_frame: server
                .map(|server| udp6(into.leaving(), self.client, server, TTL - 1, payload)),
        }
    }

    fn down(&self, signals: Signals) -> Packet {
        let (from, into) = (&self.site.inside, &self.site.outside);
        let address = within(*self.dip.ip(), self.interface_id(Some(signals)));
        let source = SocketAddrV6::new(address, self.dip.port(), 0, 0);
        let payload = payload(&[0x40], &[0xc1; 8], FULL);
        Packet {
            kind: "down",
            port: from.port,
            frame: udp6(from.arriving(), source, self.client, TTL, &payload),
            out_port: into.port,
            out_frame: Some(udp6(
                into.leaving(),
                self.shown(),
                self.client,
                TTL - 1,
                &payload,
            )),
        }
    }
}

/// In the /64 of `address`.
fn within(address: Ipv6Addr, interface_id: u64) -> Ipv6Addr {
    Ipv6Addr::from_bits(address.to_bits() >> 64 << 64 | u128::from(interface_id))
}

/// A packet's clear part, and as much as is missing of what is sealed.
fn payload(head: &[u8], id: &[u8], length: usize) -> Vec<u8> {
    let mut payload = [head, id].concat();
    payload.resize(length, 0x5a);
    payload
}
