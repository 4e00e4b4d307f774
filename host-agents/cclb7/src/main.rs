// SPDX-License-Identifier: Apache-2.0
//! `frontage-cclb7`: the agent's command line.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use frontage_cclb7::agent::{self, Attached, Attachment, Sizes};
use frontage_cclb7::state::State;
use frontage_cclb7::{bench, stats, system};
use frontage_daemon::metrics::serve_with;
use frontage_daemon::process::exit_code;
use serde_json::json;

#[derive(Parser)]
#[command(
    name = "frontage-cclb7",
    version,
    about = "Makes an unmodified server a producer of CloudCookies over TCP",
    after_help = "Examples:
  frontage-cclb7 attach --interface eth0 --port 80,443      write cookies from now on
  frontage-cclb7 run --interface eth0 --port 80 --metrics 127.0.0.1:9464
                                                            the same, and serve metrics
  frontage-cclb7 attach --netns s1 --interface eth0 --port 80 --pin-dir /sys/fs/bpf/s1
                                                            in a network namespace
  frontage-cclb7 stats --json --pin-dir /sys/fs/bpf/s1      loads and packets
  frontage-cclb7 detach                                     drain the server first

The programs stay attached when this command ends. Responses are reported by nginx's module
ngx_http_cloudcookie_filter_module, or by any server through send_cc() of libfrontage_cc."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Attach the programs, or adopt attached ones with new settings
    Attach(AttachArgs),
    /// Attach, then serve metrics until killed; the programs stay
    Run {
        #[command(flatten)]
        attach: AttachArgs,
        /// Address of the Prometheus endpoint, in the namespace that the command is started in
        #[arg(long, default_value = "127.0.0.1:9464")]
        metrics: SocketAddr,
    },
    /// Remove the programs and everything they know
    Detach {
        #[command(flatten)]
        place: Place,
    },
    /// Show loads, connections and packets
    Stats {
        #[command(flatten)]
        place: Place,
        /// As JSON, with every connection
        #[arg(long)]
        json: bool,
        /// Again every second (with --json: one line each, without the connections)
        #[arg(long)]
        watch: bool,
    },
    /// Measure nanoseconds per packet of both programs, without attaching them
    Bench {
        /// As a JSON list of {name, value, unit, peer, peer_value, ratio}
        #[arg(long)]
        json: bool,
        /// Runs of each program
        #[arg(long, default_value_t = 1_000_000)]
        repeat: u32,
    },
}

#[derive(Args)]
struct Place {
    /// Network namespace of the server: a name of `ip netns`, or a path such as /proc/PID/ns/net
    #[arg(long)]
    netns: Option<String>,
    /// Folder in bpffs that holds the programs' state; one for each network namespace
    #[arg(long, default_value = "/sys/fs/bpf/frontage-cclb7")]
    pin_dir: PathBuf,
}

#[derive(Args)]
struct AttachArgs {
    #[command(flatten)]
    place: Place,
    /// Ethernet interface that the server's packets pass
    #[arg(long)]
    interface: String,
    /// Listening ports; each counts as a server of its own
    #[arg(long, value_delimiter = ',', required = true)]
    port: Vec<u16>,
    /// Bandwidth that a connection is assumed to get, in bit/s (RPT = remaining bytes / bandwidth)
    #[arg(long, default_value = "1gbit", value_parser = parse_bandwidth)]
    bandwidth: u64,
    /// Remaining bytes above which a response counts in N_FF
    #[arg(long, default_value = "65536", value_parser = parse_bytes)]
    look_ahead: u64,
    /// Connections at a time; more are served, but neither counted nor given an RPT
    #[arg(long, default_value_t = 65_536)]
    flows: u32,
    /// Handshakes and recently closed connections remembered at a time
    #[arg(long, default_value_t = 65_536)]
    handshakes: u32,
}

fn main() -> ExitCode {
    exit_code(execute(Cli::parse().command))
}

fn execute(command: Command) -> Result<()> {
    match command {
        Command::Attach(args) => attach(args),
        Command::Run {
            attach: args,
            metrics,
        } => run(args, metrics),
        Command::Detach { place } => {
            enter(&place)?;
            agent::detach(&place.pin_dir)
        }
        Command::Stats { place, json, watch } => show(&place, json, watch),
        Command::Bench { json, repeat } => measure(json, repeat),
    }
}

