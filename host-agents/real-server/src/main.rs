//! `frontage-real-server`: reads a configuration and serves it, until it is told to end.

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

/// The C library's gives memory back to the kernel between two answers and takes it again, page by page.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Answers requests that balancers hand to it straight to their clients, in the balancers' names (docs/handoff.md).
///
/// Nobody but its balancers gets an answer from its own address. SIGHUP reads the cookies' keys again; SIGTERM and SIGINT let what is under way end.
#[derive(Parser)]
#[command(version, after_help = EXAMPLE)]
struct Args {
    /// The configuration (TOML)
    config: PathBuf,
    /// Only say whether the configuration is right
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    log: LogArgs,
}

const EXAMPLE: &str = "Example of a configuration:

  listen = \"[2001:db8::11]:4500\"      # balancers find it here: UDP
  certificate = \"rs1.pem\"             # paths start at this file's folder
  private_key = \"rs1.key\"
  ca = \"ca.pem\"                       # of the balancers' certificates
  balancers = [\"lb1.example\"]         # their names
  origin = \"[2001:db8::11]:8080\"      # HTTP/1.1 for what balancers answer themselves; optional
  metrics = \"127.0.0.1:9154\"          # Prometheus; optional
  access_log = \"-\"                    # one JSON object a line; optional
  congestion = \"cubic\"                # or \"bbr\"

  [cookie]                            # of balancers that have a [cookie]; optional
  keys = \"keys.toml\"                  # the balancers' file
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
