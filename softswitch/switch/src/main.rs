// SPDX-License-Identifier: Apache-2.0
//! The `softswitch` program.

use std::fs::File;
use std::process::ExitCode;
use std::sync::Mutex;

use anyhow::Context;
use softswitch::cli::{LogLevel, Options};
use softswitch::dataplane::PortSetup;
use softswitch::port::{Receive, Receiver, Transmit, Transmitter, capture, loopback};
use softswitch::switch::{Config, Switch};
use softswitch::trace::TraceLog;
use softswitch_pipeline::Program;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::filter::LevelFilter;

fn main() -> ExitCode {
    let options = Options::from_args(std::env::args_os()).unwrap_or_else(|error| error.exit());
    match run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("softswitch: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> anyhow::Result<()> {
    start_logging(&options)?;
    for note in options.ignored() {
        eprintln!("softswitch: note: {note}");
    }
    let config = configure(options)?;
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

fn configure(options: Options) -> anyhow::Result<Config> {
    let program = options.program.as_ref().map(|path| {
        let path_text = path.display();
        let json = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read program {path_text}"))?;
        Program::load(&json).with_context(|| format!("cannot load program {path_text}"))
    });
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
        seed: options.seed,
        grpc: options.grpc_server_addr,
        metrics: options.metrics_addr,
        trace: trace.transpose()?,
    })
}

fn start_logging(options: &Options) -> anyhow::Result<()> {
    let wanted = options.log_console || options.log_file.is_some();
    let level = match (options.log_level, wanted) {
        (Some(LogLevel::Trace), _) => LevelFilter::TRACE,
        (Some(LogLevel::Debug), _) => LevelFilter::DEBUG,
        (Some(LogLevel::Info), _) | (None, true) => LevelFilter::INFO,
        (Some(LogLevel::Warn), _) | (None, false) => LevelFilter::WARN,
        (Some(LogLevel::Error), _) => LevelFilter::ERROR,
        (Some(LogLevel::Off), _) => LevelFilter::OFF,
    };
    let builder = tracing_subscriber::fmt().with_max_level(level);
    match &options.log_file {
        None => builder.with_writer(std::io::stderr).init(),
        Some(path) => {
            let file = File::create(path)
                .with_context(|| format!("--log-file: cannot create {}", path.display()))?;
            builder
                .with_ansi(false)
                .with_writer(Mutex::new(file))
                .init();
        }
    }
    Ok(())
}
