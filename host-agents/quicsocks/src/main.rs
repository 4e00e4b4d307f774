// SPDX-License-Identifier: Apache-2.0
//! `frontage-quicsocks`: the QuicSocks proxy.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use frontage_daemon::logging::LogArgs;
use frontage_daemon::process::{exit_code, raise_open_file_limit};
use frontage_daemon::shutdown::Termination;
use frontage_quicsocks::{config, proxy::Proxy};

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
    #[command(flatten)]
    log: LogArgs,
}

fn main() -> ExitCode {
    exit_code(run(Args::parse()))
}

#[tokio::main]
async fn run(args: Args) -> Result<()> {
    args.log.init();
    let config = config::load(&args.config)?;
    if args.check {
        return Ok(());
    }
    raise_open_file_limit();
    let mut termination = Termination::subscribe()?;
    let _proxy = Proxy::start(config).await?;
    termination.wait().await;
    Ok(())
}
