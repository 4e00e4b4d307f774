// SPDX-License-Identifier: Apache-2.0
//! The types that the eBPF programs and the agent share, as in `bpf/maps.h`.

use std::net::{IpAddr, Ipv6Addr};

use bytemuck::{Pod, Zeroable};

/// The compiled programs.
pub static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/cclb7.bpf.o"));

/// Settings, the only entry of map `config`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Config {
    /// Network namespace of the sockets that the programs handle.
    pub netns_cookie: u64,
    /// Remaining bytes above which a response counts in N_FF.
    pub look_ahead: u64,
    /// Bytes that the assumed bandwidth carries in a unit of RPT (8 us).
    pub unit_bytes: u64,
    /// Index of the interface to which the programs are attached.
    pub ifindex: u32,
    /// CRC-32 of the programs.
    pub build: u32,
    /// 1 if the packets of the interface have an Ethernet header, 0 if they begin with the IP header.
    pub is_ethernet: u32,
    /// Unused.
    pub padding: u32,
}

/// The loads of a listening port.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Server {
    /// N_AF: responses begun and not yet completely sent.
    pub n_af: u64,
    /// N_FF: active responses with more than the look-ahead left.
    pub n_ff: u64,
}

/// Key of `flows` and `handshakes`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Connection {
    /// Address of this host; IPv4 is mapped to IPv6.
    pub local: [u8; 16],
    /// Address of the client.
    pub remote: [u8; 16],
    /// Port of this host.
    pub local_port: u16,
    /// Port of the client.
    pub remote_port: u16,
}

impl Connection {
    /// Return the key of the connection between two endpoints.
    pub fn new(local: (IpAddr, u16), remote: (IpAddr, u16)) -> Self {
        let octets = |address: IpAddr| match address {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
            IpAddr::V6(v6) => v6.octets(),
        };
        Self {
            local: octets(local.0),
            remote: octets(remote.0),
            local_port: local.1,
            remote_port: remote.1,
        }
    }

    /// Return the client's address; IPv4 is not mapped.
    pub fn client(&self) -> IpAddr {
        Ipv6Addr::from(self.remote).to_canonical()
    }
}

/// A SYN-ACK that the client has not acknowledged.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Handshake {
    /// Time of sending, by the monotonic clock; 0 if the switch sent it.
    pub sent_ns: u64,
    /// Sequence number.
    pub isn: u32,
    /// TSval.
    pub ts: u32,
}

/// A key of SYN cookies, in map `syn_keys`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct SynKey {
    /// The key's words.
    pub words: [u32; 2],
    /// 1 if there is a key for the epoch.
    pub valid: u32,
}

/// A range of retransmitted sequence numbers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Retransmission {
    /// First sequence number.
    pub begin: u32,
    /// Sequence number after the last.
    pub end: u32,
    /// TSval.
    pub ts: u32,
}

/// An established connection; see `struct flow` for the meaning of each field.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[expect(missing_docs, reason = "documented in bpf/maps.h")]
pub struct Flow {
    pub acked: u64,
    pub sent: u64,
    pub expected: u64,
    pub sized_end: u64,
    pub unknown_from: u64,
    pub ends: [u64; 8],
    pub next_end: u32,
    pub open: u32,
    pub open_unknown: u32,
    pub closed: u32,
    pub contribution: u64,
    pub ring: [u64; 64],
    pub retransmissions: [Retransmission; 16],
    pub next_sent: u32,
    pub next_retransmission: u32,
    pub retransmissions_lost: u32,
    pub clock_offset: u32,
    pub rtt_min: u32,
    pub gap: u32,
    pub last_echo: u32,
    pub base: u32,
    pub port: u16,
    pub cookies: u16,
    pub padding: u32,
}

impl Flow {
    /// Return the flow's contribution to its server's N_AF.
    pub fn n_af(&self) -> u32 {
        (self.contribution >> 32) as u32
    }

    /// Return the flow's contribution to its server's N_FF.
    pub fn n_ff(&self) -> u32 {
        self.contribution as u32
    }

    /// Return the number of reported bytes that were never sent.
    pub fn remaining(&self) -> u64 {
        self.expected.saturating_sub(self.sent)
    }
}

/// The outcomes for a packet, in the order of `enum reason`.
pub const REASONS: [&str; 14] = [
    "cookie_written",
    "cookie_syn_ack",
    "egress_no_timestamp",
    "egress_unknown_connection",
    "echo_restored",
    "echo_zeroed",
    "ingress_no_timestamp",
    "ingress_unknown_connection",
    "ingress_refused",
    "fragment",
    "malformed",
    "flow_table_full",
    "syn_cookie_accepted",
    "syn_cookie_refused",
];

/// Make `$type`, which is plain data without padding, usable as key or value of a map.
macro_rules! map_types {
    ($($type:ty),*) => { $(
        // SAFETY: bytemuck::Pod guarantees what aya::Pod requires: every bit pattern is valid, and there is no
        // padding.
        unsafe impl aya::Pod for $type {}
    )* };
}
map_types!(Config, Server, Connection, Handshake, SynKey, Flow);
