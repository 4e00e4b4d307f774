//! `frontage-dispatcher`: reads a configuration and serves it, until it is told to end.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use frontage_daemon::logging::LogArgs;
use frontage_daemon::process::exit_code;
use frontage_daemon::shutdown::Termination;
use frontage_dispatcher::control::Control;
use frontage_dispatcher::worker::{Views, start};
use frontage_dispatcher::{api, bench, config};
use tokio::net::TcpListener;

/// Artemis' service dispatcher: sends first flights of QUIC connections to the best site and replica, by the name in them.
///
/// The controller tells it sites, services and mapping over HTTP, the replicas their loads (docs/dispatcher.md).
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true, arg_required_else_help = true, after_help = EXAMPLE)]
struct Args {
    /// The configuration (TOML)
    config: Option<PathBuf>,
    /// Only say whether the configuration is right
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    log: LogArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// First flights per second of one core, and what they wait: in process, and over sockets of this machine
    Bench {
        /// Print rows for bench/run.py
        #[arg(long)]
        json: bool,
    },
}

const EXAMPLE: &str = "Example of a configuration:

  control = \"[2001:db8:1::d]:8080\"      # HTTP
  [tunnel]
  listen = \"[2001:db8:1::d]:4789\"       # VXLAN
  peers = [\"2001:db8:101::1\"]           # the site's switch

  frontage-dispatcher dispatcher.toml";

fn main() -> ExitCode {
    let args = Args::parse();
    args.log.clone().init();
    let result = match (&args.command, &args.config) {
        (Some(Command::Bench { json }), _) => bench::run(*json),
        (None, Some(path)) => {
            config::load(path).and_then(|config| if args.check { Ok(()) } else { serve(&config) })
        }
        (None, None) => Err(anyhow::anyhow!("name a configuration; --help shows one")),
    };
    exit_code(result)
}

#[tokio::main(flavor = "current_thread")]
async fn serve(config: &config::Config) -> Result<()> {
    let mut termination = Termination::subscribe()?;
    let listener = TcpListener::bind(config.control).await;
    let listener =
        listener.with_context(|| format!("control: cannot listen at {}", config.control))?;
    let views = Arc::new(Views::default());
    let counts = start(config, &views)?;
    let control = Arc::new(Control::new(
        config.own(),
        config.tunnel.peers.get_ref().clone(),
        views,
    ));
    let router = api::router(control.clone(), counts);
    // Nothing is lost with it: what was under way is chosen anew, by the same function.
    tokio::select! {
        served = axum::serve(listener, router) => Ok(served?),
        never = control.expire() => never,
        () = termination.wait() => Ok(()),
    }
}
