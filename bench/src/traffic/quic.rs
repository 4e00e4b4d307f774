// SPDX-License-Identifier: Apache-2.0
//! Downloads from one QUIC service over IPv6 (`docs/quic.md`). Half of the clients use the VIP, half have migrated to the
//! cookie address.

use std::net::{Ipv6Addr, SocketAddrV6};

use anyhow::Result;
use frontage_cookie::cid;
use frontage_cookie::ipv6::{Cookie, Key};
use frontage_cookie::tcp::Signals;
use frontage_simulator::scenario::Secret;
use serde::Deserialize;

use super::packet::{FIRST_CLIENT_PORT, FLOWS, FLOWS_PER_CONNECTION, Link, Packet, TTL};
use crate::frame::udp6;

/// Two full packets of the server for each acknowledgment of a client, and some new connections.
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

/// Payload of an IP packet of 1,500 bytes.
const FULL: usize = 1452;
/// Payload of an acknowledgment of a few ranges.
const ACKNOWLEDGMENT: usize = 40;
/// Minimum payload of an Initial (RFC 9000, section 14.1).
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
                migrated: i % 2 == 1,
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
    /// True if the client has migrated to the cookie address.
    migrated: bool,
}

impl Flow<'_> {
    fn interface_id(&self, signals: Option<Signals>) -> u64 {
        self.key.seal(&Cookie {
            sid: self.sid,
            expects_cookie_address: signals.is_some() && self.migrated,
            signals,
        })
    }

    /// Returns the server's address that the client uses.
    fn server_address(&self) -> SocketAddrV6 {
        if self.migrated {
            let address = within(self.site.cookie_prefix, self.interface_id(None));
            SocketAddrV6::new(address, self.site.vip.port(), 0, 0)
        } else {
            self.site.vip
        }
    }

    /// Builds a client's packet with the sealed connection ID of its server, by which the switch finds it if the client uses
    /// the VIP.
    fn up(&self, i: u16) -> Packet {
        let id = cid::sealed(self.key, self.sid, 1 + u32::from(i), [0x5a; 3]);
        let to = if self.migrated {
            let address = within(*self.dip.ip(), self.interface_id(None));
            SocketAddrV6::new(address, self.dip.port(), 0, 0)
        } else {
            self.dip
        };
        let kind = if self.migrated { "up_address" } else { "up_id" };
        self.to_server(
            kind,
            self.server_address(),
            &payload(&[0x40], &id, ACKNOWLEDGMENT),
            Some(to),
        )
    }

    /// Builds the first packet of a connection. Its server depends on the current loads.
    fn initial(&self, i: u16) -> Packet {
        // Version 1, and a connection ID that the client chose.
        let head = [0xc0, 0, 0, 0, 1, 8];
        let id = [0xff, 0, 0, 0, 0, 0, (i >> 8) as u8, i as u8];
        self.to_server(
            "initial",
            self.site.vip,
            &payload(&head, &id, INITIAL),
            None,
        )
    }

    fn to_server(
        &self,
        kind: &'static str,
        to: SocketAddrV6,
        payload: &[u8],
        server: Option<SocketAddrV6>,
    ) -> Packet {
        let (from, to_link) = (&self.site.outside, &self.site.inside);
        Packet {
            kind,
            port: from.port,
            frame: udp6(from.arriving(), self.client, to, TTL, payload),
            out_port: to_link.port,
            out_frame: server
                .map(|server| udp6(to_link.leaving(), self.client, server, TTL - 1, payload)),
        }
    }

    fn down(&self, signals: Signals) -> Packet {
        let (from, to_link) = (&self.site.inside, &self.site.outside);
        let address = within(*self.dip.ip(), self.interface_id(Some(signals)));
        let source = SocketAddrV6::new(address, self.dip.port(), 0, 0);
        let payload = payload(&[0x40], &[0xc1; 8], FULL);
        Packet {
            kind: "down",
            port: from.port,
            frame: udp6(from.arriving(), source, self.client, TTL, &payload),
            out_port: to_link.port,
            out_frame: Some(udp6(
                to_link.leaving(),
                self.server_address(),
                self.client,
                TTL - 1,
                &payload,
            )),
        }
    }
}

/// Returns the address with this interface id in the /64 of `address`.
fn within(address: Ipv6Addr, interface_id: u64) -> Ipv6Addr {
    Ipv6Addr::from_bits(address.to_bits() >> 64 << 64 | u128::from(interface_id))
}

/// Returns a packet's header, padded to `length` in place of the encrypted part.
fn payload(head: &[u8], id: &[u8], length: usize) -> Vec<u8> {
    let mut payload = [head, id].concat();
    payload.resize(length, 0x5a);
    payload
}
