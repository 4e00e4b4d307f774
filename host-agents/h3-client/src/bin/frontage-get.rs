// SPDX-License-Identifier: Apache-2.0
//! `frontage-get`: one HTTP/3 download with the time of each step.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use artemis::ServicePrefix;
use clap::Parser;
use frontage_h3_client::by_name::{Fetch, Lookup, Proxy, Route};
use frontage_h3_client::client::Options;
use frontage_h3_client::{Trust, block_on};
use frontage_quicsocks_client::Credentials;

const EXAMPLES: &str = "\
Examples:
  frontage-get https://films.example/1 --artemis 2001:db8:a::/48+16 --cache /run/user/1000/artemis
  frontage-get https://films.example/1 --resolver '[2001:db8::53]:53' --json
  frontage-get https://films.example/1 --quicksocks proxy.example:1080";

/// Downloads a URL over HTTP/3 and prints the time of each step.
///
/// The steps are name resolution, connection setup, first byte, last byte, and migration: to the server's preferred address, or
/// from a QuicSocks proxy to the direct path.
///
/// Exit status: 0 on success, 1 if the download failed, 2 if it could not start.
#[derive(Parser)]
#[command(version, after_help = EXAMPLES)]
struct Args {
    /// URL to download
    url: String,
    /// Connect to the Service Address: the name hashed into BITS bits below PREFIX (docs/naming.md)
    #[arg(long, value_name = "PREFIX+BITS", conflicts_with = "resolver")]
    artemis: Option<ServicePrefix>,
    /// Cache file for the unicast addresses of services, which are tried first; processes may share it
    #[arg(long, value_name = "FILE", requires = "artemis")]
    cache: Option<PathBuf>,
    /// Resolve the name with this DNS server; the default is the system's resolver
    #[arg(long, value_name = "ADDR:PORT")]
    resolver: Option<SocketAddr>,
    /// Let this proxy resolve the name and forward the handshake, then migrate to the direct path (docs/quicsocks.md)
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port, conflicts_with_all = ["artemis", "resolver"])]
    quicksocks: Option<String>,
    /// User name and password for the proxy; other users of this machine can see them in the process list
    #[arg(long, value_name = "NAME:PASSWORD", value_parser = credentials, requires = "quicksocks")]
    quicksocks_user: Option<Credentials>,
    #[command(flatten)]
    trust: Trust,
    /// File for the body; without it, the body is discarded
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print one line of JSON instead of a table
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    match block_on(run(Args::parse())) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("frontage-get: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn host_and_port(text: &str) -> Result<String, &'static str> {
    let is_valid = text.rsplit_once(':').is_some_and(|(host, port)| {
        let lacks_brackets = host.contains(':') && !host.starts_with('[');
        !host.is_empty() && !lacks_brackets && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    let fix = "must be HOST:PORT, for example proxy.example:1080 or [2001:db8::1]:1080";
    is_valid.then(|| text.to_owned()).ok_or(fix)
}

/// Parses `NAME:PASSWORD`, each of 1 to 255 bytes (RFC 1929, section 2).
fn credentials(text: &str) -> Result<Credentials, &'static str> {
    let fix = "must be NAME:PASSWORD, 1 to 255 bytes each, without a colon in the name";
    let (name, password) = text.split_once(':').ok_or(fix)?;
    if [name, password]
        .iter()
        .all(|part| (1..=255).contains(&part.len()))
    {
        Ok(Credentials {
            name: name.into(),
            password: password.into(),
        })
    } else {
        Err(fix)
    }
}

/// Runs the download; returns true if it succeeded.
async fn run(args: Args) -> Result<bool> {
    let fetch = Fetch {
        url: args.url,
        route: match (args.quicksocks, args.artemis, args.resolver) {
            (Some(address), ..) => Route::QuicSocks(Proxy {
                address,
                credentials: args.quicksocks_user,
            }),
            (None, Some(prefix), _) => Route::Lookup(Lookup::Artemis(prefix)),
            (None, None, Some(server)) => Route::Lookup(Lookup::Dns(server)),
            (None, None, None) => Route::Lookup(Lookup::System),
        },
        cache: args.cache,
        output: args.output,
        options: Options {
            trust: args.trust,
            follow: true,
            migrate_early: args.artemis.is_some(),
            early_data: false,
            moves: false,
            paths: 1,
        },
    };
    let report = fetch.run().await?;
    if args.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        print!("{report}");
    }
    Ok(report.is_success())
}
