// SPDX-License-Identifier: Apache-2.0
//! `frontage-cclb7-quic`: the load balancer's command line.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use frontage_cclb7_quic::{config, server::Server};
use frontage_daemon::logging::LogArgs;
use frontage_daemon::process::exit_code;
use frontage_daemon::shutdown::Signals;
use frontage_http::config::load_keys;
use frontage_quic::keys::Keys;

/// The C library's allocator returns memory to the kernel between two downloads and takes it again, page by page.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// HTTP/3 load balancer and file server whose packets signal its load and each flow's remaining processing time to switches.
///
/// SIGHUP reloads certificate, keys, and the order that moves clients. SIGTERM and SIGINT shut down after active requests have ended.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Configuration file (TOML); see host-agents/cclb7-quic/README.md
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
        if let Some(cookie) = &config.cookie {
            Keys::new(cookie.sid, load_keys(cookie.keys.get_ref())?)?;
        }
        return Ok(());
    }
    let signals = Signals::subscribe()?;
    let server = Server::start(config).await?;
    let end = signals.wait("certificate, keys and order", || server.reload());
    server.run(end).await;
    Ok(())
}
