// SPDX-License-Identifier: Apache-2.0
//! A simulated switch of a site: a gateway between the Service Address and a replica's tunnel.

use std::fs::File;
use std::io::Write as _;
use std::net::{Ipv6Addr, SocketAddr};
use std::num::NonZeroU8;

use frontage_tunnel::{Encapsulation, Flow, Head, decode, vxlan};

use super::SITE;
use super::edge_switch::{DESTINATION, PAYLOAD, SOURCE, UDP, is_ipv6, read, word};

/// Anycast address: 2001:db8:5a::/48+0 for any name.
pub const SERVICE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x5a, 0, 0, 0, 0, 0);
/// Tunnel endpoints (VTEPs) of replica and switch.
pub const REPLICA: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x11, 0, 0, 0, 0, 0x11);
pub const GATEWAY: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x101, 0, 0, 0, 0, 1);
/// Site at which the client's packets enter, different from the replica's.
pub const ORIGIN: NonZeroU8 = NonZeroU8::new(7).unwrap();

const UDP_HEADER: usize = 8;
/// Length of the VXLAN and Ethernet headers.
const HEADERS: usize = 8 + 14;

/// Encapsulate a packet to the Service Address. Returns None for other packets.
pub fn encapsulate(packet: &[u8]) -> Option<Vec<u8>> {
    if !is_ipv6(packet) || packet[6] != UDP || read(packet, DESTINATION) != SERVICE {
        return None;
    }
    let port = |at| word(packet, PAYLOAD + at);
    let flow = Flow {
        source: SocketAddr::new(read(packet, SOURCE).into(), port(0)),
        destination: SocketAddr::new(SERVICE.into(), port(2)),
    };
    let payload = &packet[PAYLOAD + UDP_HEADER..];
    Some(tunnel_packet(GATEWAY, &datagram(flow, payload)))
}

/// Return a datagram with VXLAN, Ethernet, IP and UDP headers.
pub fn datagram(flow: Flow, payload: &[u8]) -> Vec<u8> {
    let head = Head::new(Encapsulation::Vxlan, ORIGIN, flow, 0, payload).unwrap();
    [&head, payload].concat()
}

/// Decapsulate a packet from the replica's tunnel. Returns None for other packets.
pub fn decapsulate(packet: &[u8]) -> Option<Vec<u8>> {
    let from_replica = is_ipv6(packet) && packet[6] == UDP && read(packet, SOURCE) == REPLICA;
    if !from_replica || read(packet, DESTINATION) != GATEWAY {
        return None;
    }
    assert_eq!(word(packet, PAYLOAD + 2), vxlan::PORT);
    let tunnelled = decode(Encapsulation::Vxlan, &packet[PAYLOAD + UDP_HEADER..]).unwrap();
    assert_eq!(
        (tunnelled.origin.get(), tunnelled.inner.flow.source.ip()),
        (SITE, SERVICE.into()),
        "responses leave through the replica's own site"
    );
    Some(packet[PAYLOAD + UDP_HEADER + HEADERS..].to_vec())
}

/// Send `content` to the replica's tunnel with the source address `peer`.
pub fn send(interface: &mut &File, peer: Ipv6Addr, content: &[u8]) {
    interface.write_all(&tunnel_packet(peer, content)).unwrap();
}

/// Return an IPv6 packet from `peer` to the replica's tunnel.
fn tunnel_packet(peer: Ipv6Addr, content: &[u8]) -> Vec<u8> {
    let length = (UDP_HEADER + content.len()) as u16;
    let mut udp = Vec::new();
    for field in [49_152, vxlan::PORT, length, 0] {
        udp.extend(field.to_be_bytes());
    }
    udp.extend(content);
    let pseudo = [
        &peer.octets()[..],
        &REPLICA.octets(),
        &[0, 0],
        &length.to_be_bytes(),
        &[0, 0, 0, UDP],
        &udp,
    ];
    let mut sum: u32 = pseudo
        .concat()
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
        .sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    udp[6..8].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    let header = [
        &[0x60, 0, 0, 0][..],
        &length.to_be_bytes(),
        &[UDP, 64],
        &peer.octets(),
        &REPLICA.octets(),
    ];
    [header.concat(), udp].concat()
}
