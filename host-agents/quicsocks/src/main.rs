//! `frontage-quicsocks`: the QuicSocks proxy.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use frontage_quicsocks::{config, proxy::Proxy};
use tokio::signal::unix::{SignalKind, signal};

const EXAMPLE: &str = "\
Example configuration:
  listen = [\"[::]:1080\"]
  resolvers = [\"127.0.0.1:53\"]
  metrics = \"127.0.0.1:9464\"

Example:
  frontage-quicsocks /etc/frontage/quicsocks.toml";

/// QuicSocks proxy: a SOCKS 5 proxy that resolves names for distant QUIC clients, forwards their handshakes and answers Retry.
///
/// SIGTERM and SIGINT end it. docs/quicsocks.md describes every setting.
#[derive(Parser)]
#[command(version, after_help = EXAMPLE)]
struct Args {
    /// Configuration file (TOML)
    config: PathBuf,
    /// Check the configuration and exit
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("frontage-quicsocks: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(args: &Args) -> Result<()> {
    let config = config::load(&args.config)?;
    if args.check {
        return Ok(());
    }
    frontage_program::limits::raise_open_files();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let _proxy = Proxy::start(config).await?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
