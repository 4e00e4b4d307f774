// SPDX-License-Identifier: Apache-2.0
//! `frontage-real-server`: the real server's command line.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use frontage_daemon::logging::LogArgs;
use frontage_daemon::process::exit_code;
use frontage_daemon::shutdown::Signals;
use frontage_real_server::config;
use frontage_real_server::cookies::Cookies;
use frontage_real_server::server::Server;

/// The C library's allocator returns memory to the kernel between two responses and takes it again, page by page.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Responds to requests that balancers delegate, directly to the clients and from the balancers' addresses (docs/handoff.md).
///
/// SIGHUP reloads the cookie keys. SIGTERM and SIGINT shut down after active responses have ended.
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

const EXAMPLE: &str = "Example of a configuration:

  listen = \"[2001:db8::11]:4500\"      # UDP, for balancers
  certificate = \"rs1.pem\"             # paths are relative to this file
  private_key = \"rs1.key\"
  ca = \"ca.pem\"                       # CA of the balancers' certificates
  balancers = [\"lb1.example\"]         # names in their certificates
  origin = \"[2001:db8::11]:8080\"      # HTTP/1.1, for requests that are not delegated; optional
  metrics = \"127.0.0.1:9154\"          # Prometheus; optional
  access_log = \"-\"                    # one JSON object per line; optional
  congestion = \"cubic\"                # or \"bbr\"

  [cookie]                            # required if balancers use cookies
  keys = \"keys.toml\"                  # the balancers' key file
  bandwidth = \"1gbit\"                 # RPT = remaining bytes / bandwidth

  [[route]]
  path = \"/\"
  directory = \"/srv/www\"

  frontage-real-server server.toml";

fn main() -> ExitCode {
    exit_code(run(Args::parse()))
}

#[tokio::main]
async fn run(args: Args) -> Result<()> {
    args.log.init();
    let config = config::load(&args.config)?;
    if args.check {
        config.tls().server()?;
        config.cookie.as_ref().map(Cookies::load).transpose()?;
        return Ok(());
    }
    let signals = Signals::subscribe()?;
    let server = Server::start(config).await?;
    let end = signals.wait("keys", || server.reload());
    server.run(end).await;
    Ok(())
}
