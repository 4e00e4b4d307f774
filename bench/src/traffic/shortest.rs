// SPDX-License-Identifier: Apache-2.0
//! Packets in the shortest frames, for a router and for a packet filter.

use std::net::{Ipv4Addr, SocketAddrV4};

use serde::Deserialize;

use super::packet::{Link, Packet, arriving, leaving};
use crate::acl::Probe;
use crate::frame;

/// Datagrams in the shortest frames, one for each route.
#[derive(Deserialize)]
pub struct Router {
    from: Link,
    to: Link,
    destinations: Vec<Ipv4Addr>,
}

const SHORTEST_FRAME: usize = 60; // without the FCS of 4 bytes

impl Router {
    pub fn packets(&self) -> Vec<Packet> {
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
    pub fn packets(&self) -> Vec<Packet> {
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
