// SPDX-License-Identifier: Apache-2.0
//! The resolved scenario: everything that a run depends on, in one JSON file. Unknown fields are errors, so that a
//! misspelt one does not silently mean its default.

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
    /// Of every random draw.
    pub seed: u64,
    /// When the run ends, in nanoseconds; without it, when every flow has ended.
    pub end: Option<Nanos>,
    /// Compiled P4 programs (BMv2 JSON) by name.
    pub programs: BTreeMap<String, PathBuf>,
    /// The switches.
    pub switches: Vec<Switch>,
    /// The hosts.
    pub hosts: Vec<Host>,
    /// The links between them.
    pub links: Vec<Link>,
    /// Workloads: clients, servers and flows.
    pub workload: Vec<Workload>,
    /// Output to record.
    pub record: Record,
}

/// A switch with a program of its own state.
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
    /// The controller's port.
    pub cpu_port: u32,
}

/// A switch's port and what it is plugged into.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// The number the program knows it by.
    pub number: u32,
    /// The name of its link.
    pub link: String,
}

/// A table entry, with numbers in hexadecimal since some have 128 bits.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The table's name.
    pub table: String,
    /// `value` of an exact field, `value/length` of a prefix, `value&mask`, `low-high`; none at all for a default action.
    #[serde(rename = "match")]
    pub fields: Vec<String>,
    /// The larger wins, where a table has priorities.
    #[serde(default)]
    pub priority: i32,
    /// The action's name, without the names of what it is in.
    pub action: String,
    /// The action's arguments.
    pub params: Vec<String>,
}

/// A clone session.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CloneSession {
    /// Session number.
    pub id: u32,
    /// The copies.
    pub replicas: Vec<Replica>,
    /// Bytes to which copies are cut; 0 leaves them whole.
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
    /// The port to which it goes.
    pub port: u32,
    /// Number that distinguishes this copy from others of the session.
    pub instance: u16,
}

/// A link; both ways are alike.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Name of the link.
    pub name: String,
    /// One end.
    pub a: End,
    /// The other.
    pub b: End,
    /// Bits per second.
    pub rate: u64,
    /// Bytes of that rate that a frame takes besides its own: Ethernet's preamble, frame check sequence and gap are 24.
    #[serde(default)]
    pub overhead: u32,
    /// Propagation delay in nanoseconds.
    pub delay: Nanos,
    /// Frames lost in 10^9.
    pub loss_ppb: u32,
    /// Packets that may wait at each end.
    pub queue_packets: Option<u64>,
    /// Bytes that may wait at each end.
    pub queue_bytes: Option<u64>,
    /// Queue discipline at both ends.
    pub discipline: Discipline,
}

/// Queue discipline.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Discipline {
    /// First in, first out, within the strict priorities that the P4 program gives.
    Fifo,
    /// The ideal: the packet of the smallest rank, whatever its program says.
    Pifo,
    /// SP-PIFO as published, with exact ranks and an equal share of `queue_packets` for each of eight priorities, whatever its program says.
    SpPifo,
    /// AIFO as published, with exact ranks, whatever its program says.
    Aifo {
        /// Packets waiting with which one is still admitted, by how many ranks of the window are smaller than its own: from none to all.
        limits: Vec<u64>,
        /// One packet in so many enters the window.
        sample: u64,
    },
}

/// Flows that one client asks for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// A word that its flows' records repeat.
    #[serde(default)]
    pub label: String,
    /// The client's name.
    pub client: String,
    /// VIPs or hosts' own addresses, and their ports; each flow goes to one, all with the same probability.
    pub servers: Vec<SocketAddr>,
    /// When flows begin.
    pub arrivals: Arrivals,
    /// Number of flows that each arrival starts (incast), each with a different server as long as there are enough.
    #[serde(default = "one")]
    pub burst: u32,
    /// Sizes of responses in bytes.
    pub sizes: Sizes,
    /// Size of a request in bytes.
    pub request_bytes: u64,
    /// No flow begins before, in nanoseconds.
    pub start: Nanos,
    /// No flow begins then or after; none goes on to the end.
    pub stop: Option<Nanos>,
    /// How many flows a connection carries.
    pub connection: ConnectionUse,
    /// Transport protocol.
    #[serde(default)]
    pub protocol: Protocol,
    /// The RPT that its responses tell, whatever they still need: pairs of a time in nanoseconds and the microseconds told from then on,
    /// in order of time. Before the first, or without any, it is what they need.
    #[serde(default)]
    pub rpt: Option<Vec<(Nanos, u64)>>,
}

fn one() -> u32 {
    1
}

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// QUIC. Its clients do not migrate, and connection ids identify their connections.
    Quic,
}

/// When flows begin.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Arrivals {
    /// A Poisson process of so many arrivals a second.
    Poisson(f64),
    /// At these times in nanoseconds, in order; several may be equal.
    Times(Vec<Nanos>),
}

/// How long responses are, in bytes.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Sizes {
    /// All alike.
    Fixed(u64),
    /// Every whole number from the first to the second alike.
    Uniform(u64, u64),
    /// Bytes and cumulative probability, both ascending; linear in between.
    Cdf(Vec<(f64, f64)>),
}

/// How many flows a connection carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum ConnectionUse {
    /// One; then it is closed.
    #[serde(rename = "one a flow")]
    OneAFlow,
    /// One after the other: a flow takes a connection that is idle, and opens one where none is.
    #[serde(rename = "persistent")]
    Persistent,
}

/// Output to record. Intervals are in nanoseconds.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// A line for each flow that ended.
    pub flows: bool,
    /// Each queue's depth.
    pub queues: Option<Nanos>,
    /// Each server's N_AF and N_FF.
    pub loads: Option<Nanos>,
    /// Bytes that each flow has received.
    pub throughput: Option<Nanos>,
}

impl Scenario {
    /// Reads and checks a scenario; `-` is standard input.
    ///
    /// # Errors
    /// Names the file, the field and what is wrong with it.
    pub fn read(path: &Path) -> Result<Self> {
        let text = match path.to_str() {
            Some("-") => std::io::read_to_string(std::io::stdin()),
            _ => std::fs::read_to_string(path),
        };
        let text = text.with_context(|| format!("reading {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{}: invalid scenario", path.display()))
    }

    /// The scenario in a text, checked.
    ///
    /// # Errors
    /// Names the field and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self> {
        let mut json = serde_json::Deserializer::from_str(text);
        let scenario: Self = serde_path_to_error::deserialize(&mut json)
            .map_err(|e| anyhow::anyhow!("{}: {}", e.path(), e.inner()))?;
        json.end()?;
        check::check(&scenario)?;
        Ok(scenario)
    }
}
