//! Measures packets per second of a *site*: a P4 program with its entries and its traffic, as a JSON file of
//! `bench/sites.py` describes it. Results are JSON on standard output; `bench/run.py` is what people call.

mod forward;
mod frame;
mod pipeline;
mod site;
mod traffic;
mod wire;

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;

use site::Site;
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
        Command::Forward { one, other } => return forward::forward(&one, &other),
    };
    println!("{result:#}");
    Ok(())
}
