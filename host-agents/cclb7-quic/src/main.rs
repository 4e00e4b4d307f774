//! `frontage-cclb7-quic`: reads a configuration and serves it, until it is told to end.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use frontage_cclb7_quic::{config, server::Server};
use frontage_quic::keys::Keys;
use tokio::signal::unix::{SignalKind, signal};

/// The C library's gives memory back to the kernel between two downloads and takes it again, page by page.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// An HTTP/3 load balancer and file server whose packets tell the switches how loaded it is and how long each flow still needs.
///
/// SIGHUP reads certificate and keys again; SIGTERM and SIGINT let what is under way end.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The configuration (TOML); host-agents/cclb7-quic/README.md shows one
    config: PathBuf,
    /// Only say whether the configuration is right
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("frontage-cclb7-quic: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(args: &Args) -> Result<()> {
    let config = config::load(&args.config)?;
    if args.check {
        if let Some(cookie) = &config.cookie {
            Keys::new(cookie.sid, config::load_keys(cookie.keys.get_ref())?)?;
        }
        return Ok(());
    }
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let server = Server::start(config).await?;
    let end = async {
        loop {
            tokio::select! {
                _ = terminate.recv() => return,
                _ = interrupt.recv() => return,
                _ = hang_up.recv() => match server.reload() {
                    Ok(()) => eprintln!("frontage-cclb7-quic: certificate and keys were read again"),
                    Err(error) => eprintln!("frontage-cclb7-quic: {error:#}; what was in force stays"),
                },
            }
        }
    };
    server.run(end).await;
    Ok(())
}
