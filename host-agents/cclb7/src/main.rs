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
use frontage_cclb7::{stats, syn_keys, system};
use frontage_daemon::metrics::serve_with;
use frontage_daemon::process::exit_code;

#[derive(Parser)]
#[command(
    name = "frontage-cclb7",
    version,
    about = "Adds CloudCookies to the TCP packets of an unmodified server",
    after_help = "Examples:
  frontage-cclb7 attach --interface eth0 --port 80,443      start to write cookies
  frontage-cclb7 run --interface eth0 --port 80 --metrics 127.0.0.1:9464
                                                            also serve metrics
  frontage-cclb7 attach --netns s1 --interface eth0 --port 80 --pin-dir /sys/fs/bpf/s1
                                                            in a network namespace
  frontage-cclb7 stats --json --pin-dir /sys/fs/bpf/s1      loads and packets
  frontage-cclb7 detach                                     drain the server first

The programs stay attached when this command ends. Servers report their responses through nginx's module
ngx_http_cloudcookie_filter_module, or through send_cc() of libfrontage_cc."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Attach the programs, or adopt attached ones with new settings
    Attach(AttachArgs),
    /// Attach, then serve metrics until killed; the programs stay attached
    Run {
        #[command(flatten)]
        attach: AttachArgs,
        /// Address of the Prometheus endpoint, in the network namespace in which the command is started
        #[arg(long, default_value = "127.0.0.1:9464")]
        metrics: SocketAddr,
    },
    /// Remove the programs and their maps
    Detach {
        #[command(flatten)]
        target: Target,
    },
    /// Show loads, connections and packets
    Stats {
        #[command(flatten)]
        target: Target,
        /// Print JSON, with every connection
        #[arg(long)]
        json: bool,
        /// Repeat every second (with --json: one line each time, without the connections)
        #[arg(long)]
        watch: bool,
    },
}

#[derive(Args)]
struct Target {
    /// Network namespace of the server: a name of `ip netns`, or a path such as /proc/PID/ns/net
    #[arg(long)]
    netns: Option<String>,
    /// Folder in bpffs for the programs' state; use one for each network namespace
    #[arg(long, default_value = "/sys/fs/bpf/frontage-cclb7")]
    pin_dir: PathBuf,
}

#[derive(Args)]
struct AttachArgs {
    #[command(flatten)]
    target: Target,
    /// Interface of the server's packets: an Ethernet device or an IP tunnel
    #[arg(long)]
    interface: String,
    /// Listening ports; each counts as a separate server
    #[arg(long, value_delimiter = ',', required = true)]
    port: Vec<u16>,
    /// Bandwidth that a connection is assumed to get, in bit/s (RPT = remaining bytes / bandwidth)
    #[arg(long, default_value = "1gbit", value_parser = parse_bandwidth)]
    bandwidth: u64,
    /// Remaining bytes above which a response counts in N_FF
    #[arg(long, default_value = "65536", value_parser = parse_bytes)]
    look_ahead: u64,
    /// Key file of `frontage keys`, for connections whose SYN the switch answered; needs Linux 6.9
    #[arg(long, value_name = "FILE")]
    syn_keys: Option<PathBuf>,
    /// Most tracked connections; further ones are served, but not counted and without RPT
    #[arg(long, default_value_t = 65_536)]
    flows: u32,
    /// Most tracked handshakes and recently closed connections
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
        Command::Detach { target } => {
            enter(&target)?;
            agent::detach(&target.pin_dir)
        }
        Command::Stats {
            target,
            json,
            watch,
        } => show(&target, json, watch),
    }
}

fn enter(target: &Target) -> Result<()> {
    target.netns.as_deref().map_or(Ok(()), system::enter_netns)
}

fn attach(args: AttachArgs) -> Result<()> {
    let syn_keys = args.syn_keys.as_deref().map(syn_keys::read).transpose()?;
    enter(&args.target)?;
    let wanted = Attachment {
        interface: args.interface,
        ports: args.port,
        bandwidth: args.bandwidth,
        look_ahead: args.look_ahead,
        syn_keys,
        sizes: Sizes {
            flows: args.flows,
            handshakes: args.handshakes,
        },
        pin_dir: args.target.pin_dir,
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
        format!("cannot serve metrics on {address}: choose another address with --metrics")
    })?;
    let pin_dir = args.target.pin_dir.clone();
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

fn show(target: &Target, json: bool, watch: bool) -> Result<()> {
    let state = State::open(&target.pin_dir)?;
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
        Err("must be at least 1mbit".into())
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
        .ok_or_else(|| format!("unknown unit {unit:?}: use {}", names()))?;
    let number: f64 = digits
        .parse()
        .map_err(|_| format!("invalid number {digits:?}"))?;
    if number > 0.0 && number * (*factor as f64) < 1e15 {
        Ok((number * *factor as f64) as u64)
    } else {
        Err(format!("{text}: out of range"))
    }
}
