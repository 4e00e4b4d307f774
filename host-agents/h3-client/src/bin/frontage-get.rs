//! `frontage-get`: one download by HTTP/3, and where its time went.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use artemis::ServicePrefix;
use clap::Parser;
use frontage_h3_client::artemis::{Fetch, Lookup, Proxy, Way};
use frontage_h3_client::client::Options;
use frontage_h3_client::{Trust, block_on};
use frontage_quicsocks::client::Credentials;

const EXAMPLES: &str = "\
Examples:
  frontage-get https://films.example/1 --artemis 2001:db8:a::/48+16 --cache /run/user/1000/artemis
  frontage-get https://films.example/1 --resolver '[2001:db8::53]:53' --json
  frontage-get https://films.example/1 --quicksocks proxy.example:1080";

/// Downloads a URL by HTTP/3, and says when the name was resolved, the connection set up, the first byte and all of it there, and when
/// the connection went to the server's own address, or from a QuicSocks proxy to the direct path.
///
/// Exit status: 0 if all came with a status of success, 1 if not, 2 if it could not begin.
#[derive(Parser)]
#[command(version, after_help = EXAMPLES)]
struct Args {
    /// What to download
    url: String,
    /// Hash the name into this prefix, with so many bits: its Service Address (docs/naming.md)
    #[arg(long, value_name = "PREFIX+BITS", conflicts_with = "resolver")]
    artemis: Option<ServicePrefix>,
    /// Keep here where services were found, and go there first; processes may share it
    #[arg(long, value_name = "FILE", requires = "artemis")]
    cache: Option<PathBuf>,
    /// Ask this DNS server; without it, --artemis and --quicksocks, names are found as this machine finds them
    #[arg(long, value_name = "ADDR:PORT")]
    resolver: Option<SocketAddr>,
    /// Have this proxy resolve the name and forward the handshake, then go on without it (docs/quicsocks.md)
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port, conflicts_with_all = ["artemis", "resolver"])]
    quicksocks: Option<String>,
    /// Who this is to that proxy, if it asks; other users of this machine may see it while this runs
    #[arg(long, value_name = "NAME:PASSWORD", value_parser = credentials, requires = "quicksocks")]
    quicksocks_user: Option<Credentials>,
    #[command(flatten)]
    trust: Trust,
    /// Where to put the body; nowhere if absent
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// One line of JSON rather than a table
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
    let good = text.rsplit_once(':').is_some_and(|(host, port)| {
        let bare = host.contains(':') && !host.starts_with('[');
        !host.is_empty() && !bare && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    let problem = "write host:port, such as proxy.example:1080 or [2001:db8::1]:1080";
    good.then(|| text.to_owned()).ok_or(problem)
}

/// Each of 1 to 255 octets (RFC 1929, section 2).
fn credentials(text: &str) -> Result<Credentials, &'static str> {
    let problem = "write NAME:PASSWORD, each of 1 to 255 bytes; the name has no colon";
    let (name, password) = text.split_once(':').ok_or(problem)?;
    if [name, password]
        .iter()
        .all(|part| (1..=255).contains(&part.len()))
    {
        Ok(Credentials {
            name: name.into(),
            password: password.into(),
        })
    } else {
        Err(problem)
    }
}

/// Whether all came.
async fn run(args: Args) -> Result<bool> {
    let fetch = Fetch {
        url: args.url,
        way: match (args.quicksocks, args.artemis, args.resolver) {
            (Some(address), ..) => Way::QuicSocks(Proxy {
                address,
                credentials: args.quicksocks_user,
            }),
            (None, Some(prefix), _) => Way::Lookup(Lookup::Artemis(prefix)),
            (None, None, Some(server)) => Way::Lookup(Lookup::Dns(server)),
            (None, None, None) => Way::Lookup(Lookup::System),
        },
        cache: args.cache,
        output: args.output,
        options: Options {
            trust: args.trust,
            follow: true,
            at_once: args.artemis.is_some(),
            paths: 1,
        },
    };
    let report = fetch.run().await?;
    if args.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        print!("{report}");
    }
    Ok(report.is_good())
}
