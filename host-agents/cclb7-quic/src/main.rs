//! `frontage-cclb7-quic`: reads a configuration and serves it, until it is told to end.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use frontage_cclb7_quic::{config, server::Server};
use frontage_daemon::logging::LogArgs;
use frontage_daemon::process::exit_code;
use frontage_daemon::shutdown::Signals;
use frontage_quic::keys::Keys;

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
            Keys::new(cookie.sid, config::load_keys(cookie.keys.get_ref())?)?;
        }
        return Ok(());
    }
    let signals = Signals::subscribe()?;
    let server = Server::start(config).await?;
    let end = signals.wait("certificate and keys", || server.reload());
    server.run(end).await;
    Ok(())
}
