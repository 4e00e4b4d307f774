// SPDX-License-Identifier: Apache-2.0
//! The `softswitch` program.

mod logging;
mod ports;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use ports::Ports;
use softswitch::address::{Address, NanomsgAddress};
use softswitch::bfrt;
use softswitch::cli::Options;
use softswitch::coverage::CoverageFile;
use softswitch::dataplane::{Clock, PortSetup};
use softswitch::log::{Log, PacketLog};
use softswitch::notifications::Notifications;
use softswitch::p4rt::deployment::LoadedProgram;
use softswitch::port::files::{self, Feed};
use softswitch::switch::{Config, Switch};
use softswitch::trace::TraceLog;
use softswitch::{thrift, tls};
use softswitch_pipeline::FORMAT_VERSION;
use tokio::signal::unix::{SignalKind, signal};

/// The default address of the BfRuntime server; the port is the one of Tofino's drivers.
const BFRT_ADDRESS: &str = "0.0.0.0:50052";

fn main() -> ExitCode {
    let options = Options::from_args(std::env::args_os()).unwrap_or_else(|error| error.exit());
    if options.json_version {
        let (major, minor) = FORMAT_VERSION;
        println!("{major}.{minor}");
        return ExitCode::SUCCESS;
    }
    let result = match options.report {
        true => report(&options),
        false => run(options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("softswitch: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Prints how packets of the initial program share its state.
fn report(options: &Options) -> anyhow::Result<()> {
    if let Some(path) = &options.program {
        print!("{}", load(path)?.program.parallelism());
    }
    Ok(())
}

fn run(options: Options) -> anyhow::Result<()> {
    let log = logging::start(&options.log)?;
    for note in &options.notes {
        eprintln!("softswitch: note: {note}");
    }
    let Ports { setups, feeds } = Ports::open(&options, log.as_ref())?;
    let feeds = options.use_files.map(|seconds| (feeds, seconds));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // These threads serve only a few controllers; the packet threads are separate.
        .worker_threads(2)
        .enable_all()
        .build()
        .context("starting the control plane's threads")?;
    runtime.block_on(async {
        let thrift = thrift_listener(&options)?;
        let notifications = notifications(&options, thrift.is_some()).await?;
        let config = Config {
            notifications,
            thrift: thrift.map(|listener| thrift::Config {
                listener,
                enable_swap: !options.disable_swap,
                priority_queues: options.unused.priority_queues.unwrap_or(1),
            }),
            ..configure(options, setups, log)?
        };
        serve(config, feeds).await
    })
}

/// Serves until a signal or a failure. Packets in files are received after their delay in seconds.
async fn serve(config: Config, feeds: Option<(Vec<Feed>, u64)>) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut report = signal(SignalKind::user_defined1())?;
    let mut switch = Switch::start(config).await?;
    println!("grpc-server-addr={}", switch.grpc);
    if let Some(address) = &switch.metrics_address {
        println!("metrics-addr={address}");
    }
    if let Some(address) = &switch.packets_address {
        println!("dp-grpc-server-addr={address}");
    }
    if let Some(address) = &switch.bfrt_address {
        println!("bfrt-grpc-server-addr={address}");
    }
    if let Some(server) = &switch.thrift {
        println!("thrift-addr={}", server.address());
    }
    println!("ready");
    if let Some((feeds, seconds)) = feeds {
        let play = move || files::play(feeds, Duration::from_secs(seconds));
        std::thread::Builder::new()
            .name("files".into())
            .spawn(play)
            .context("starting the thread that reads packets from files")?;
    }
    let result = loop {
        tokio::select! {
            _ = terminate.recv() => break Ok(()),
            _ = interrupt.recv() => break Ok(()),
            _ = report.recv() => eprint!("{}", switch.metrics.summary()),
            error = switch.failed() => break Err(error),
        }
    };
    let metrics = switch.metrics.clone();
    switch.stop().await;
    eprint!("{}", metrics.summary());
    result
}

/// Loads the initial program.
fn load(path: &Path) -> anyhow::Result<LoadedProgram> {
    let text = path.display();
    let json =
        std::fs::read_to_string(path).with_context(|| format!("cannot read program {text}"))?;
    LoadedProgram::load(json).with_context(|| format!("cannot load program {text}"))
}

fn configure(
    options: Options,
    ports: Vec<PortSetup>,
    log: Option<Arc<Log>>,
) -> anyhow::Result<Config> {
    let program = options.program.as_deref().map(load);
    let trace = options.trace.map(|format| {
        let path = options.trace_file.as_deref();
        TraceLog::create(format, path).with_context(|| {
            let path = path.map(|p| p.display().to_string()).unwrap_or_default();
            format!("--trace-file: cannot create {path}")
        })
    });
    let coverage = options
        .coverage
        .clone()
        .map(|path| CoverageFile::create(path, options.program.as_deref()).context("--coverage"));
    let pipeline = softswitch_pipeline::Options {
        engine: options.engine.into(),
        seed: options.seed,
        drop_port: options.drop_port,
        cpu_port: options.cpu_port,
        pipes: options.pipes,
        ..softswitch_pipeline::Options::default()
    };
    let program = program.transpose()?;
    let bfrt = bfrt(&options, program.as_ref())?;
    Ok(Config {
        bfrt,
        clock: if options.time_of_day {
            Clock::from_time_of_day()
        } else {
            Clock::from_zero()
        },
        threads: options.threads(),
        device_id: options.device_id,
        program,
        ports,
        cpu_port: options.cpu_port,
        options: options.limits.apply(pipeline),
        keeps_program: options.disable_swap,
        seed: options.seed,
        packets: options.dp_grpc_server_addr,
        tls: tls::configure(&options.tls)?,
        metrics: options.metrics_addr,
        trace: trace.transpose()?,
        log: log.map(|log| PacketLog::new(log, options.drop_port)),
        coverage: coverage.transpose()?,
        ..Config::new(options.grpc_server_addr)
    })
}

/// Returns the configuration of the BfRuntime server, which programs for TNA have by default.
fn bfrt(
    options: &Options,
    program: Option<&LoadedProgram>,
) -> anyhow::Result<Option<bfrt::Config>> {
    let is_tna = program.is_some_and(bfrt::is_tna);
    let given = options.bfrt_grpc_server_addr.clone();
    let default = || is_tna.then(|| Address::Tcp(BFRT_ADDRESS.into()));
    let Some(address) = given.or_else(default) else {
        return Ok(None);
    };
    let schema = options.bfrt_schema.as_ref().map(|path| {
        let text = path.display();
        std::fs::read(path).with_context(|| format!("--bfrt-schema: cannot read {text}"))
    });
    Ok(Some(bfrt::Config {
        address,
        program: options.program.clone(),
        schema: schema.transpose()?,
    }))
}

/// Binds the address of notifications. If BMv2's default address is not available, the switch starts without it, because
/// few controllers need notifications.
async fn notifications(
    options: &Options,
    has_thrift: bool,
) -> anyhow::Result<Option<Notifications>> {
    let device_id = options.device_id;
    let bind = |address| Notifications::bind(address, device_id);
    if let Some(address) = &options.notifications_addr {
        let bound = bind(address.clone()).await;
        let bound =
            bound.with_context(|| format!("--notifications-addr: cannot bind {address}"))?;
        return Ok(Some(bound));
    }
    if !has_thrift {
        return Ok(None);
    }
    let address = NanomsgAddress::of_device(device_id);
    match bind(address.clone()).await {
        Ok(bound) => Ok(Some(bound)),
        Err(error) => {
            eprintln!("softswitch: note: no notifications at {address}: {error}");
            Ok(None)
        }
    }
}

/// Binds the port of the Thrift server, if there is one. Thrift has no TLS: where P4Runtime requires it, only clients on
/// this machine may use Thrift, which can change the tables, too.
fn thrift_listener(options: &Options) -> anyhow::Result<Option<TcpListener>> {
    if let Some(port) = options.thrift_port {
        let listener = if options.tls.grpc_server_ssl {
            TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        } else {
            TcpListener::bind((Ipv6Addr::UNSPECIFIED, port))
                .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)))
        };
        let listener =
            listener.with_context(|| format!("--thrift-port: cannot listen on port {port}"))?;
        return Ok(Some(listener));
    }
    Ok(options
        .default_thrift_port
        .and_then(default_thrift_listener))
}

/// Binds the default port, for clients on this machine only. If another switch has it, this one starts without
/// Thrift.
fn default_thrift_listener(port: u16) -> Option<TcpListener> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listener = TcpListener::bind(address);
    if let Err(error) = &listener {
        eprintln!(
            "softswitch: note: no Thrift server: cannot listen on {address}: {error}: choose a port with --thrift-port"
        );
    }
    listener.ok()
}
