// SPDX-License-Identifier: Apache-2.0
//! Measures packets per second of a *site*: a P4 program with its entries and its traffic, as a JSON file of
//! `bench/sites.py` describes it. Results are JSON on standard output; `bench/run.py` is what people call.

mod acl;
mod clock;
mod dispatcher;
mod ebpf;
mod forward;
mod frame;
mod pipeline;
mod quic;
mod random;
mod signals;
mod site;
mod tables;
mod traffic;
mod wire;

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;

use acl::{Acl, Masks};
use site::Site;
use tables::Kind;
use wire::Attachment;

/// Packets per second of a P4 program with realistic entries and traffic.
#[derive(Parser)]
#[command(version)]
enum Command {
    /// In process, on one core, without queues: all packets mixed, and each kind alone.
    Pipeline { site: PathBuf },
    /// Through the switch behind these interfaces: the highest rate without loss, and what comes through in overload.
    Wire {
        site: PathBuf,
        /// The far end of the link at a port of the switch.
        #[arg(required = true, value_name = "PORT@INTERFACE")]
        attachments: Vec<Attachment>,
    },
    /// Forwards between two interfaces, with nothing done to the frames, until it is ended.
    Forward { one: String, other: String },
    /// The signals of a QUIC server alone: nanoseconds that they add to each packet it sends.
    Signals,
    /// The service dispatcher on one core, in process and over loopback sockets: packets per second, and the latency it adds.
    Dispatcher,
    /// The eBPF programs of frontage-cclb7 alone: nanoseconds per packet. Needs root.
    Ebpf,
    /// Rules of a packet filter and packets for them: entries and traffic for a site.
    Acl {
        masks: Masks,
        rules: usize,
        packets: usize,
        seed: u64,
    },
    /// A table alone: lookups, insertions and deletions per second of one core's time.
    Table {
        /// `bench/p4/tables.p4`, compiled.
        program: PathBuf,
        kind: Kind,
        entries: usize,
    },
    /// A table alone: bytes of memory.
    Memory {
        /// `bench/p4/tables.p4`, compiled.
        program: PathBuf,
        kind: Kind,
        entries: usize,
    },
}

fn main() -> Result<()> {
    let result = match Command::parse() {
        Command::Pipeline { site } => {
            let site = Site::read(&site)?;
            serde_json::to_value(pipeline::measure(&site)?)?
        }
        Command::Wire { site, attachments } => {
            let site = Site::read(&site)?;
            serde_json::to_value(wire::measure(&site.traffic.packets()?, &attachments)?)?
        }
        Command::Signals => serde_json::to_value(signals::measure()?)?,
        Command::Ebpf => ebpf::measure()?,
        Command::Dispatcher => serde_json::to_value(dispatcher::measure()?)?,
        Command::Forward { one, other } => return forward::forward(&one, &other),
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
