// SPDX-License-Identifier: Apache-2.0
//! The resolved scenario: one JSON file with everything that a run depends on. Unknown fields are errors, so that a misspelt field does
//! not silently get its default.

mod check;
mod hosts;
mod text;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;
use softswitch_pipeline::Nanos;

pub use hosts::{Host, Key, Quic, Rank, Server};
pub use text::{End, Hex, Mac, Secret};

/// One run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Seed of all random draws.
    pub seed: u64,
    /// End of the run in nanoseconds. Without it, the run ends when all flows have ended.
    pub end: Option<Nanos>,
    /// Compiled P4 programs (BMv2 JSON) by name.
    pub programs: BTreeMap<String, PathBuf>,
    /// Switches.
    pub switches: Vec<Switch>,
    /// Hosts.
    pub hosts: Vec<Host>,
    /// Links between switches and hosts.
    pub links: Vec<Link>,
    /// Workloads: clients, servers and flows.
    pub workload: Vec<Workload>,
    /// Output to record.
    pub record: Record,
}

/// A switch. Each switch has its own state, even if several use the same program.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// Name of the switch.
    pub name: String,
    /// Name of its program.
    pub program: String,
    /// Ports of the switch.
    pub ports: Vec<Port>,
    /// Table entries, installed in this order.
    pub entries: Vec<Entry>,
    /// Packets that the controller sends through the CPU port at the start.
    pub packets_out: Vec<Hex>,
    /// Clone sessions.
    pub clone_sessions: Vec<CloneSession>,
    /// Port of the controller.
    pub cpu_port: u32,
    /// Number of pipes of a Tofino chip.
    #[serde(default = "one_pipe")]
    pub pipes: u32,
}

fn one_pipe() -> u32 {
    1
}

/// A port of a switch.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// Port number in the program.
    pub number: u32,
    /// Name of its link.
    pub link: String,
}

/// A table entry. Numbers are in hexadecimal, because some have 128 bits.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Name of the table.
    pub table: String,
    /// Match fields: `value` (exact), `value/length` (prefix), `value&mask` or `low-high`. Empty for a default action.
    #[serde(rename = "match")]
    pub fields: Vec<String>,
    /// Priority; the larger one wins.
    #[serde(default)]
    pub priority: i32,
    /// Name of the action, without its control.
    pub action: String,
    /// Arguments of the action.
    pub params: Vec<String>,
}

/// A clone session.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CloneSession {
    /// Session number.
    pub id: u32,
    /// Copies.
    pub replicas: Vec<Replica>,
    /// Length in bytes to which copies are truncated; 0 keeps their length.
    #[serde(default)]
    pub truncate_to: u32,
    /// Priority of the copies.
    #[serde(default)]
    pub class_of_service: u8,
}

/// A copy that a clone session makes.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replica {
    /// Egress port.
    pub port: u32,
    /// Number that distinguishes this copy from others of the session.
    pub instance: u16,
}

/// A symmetric link.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Name of the link.
    pub name: String,
    /// One end.
    pub a: End,
    /// Other end.
    pub b: End,
    /// Rate in bit/s.
    pub rate: u64,
    /// Bytes that a frame takes on the link besides its own. For Ethernet, the preamble, frame check sequence and gap have 24.
    #[serde(default)]
    pub overhead: u32,
    /// Propagation delay in nanoseconds.
    pub delay: Nanos,
    /// Lost frames per 10^9.
    pub loss_ppb: u32,
    /// Queue limit at each end in packets.
    pub queue_packets: Option<u64>,
    /// Queue limit at each end in bytes.
    pub queue_bytes: Option<u64>,
    /// Queue discipline at both ends.
    pub discipline: Discipline,
}

