// SPDX-License-Identifier: Apache-2.0
//! Measures packets per second of a *site*: a P4 program with its entries and traffic, in a JSON file of `bench/sites.py`.
//! The results are JSON on standard output. Users run `bench/run.py`, which calls this program.

mod acl;
mod clock;
mod connections;
mod counters;
mod dispatcher;
mod ebpf;
mod forward;
mod frame;
mod latency;
mod passes;
mod pipeline;
mod random;
mod signals;
mod site;
mod steps;
mod tables;
mod threads;
mod traffic;
mod wire;

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;

use acl::{Acl, Masks};
use site::Site;
use softswitch::port::Sockets;
use tables::Kind;
use wire::Attachment;

/// Packets per second of a P4 program with realistic entries and traffic.
#[derive(Parser)]
#[command(version)]
enum Command {
    /// Measures in process, on one core, without queues: all packets mixed, and each kind alone; also instructions per
    /// packet, and hardware events, if there are hardware counters. The runs of several sites alternate.
    Pipeline {
        #[arg(required = true)]
        sites: Vec<PathBuf>,
    },
    /// Measures acknowledgments of so many TCP connections in process: packets per second of one core's time, and memory.
    Connections {
        site: PathBuf,
        #[arg(required = true)]
        counts: Vec<u64>,
    },
    /// Measures one and two threads in process, without queues, between which the flows of a site are divided.
    Threads {
        #[arg(required = true)]
        sites: Vec<PathBuf>,
    },
    /// Counts the further passes of packets through a program for Tofino: recirculations, worker packets, resubmissions, digests.
    Passes { site: PathBuf },
    /// Measures the switch behind these interfaces: the highest rate without loss, and the rate in overload.
    Wire {
        site: PathBuf,
        /// The far end of the link at a port of the switch.
        #[arg(required = true, value_name = "PORT@INTERFACE")]
        attachments: Vec<Attachment>,
    },
    /// Measures the time of single packets, of at least 128 bytes, through the switch behind these interfaces.
    Latency {
        site: PathBuf,
        /// Packets per second.
        rate: f64,
        /// Duration in seconds.
        seconds: f64,
        /// The far end of the link at a port of the switch.
        #[arg(required = true, value_name = "PORT@INTERFACE")]
        attachments: Vec<Attachment>,
    },
    /// Forwards unmodified frames between two interfaces until the process is killed.
    Forward {
        one: String,
        other: String,
        /// Use AF_XDP sockets instead of packet sockets.
        #[arg(long)]
        xdp: bool,
    },
    /// Measures the signals of a QUIC server alone: nanoseconds that they add to each sent packet.
    Signals,
    /// Measures the service dispatcher on one core, in process and over loopback sockets: packets per second and added latency.
    Dispatcher,
    /// Measures the eBPF programs of frontage-cclb7 alone: nanoseconds per packet. Needs root.
    Ebpf,
    /// Draws rules of a packet filter and packets for them: entries and traffic of a site.
    Acl {
        masks: Masks,
        rules: usize,
        packets: usize,
        seed: u64,
    },
    /// Measures a table alone: lookups, insertions and deletions per second of one core's time.
    Table {
        /// Compiled `bench/p4/tables.p4`.
        program: PathBuf,
        kind: Kind,
        entries: usize,
    },
    /// Measures a table alone: bytes of memory.
    Memory {
        /// Compiled `bench/p4/tables.p4`.
        program: PathBuf,
        kind: Kind,
        entries: usize,
    },
}

fn read_all(sites: &[PathBuf]) -> Result<Vec<Site>> {
    sites.iter().map(|site| Site::read(site)).collect()
}

fn main() -> Result<()> {
    let result = match Command::parse() {
        Command::Pipeline { sites } => {
            serde_json::to_value(pipeline::measure(&read_all(&sites)?)?)?
        }
        Command::Connections { site, counts } => {
            serde_json::to_value(connections::measure(&Site::read(&site)?, &counts)?)?
        }
        Command::Threads { sites } => serde_json::to_value(threads::measure(&read_all(&sites)?)?)?,
        Command::Passes { site } => serde_json::to_value(passes::count(&Site::read(&site)?)?)?,
        Command::Wire { site, attachments } => {
            let site = Site::read(&site)?;
            serde_json::to_value(wire::measure(&site.traffic.packets()?, &attachments)?)?
        }
        Command::Latency {
            site,
            rate,
            seconds,
            attachments,
        } => {
            let packets = Site::read(&site)?.traffic.packets()?;
            serde_json::to_value(latency::measure(&packets, &attachments, rate, seconds)?)?
        }
        Command::Signals => serde_json::to_value(signals::measure()?)?,
        Command::Ebpf => ebpf::measure()?,
        Command::Dispatcher => serde_json::to_value(dispatcher::measure()?)?,
        Command::Forward { one, other, xdp } => {
            let sockets = if xdp { Sockets::Xdp } else { Sockets::Packet };
            return forward::forward(&one, &other, sockets);
        }
        Command::Acl {
            masks,
            rules,
            packets,
            seed,
        } => serde_json::to_value(Acl::new(masks, rules, packets, seed))?,
        Command::Table {
            program,
            kind,
            entries,
        } => serde_json::to_value(tables::rates(&program, kind, entries)?)?,
        Command::Memory {
            program,
            kind,
            entries,
        } => serde_json::json!({ "bytes": tables::memory(&program, kind, entries)? }),
    };
    println!("{result:#}");
    Ok(())
}