fn enter(place: &Place) -> Result<()> {
    place.netns.as_deref().map_or(Ok(()), system::enter_netns)
}

fn attach(args: AttachArgs) -> Result<()> {
    enter(&args.place)?;
    let wanted = Attachment {
        interface: args.interface,
        ports: args.port,
        bandwidth: args.bandwidth,
        look_ahead: args.look_ahead,
        sizes: Sizes {
            flows: args.flows,
            handshakes: args.handshakes,
        },
        pin_dir: args.place.pin_dir,
    };
    let how = match agent::attach(&wanted)? {
        Attached::Fresh => "attached to",
        Attached::Adopted => "adopted on",
    };
    println!(
        "{how} {}, ports {:?}, state in {}",
        wanted.interface,
        wanted.ports,
        wanted.pin_dir.display()
    );
    Ok(())
}

fn run(args: AttachArgs, address: SocketAddr) -> Result<()> {
    let listener = TcpListener::bind(address).with_context(|| {
        format!("cannot serve metrics on {address}; choose another with --metrics")
    })?;
    let pin_dir = args.place.pin_dir.clone();
    attach(args)?;
    println!("metrics on http://{}/metrics", listener.local_addr()?);
    let state = State::open(&pin_dir)?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async {
            listener.set_nonblocking(true)?;
            let listener = tokio::net::TcpListener::from_std(listener)?;
            serve_with(listener, || stats::to_prometheus(&state)).await;
            Ok(())
        })
}

fn show(place: &Place, json: bool, watch: bool) -> Result<()> {
    let state = State::open(&place.pin_dir)?;
    loop {
        match (json, watch) {
            (true, false) => println!("{:#}", stats::to_json(&state, true)?),
            (true, true) => println!("{}", stats::to_json(&state, false)?),
            (false, false) => print!("{}", stats::to_text(&state)?),
            (false, true) => print!("\x1b[H\x1b[J{}", stats::to_text(&state)?),
        }
        if !watch {
            return Ok(());
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn measure(json: bool, repeat: u32) -> Result<()> {
    let costs = bench::measure(repeat)?;
    if json {
        let ratio = f64::from(costs.egress) / bench::PAPER_EGRESS_NS;
        let rows = json!([
            {
                "name": "ebpf_ns_per_packet_egress", "value": costs.egress, "unit": "ns",
                "peer": "CloudCookie V-E, kernel patch, p99", "peer_value": bench::PAPER_EGRESS_NS, "ratio": ratio,
            },
            {
                "name": "ebpf_ns_per_packet_ingress", "value": costs.ingress, "unit": "ns",
                "peer": null, "peer_value": null, "ratio": null,
            },
        ]);
        println!("{rows:#}");
    } else {
        println!(
            "egress  {:>5} ns per packet\ningress {:>5} ns per packet",
            costs.egress, costs.ingress
        );
    }
    Ok(())
}

fn parse_bandwidth(text: &str) -> Result<u64, String> {
    let units = [
        ("gbit", 1_000_000_000),
        ("mbit", 1_000_000),
        ("kbit", 1_000),
        ("bit", 1),
        ("", 1),
    ];
    let bits = parse_unit(text, &units)?;
    if bits < 1_000_000 {
        Err("at least 1mbit".into())
    } else {
        Ok(bits)
    }
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    parse_unit(
        text,
        &[
            ("gb", 1_000_000_000),
            ("mb", 1_000_000),
            ("kb", 1_000),
            ("b", 1),
            ("", 1),
        ],
    )
}

fn parse_unit(text: &str, units: &[(&str, u64)]) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &lower[digits.len()..];
    let names = || {
        units
            .iter()
            .map(|u| u.0)
            .filter(|n| !n.is_empty())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let (_, factor) = units
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(|| format!("unknown unit {unit:?}; use {}", names()))?;
    let number: f64 = digits
        .parse()
        .map_err(|_| format!("{digits:?} is no number"))?;
    if number > 0.0 && number * (*factor as f64) < 1e15 {
        Ok((number * *factor as f64) as u64)
    } else {
        Err(format!("{text} is out of range"))
    }
}