/// Queue discipline.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Discipline {
    /// First in, first out, within the strict priorities of the P4 program.
    Fifo,
    /// The ideal discipline: the packet with the smallest rank goes first, regardless of the program.
    Pifo,
    /// SP-PIFO as published, regardless of the program: with exact ranks, and an equal share of `queue_packets` for each of eight priorities.
    SpPifo,
    /// AIFO as published, regardless of the program: with exact ranks.
    Aifo {
        /// Maximum queue depth in packets at which a packet is admitted, by the number of smaller ranks in the window (from 0 to all).
        limits: Vec<u64>,
        /// Sampling interval: one of this many packets enters the window.
        sample: u64,
    },
}

/// Flows that one client requests.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Label that is copied to the records of its flows.
    #[serde(default)]
    pub label: String,
    /// Name of the client.
    pub client: String,
    /// VIPs or hosts' own addresses, with ports. Each flow goes to a random one with equal probability.
    pub servers: Vec<SocketAddr>,
    /// Start times of flows.
    pub arrivals: Arrivals,
    /// Number of flows that each arrival starts (incast). Each has a different server if there are enough.
    #[serde(default = "default_burst")]
    pub burst: u32,
    /// Sizes of responses in bytes.
    pub sizes: Sizes,
    /// Size of a request in bytes.
    pub request_bytes: u64,
    /// Time in nanoseconds before which no flow starts.
    pub start: Nanos,
    /// Time in nanoseconds from which on no flow starts; without it, flows start until the end.
    pub stop: Option<Nanos>,
    /// Number of flows per connection.
    pub connection: ConnectionUse,
    /// Transport protocol.
    #[serde(default)]
    pub protocol: Protocol,
    /// RPT that responses signal instead of their real one: pairs of a time in nanoseconds and the RPT in microseconds from then on, in
    /// order of time. Before the first time, responses signal their real RPT.
    #[serde(default)]
    pub rpt: Option<Vec<(Nanos, u64)>>,
}

fn default_burst() -> u32 {
    1
}

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// QUIC. Clients do not migrate, and connection ids identify connections.
    Quic,
}

/// Start times of flows.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Arrivals {
    /// A Poisson process with this number of arrivals per second.
    Poisson(f64),
    /// These times in nanoseconds, in ascending order; several may be equal.
    Times(Vec<Nanos>),
}

/// Sizes of responses in bytes.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Sizes {
    /// All responses have this size.
    Fixed(u64),
    /// Uniform distribution over the integers from the first to the second.
    Uniform(u64, u64),
    /// Cumulative distribution: ascending pairs of bytes and probability, linear in between.
    Cdf(Vec<(f64, f64)>),
}

/// Number of flows per connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum ConnectionUse {
    /// One flow; then the connection is closed.
    #[serde(rename = "one-per-flow")]
    OnePerFlow,
    /// Sequential flows: a flow uses an idle connection if possible, and otherwise opens one.
    #[serde(rename = "persistent")]
    Persistent,
}

/// Output to record. Intervals are in nanoseconds; a series without an interval is not recorded.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Record a line for each completed flow.
    pub flows: bool,
    /// Interval of queue depths.
    pub queues: Option<Nanos>,
    /// Interval of the servers' N_AF and N_FF.
    pub loads: Option<Nanos>,
    /// Interval of the bytes that each active flow has received.
    pub throughput: Option<Nanos>,
}

impl Scenario {
    /// Reads and checks a scenario; `-` is standard input.
    ///
    /// # Errors
    /// Returns the file, the field and the reason.
    pub fn read(path: &Path) -> Result<Self> {
        let text = match path.to_str() {
            Some("-") => std::io::read_to_string(std::io::stdin()),
            _ => std::fs::read_to_string(path),
        };
        let text = text.with_context(|| format!("reading {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{}: invalid scenario", path.display()))
    }

    /// Parses and checks a scenario.
    ///
    /// # Errors
    /// Returns the field and the reason.
    pub fn parse(text: &str) -> Result<Self> {
        let mut json = serde_json::Deserializer::from_str(text);
        let scenario: Self = serde_path_to_error::deserialize(&mut json)
            .map_err(|e| anyhow::anyhow!("{}: {}", e.path(), e.inner()))?;
        json.end()?;
        check::check(&scenario)?;
        Ok(scenario)
    }
}
