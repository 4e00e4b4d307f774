// SPDX-License-Identifier: Apache-2.0
//! `frontage-dispatcher`: the service dispatcher of Artemis.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::Parser;
use frontage_daemon::logging::LogArgs;
use frontage_daemon::process::exit_code;
use frontage_daemon::shutdown::Termination;
use frontage_dispatcher::control::ControlPlane;
use frontage_dispatcher::worker::{ViewChannel, start};
use frontage_dispatcher::{api, config};
use tokio::net::TcpListener;

/// Service dispatcher of Artemis: forwards first flights of QUIC connections to the best site and replica for their server name.
///
/// The controller sends sites, services and the mapping over HTTP, and replicas send their loads (docs/dispatcher.md).
#[derive(Parser)]
#[command(version, arg_required_else_help = true, after_help = EXAMPLE)]
struct Args {
    /// Configuration file (TOML)
    config: PathBuf,
    /// Check the configuration and exit
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    log: LogArgs,
}

const EXAMPLE: &str = "Example configuration:

  control = \"[2001:db8:1::d]:8080\"      # HTTP
  [tunnel]
  listen = \"[2001:db8:1::d]:4789\"       # VXLAN
  peers = [\"2001:db8:101::1\"]           # the site's switch

  frontage-dispatcher dispatcher.toml";

fn main() -> ExitCode {
    let args = Args::parse();
    args.log.init();
    let result = config::load(&args.config)
        .and_then(|config| if args.check { Ok(()) } else { serve(&config) });
    exit_code(result)
}

#[tokio::main(flavor = "current_thread")]
async fn serve(config: &config::Config) -> Result<()> {
    let mut termination = Termination::subscribe()?;
    let listener = TcpListener::bind(config.control).await;
    let listener =
        listener.with_context(|| format!("control: cannot listen on {}", config.control))?;
    let views = Arc::new(ViewChannel::default());
    let counters = start(config, &views)?;
    let control = Arc::new(ControlPlane::new(
        config.own_address(),
        config.tunnel.peers.get_ref().clone(),
        views,
    ));
    let router = api::router(control.clone(), counters);
    // Shutdown loses no state that matters: another dispatcher selects the same targets for flights in progress.
    tokio::select! {
        served = axum::serve(listener, router) => Ok(served?),
        never = control.expire_replicas() => never,
        () = termination.wait() => Ok(()),
    }
}
