// SPDX-License-Identifier: Apache-2.0
//! `frontage-mobile`: connections that follow a name whose address changes.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use frontage_daemon::logging::LogArgs;
use frontage_daemon::process::{exit_code, raise_open_file_limit};
use frontage_daemon::shutdown::Termination;
use frontage_mobile::addresses::{Address, observe};
use frontage_mobile::connect::Client;
use frontage_mobile::dial::Network;
use frontage_mobile::follow::follow;
use frontage_mobile::key::Secret;
use frontage_mobile::listen::Server;
use frontage_mobile::local::Local;
use frontage_mobile::metrics::Metrics;
use frontage_mobile::publish::Publisher;
use frontage_mobile::records::{Name, Records, ServerUrl};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// Connections that follow a name whose address changes
///
/// A mobile service runs `listen`, which publishes the machine's addresses in the record of the service's name. Clients run
/// `connect`, which keeps connections open while either end moves. Programs connect to the local ends with ordinary TCP.
/// docs/mobile.md describes the protocol.
#[derive(Parser)]
#[command(version)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Create a key and print it
    #[command(after_help = "Example:\n  (umask 077; frontage-mobile key > mobile.key)")]
    Key,
    /// Accept connections for a service, and publish the machine's addresses whenever they change
    #[command(after_help = "Example:
  frontage-mobile listen laptop.example --forward 127.0.0.1:22 --records http://192.0.2.8:8480 --key mobile.key")]
    Listen(ListenArgs),
    /// Carry local connections to a service, and keep them open while its address or the local one changes
    ///
    /// Without --listen, carries the standard streams, as a ProxyCommand of ssh.
    #[command(after_help = "Examples:
  frontage-mobile connect laptop.example --listen 127.0.0.1:2222 --records http://192.0.2.8:8480 --key mobile.key
  ssh -o ProxyCommand='frontage-mobile connect %h --records http://192.0.2.8:8480 --key mobile.key' laptop.example")]
    Connect(ConnectArgs),
}

#[derive(clap::Args)]
struct CommonArgs {
    /// Name of the record
    name: Name,
    /// URL of a record server; more than one in the order of preference
    #[arg(long, required = true, value_name = "URL")]
    records: Vec<ServerUrl>,
    /// File with the key that the service shares with its clients
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// File with the bearer token for the record servers
    #[arg(long, value_name = "FILE")]
    token: Option<PathBuf>,
    /// PEM file with the authorities of record servers with https
    #[arg(long, value_name = "FILE")]
    authorities: Option<PathBuf>,
    /// KiB that are stored for each session and direction, until the peer has delivered them; the lower of both ends counts
    #[arg(long, value_name = "KIB", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(64..=1 << 20))]
    buffer: u32,
    /// Most sessions at a time
    #[arg(long, value_name = "N", default_value_t = 1024)]
    max_sessions: usize,
    /// Seconds without the peer after which a session fails
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    session_timeout: u64,
    /// Address for Prometheus metrics
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    log: LogArgs,
}

#[derive(clap::Args)]
struct ListenArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Address of the service
    #[arg(long, value_name = "ADDRESS")]
    forward: SocketAddr,
    /// Address for clients; port 0 takes any free port, which the record contains
    #[arg(long, value_name = "ADDRESS", default_value = "[::]:0")]
    listen: SocketAddr,
    /// Interface whose addresses are published; all interfaces if absent
    #[arg(long, value_name = "NAME")]
    interface: Vec<String>,
}

#[derive(clap::Args)]
struct ConnectArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Local address to which programs connect
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
}

fn main() -> ExitCode {
    let command = Args::parse().command;
    let result = Runtime::new().context("cannot start threads");
    exit_code(result.and_then(|runtime| {
        let result = runtime.block_on(run(command));
        // A read of the standard input cannot be cancelled, so the process must not wait for it.
        runtime.shutdown_background();
        result
    }))
}

async fn run(command: Command) -> Result<()> {
    match command {
        Command::Key => {
            println!("{}", Secret::random().to_hex());
            Ok(())
        }
        Command::Listen(args) => listen(args).await,
        Command::Connect(args) => connect(args).await,
    }
}

/// The parts that both commands need.
struct Parts {
    name: Name,
    key: Secret,
    records: Records,
    observed: watch::Receiver<Vec<Address>>,
    metrics: Arc<Metrics>,
    window: u32,
    max_sessions: usize,
    session_timeout: Duration,
}

impl Parts {
    async fn start(args: CommonArgs) -> Result<Self> {
        args.log.init();
        raise_open_file_limit();
        let metrics: Arc<Metrics> = Arc::default();
        if let Some(address) = args.metrics {
            let listener = TcpListener::bind(address).await;
            let listener =
                listener.with_context(|| format!("--metrics {address}: cannot listen"))?;
            let source = metrics.clone();
            let registry = frontage_daemon::metrics::registry("frontage_mobile", move |families| {
                source.collect(families)
            });
            tokio::spawn(frontage_daemon::metrics::serve(listener, registry));
        }
        Ok(Self {
            name: args.name,
            key: Secret::load(&args.key)?,
            records: Records::new(
                &args.records,
                args.token.as_deref(),
                args.authorities.as_deref(),
            )?,
            observed: observe().context("cannot observe this machine's addresses")?,
            metrics,
            window: args.buffer * 1024,
            max_sessions: args.max_sessions,
            session_timeout: Duration::from_secs(args.session_timeout),
        })
    }
}

async fn listen(args: ListenArgs) -> Result<()> {
    let mut termination = Termination::subscribe()?;
    let parts = Parts::start(args.common).await?;
    let listener = TcpListener::bind(args.listen).await;
    let listener = listener.with_context(|| format!("--listen {}: cannot listen", args.listen))?;
    let publisher = Publisher {
        records: parts.records,
        name: parts.name,
        port: listener.local_addr()?.port(),
        interfaces: args.interface,
        metrics: &parts.metrics,
    };
    let server = Server {
        key: parts.key,
        forward: args.forward,
        window: parts.window,
        max_sessions: parts.max_sessions,
        session_timeout: parts.session_timeout,
        metrics: parts.metrics.clone(),
        sessions: Default::default(),
    };
    tokio::select! {
        () = Arc::new(server).serve(listener) => {}
        () = publisher.run(parts.observed) => {}
        () = termination.wait() => {}
    }
    Ok(())
}

async fn connect(args: ConnectArgs) -> Result<()> {
    let mut termination = Termination::subscribe()?;
    let parts = Parts::start(args.common).await?;
    let client = Client {
        network: Network {
            target: follow(parts.records, parts.name, parts.observed.clone()),
            observed: parts.observed,
        },
        key: parts.key,
        window: parts.window,
        max_sessions: parts.max_sessions,
        session_timeout: parts.session_timeout,
        metrics: parts.metrics,
    };
    let Some(address) = args.listen else {
        return tokio::select! {
            result = client.carry(Local::standard()) => result,
            () = termination.wait() => Ok(()),
        };
    };
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| format!("--listen {address}: cannot listen"))?;
    tokio::select! {
        () = Arc::new(client).serve(listener) => {}
        () = termination.wait() => {}
    }
    Ok(())
}
