// SPDX-License-Identifier: Apache-2.0
//! Hosts in a scenario, and their transports.

use std::net::IpAddr;

use frontage_cookie::{cid, ipv6};
use frontage_transport::congestion::Congestion;
use frontage_transport::{quic, tcp};
use serde::Deserialize;
use softswitch_pipeline::Nanos;

use super::{Mac, Secret};

/// An end of connections, with one interface.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Name of the host.
    pub name: String,
    /// MAC address of the interface.
    pub mac: Mac,
    /// Its IP addresses.
    pub addresses: Vec<IpAddr>,
    /// MAC address of the default gateway.
    pub gateway_mac: Mac,
    /// Name of the host's link.
    pub link: String,
    /// An agent removes cookies from received packets, as an edge switch would. For clients inside the data center.
    #[serde(default)]
    pub masks: bool,
    /// Server of this host, if it has one.
    pub server: Option<Server>,
    /// TCP configuration.
    pub tcp: tcp::Config,
    /// QUIC configuration, if the host supports QUIC.
    #[serde(default)]
    pub quic: Option<Quic>,
}

/// An L7 load balancer (CCLB7), as the network sees it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// The operator's number for it.
    pub sid: u16,
    /// Where it listens.
    pub port: u16,
    /// Remaining bytes above which a response counts in N_FF.
    pub look_ahead: u64,
    /// The bandwidth that RPT assumes, in bits per second.
    pub bandwidth: u64,
    /// The server writes cookies.
    pub cookie: bool,
    /// Ranking of packets.
    #[serde(default)]
    pub rank: Rank,
    /// Key for its QUIC connection ids and addresses.
    #[serde(default)]
    pub key: Option<Key>,
}

/// Ranking of a server's packets, for the RPT of cookies, and for `pifo` and `sp-pifo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rank {
    /// Unsent bytes of the response, as in CCLB7. Retransmissions have the rank of the next new data. The ranks of frames are RPT codes of
    /// the IPv6 carrier.
    #[default]
    Unsent,
    /// The bytes from the segment to the end of its response, as pFabric's hosts do; a SYN has those of all. Ranks beside frames are bytes. TCP only.
    Segment,
}

/// A key of the cookie.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// Number of the key.
    pub id: u32,
    /// 16 to 32 bytes.
    pub secret: Secret,
}

impl Key {
    /// Returns the key in the form of the IPv6 carrier.
    pub fn ipv6(&self) -> ipv6::Key {
        ipv6::Key::new(self.id, &self.secret.0)
    }
}

/// A host's QUIC, times in nanoseconds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quic {
    /// Bytes of UDP payload of a full datagram.
    pub max_datagram: u32,
    /// Full datagrams sent before the first acknowledgement.
    pub initial_window: u32,
    /// Congestion control. DCTCP asks for ECN by itself.
    pub congestion: Congestion,
    /// Whether to ask for ECN under another law.
    #[serde(default)]
    pub ecn: bool,
    /// The round trip before one is measured.
    pub initial_rtt: Nanos,
    /// How long an acknowledgement may wait.
    pub max_ack_delay: Nanos,
}

impl Quic {
    /// The same as the transport has it.
    pub fn config(&self) -> quic::Config {
        quic::Config {
            max_datagram: self.max_datagram,
            initial_window: self.initial_window,
            congestion: self.congestion,
            ecn: self.ecn,
            initial_rtt: self.initial_rtt,
            max_ack_delay: self.max_ack_delay,
            connection_id: cid::LEN as u8,
        }
    }
}
