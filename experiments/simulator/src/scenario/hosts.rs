// SPDX-License-Identifier: Apache-2.0
//! Hosts of a scenario, and the configuration of their transports.

use std::net::IpAddr;

use frontage_cookie::{cid, ipv6};
use frontage_transport::congestion::Congestion;
use frontage_transport::{quic, tcp};
use serde::Deserialize;
use softswitch_pipeline::Nanos;

use super::{Mac, Secret};

/// A host with one interface.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Name of the host.
    pub name: String,
    /// MAC address of the interface.
    pub mac: Mac,
    /// IP addresses of the host.
    pub addresses: Vec<IpAddr>,
    /// MAC address of the default gateway.
    pub gateway_mac: Mac,
    /// Name of the host's link.
    pub link: String,
    /// True if an agent removes cookies from received packets, as an edge switch does. For clients inside the data center.
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
    /// SID of the server.
    pub sid: u16,
    /// Port on which it listens.
    pub port: u16,
    /// Remaining bytes above which a response counts in N_FF.
    pub look_ahead: u64,
    /// Bandwidth in bit/s from which the RPT is computed.
    pub bandwidth: u64,
    /// True if the server writes cookies.
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
    /// Unsent bytes of the response, as in CCLB7. Retransmissions have the rank of the next new data. Ranks beside frames are RPT codes of
    /// the IPv6 carrier.
    #[default]
    Unsent,
    /// Bytes from the segment to the end of its response, as in pFabric's hosts. A SYN-ACK has the number of all bytes. Ranks beside frames
    /// are bytes. TCP only.
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

/// QUIC configuration of a host. Times are in nanoseconds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quic {
    /// UDP payload of a full datagram in bytes.
    pub max_datagram: u32,
    /// Initial congestion window in full datagrams.
    pub initial_window: u32,
    /// Congestion control algorithm. DCTCP implies ECN.
    pub congestion: Congestion,
    /// Send ECN-capable packets also with algorithms other than DCTCP.
    #[serde(default)]
    pub ecn: bool,
    /// Round-trip time before the first measurement.
    pub initial_rtt: Nanos,
    /// Maximum delay of an acknowledgment.
    pub max_ack_delay: Nanos,
}

impl Quic {
    /// Returns the configuration in the form of the transport.
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
