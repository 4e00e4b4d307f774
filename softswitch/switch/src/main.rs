// SPDX-License-Identifier: Apache-2.0
//! The `softswitch` program.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use softswitch::cli::{LogLevel, LogOptions, Options};
use softswitch::dataplane::PortSetup;
use softswitch::log::{Events, Log, PacketLog};
use softswitch::port::dump::Dump;
use softswitch::port::{Receive, Receiver, Transmit, Transmitter, capture, loopback};
use softswitch::switch::{Config, Switch};
use softswitch::tls;
use softswitch::trace::TraceLog;
use softswitch_pipeline::{FORMAT_VERSION, Program};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

fn main() -> ExitCode {
    let options = Options::from_args(std::env::args_os()).unwrap_or_else(|error| error.exit());
    if options.json_version {
        let (major, minor) = FORMAT_VERSION;
        println!("{major}.{minor}");
        return ExitCode::SUCCESS;
    }
    match run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("softswitch: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> anyhow::Result<()> {
    let log = start_logging(&options.log)?;
    for note in &options.notes {
        eprintln!("softswitch: note: {note}");
    }
    let config = configure(options, log)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // These threads serve only a few controllers; the packet threads are separate.
        .worker_threads(2)
        .enable_all()
        .build()
        .context("starting the control plane's threads")?;
    runtime.block_on(serve(config))
}

async fn serve(config: Config) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut report = signal(SignalKind::user_defined1())?;
    let mut switch = Switch::start(config).await?;
    println!("grpc-server-addr={}", switch.grpc);
    if let Some(address) = &switch.metrics_address {
        println!("metrics-addr={address}");
    }
    println!("ready");
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

fn configure(options: Options, log: Option<Arc<Log>>) -> anyhow::Result<Config> {
    let program = options.program.as_ref().map(|path| {
        let path_text = path.display();
        let json = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read program {path_text}"))?;
        Program::load(&json).with_context(|| format!("cannot load program {path_text}"))
    });
    let dump = |port: u32| {
        let bytes = options.log.dump_packet_data;
        let log = log.clone().filter(|_| bytes > 0)?;
        Some(Dump { log, port, bytes })
    };
    let link_of = |port: u32| options.link.iter().find(|link| link.port == port);
    let attached = options.interface.iter().map(|interface| {
        let attaching = || format!("--interface {}@{}", interface.port, interface.name);
        let receiver = Receiver::open(&interface.name).with_context(attaching)?;
        let transmitter = Transmitter::open(&interface.name).with_context(attaching)?;
        let mut receiver: Box<dyn Receive> = Box::new(receiver);
        let mut transmitter: Box<dyn Transmit> = Box::new(transmitter);
        if let Some(dir) = &options.pcap {
            receiver = capture::received(receiver, dir, &interface.name).context("--pcap")?;
            transmitter = capture::sent(transmitter, dir, &interface.name).context("--pcap")?;
        }
        if let Some(dump) = dump(interface.port) {
            receiver = dump.clone().received(receiver);
            transmitter = dump.sent(transmitter);
        }
        Ok(PortSetup {
            number: interface.port,
            name: interface.name.clone(),
            receiver,
            transmitter,
            link: link_of(interface.port).map(|l| l.link).unwrap_or_default(),
        })
    });
    let looped = options.loopback.iter().map(|&number| {
        let (receiver, transmitter) = loopback().with_context(|| format!("--loopback {number}"))?;
        Ok(PortSetup {
            number,
            name: format!("loopback-{number}"),
            receiver: Box::new(receiver),
            transmitter: Box::new(transmitter),
            link: link_of(number).map(|l| l.link).unwrap_or_default(),
        })
    });
    let ports = attached.chain(looped);
    let trace = options.trace.map(|format| {
        let path = options.trace_file.as_deref();
        TraceLog::create(format, path).with_context(|| {
            let path = path.map(|p| p.display().to_string()).unwrap_or_default();
            format!("--trace-file: cannot create {path}")
        })
    });
    let pipeline = softswitch_pipeline::Options {
        seed: options.seed,
        drop_port: options.drop_port,
        ..softswitch_pipeline::Options::default()
    };
    Ok(Config {
        threads: options.threads(),
        device_id: options.device_id,
        program: program.transpose()?,
        ports: ports.collect::<anyhow::Result<_>>()?,
        cpu_port: options.cpu_port,
        options: options.limits.apply(pipeline),
        keeps_program: options.disable_swap,
        seed: options.seed,
        tls: tls::configure(&options.tls)?,
        grpc: options.grpc_server_addr,
        metrics: options.metrics_addr,
        trace: trace.transpose()?,
        log: log.map(|log| PacketLog::new(log, options.drop_port)),
    })
}

/// Begins logging of events: to the log that the options ask for, which is returned for packets, or to standard error.
fn start_logging(options: &LogOptions) -> anyhow::Result<Option<Arc<Log>>> {
    let wanted = options.log_console || options.log_file.is_some();
    let default = [LogLevel::Warn, LogLevel::Trace][usize::from(wanted)];
    let level = options.log_level.unwrap_or(default);
    let log = match &options.log_file {
        Some(path) => {
            let (size, files) = (options.log_file_max_size.get(), options.log_file_max_files);
            let log = Log::file(level, path, size, files);
            Some(log.with_context(|| format!("--log-file: cannot open {}.txt", path.display()))?)
        }
        None => options.log_console.then(|| Log::console(level)),
    };
    // Only events of softswitch's own crates.
    let own = Targets::new().with_target("softswitch", filter(level));
    let registry = tracing_subscriber::registry();
    match &log {
        Some(log) => registry
            .with(Events(Arc::clone(log)).with_filter(own))
            .init(),
        None => {
            let stderr = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
            registry.with(stderr.with_filter(own)).init();
        }
    }
    Ok(log)
}

fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Trace => LevelFilter::TRACE,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Off => LevelFilter::OFF,
    }
}
