//! `frontage-quicsocks-load`: handshakes with QUIC servers, directly or through a proxy, and how long each took.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::Parser;
use frontage_quicsocks::client::{self, Relay};
use frontage_quicsocks::resolve::Names;
use noq::crypto::rustls::QuicClientConfig;
use noq::{ClientConfig, Connection, Endpoint, TransportConfig, VarInt};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

const EXAMPLES: &str = "\
Examples:
  frontage-quicsocks-load --ca ca.pem --proxy 192.0.2.1:1080 --names 'n{}.example' --handshakes 100
  frontage-quicsocks-load --ca ca.pem --resolver 192.0.2.1:53 --names 'n{}.example' --handshakes 100";

/// Makes QUIC connections to many names, and says as one line of JSON how long each handshake took, its name's resolution included.
#[derive(Parser)]
#[command(version, after_help = EXAMPLES)]
struct Args {
    /// PEM file of the certificates that servers' certificates must lead to
    #[arg(long, value_name = "FILE")]
    ca: PathBuf,
    /// Go through this QuicSocks proxy
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "resolver", required_unless_present_any = ["resolver", "address"])]
    proxy: Option<String>,
    /// Go to servers directly, and ask this recursive resolver for their addresses
    #[arg(long, value_name = "ADDRESS:PORT")]
    resolver: Option<SocketAddr>,
    /// Go to servers directly, at this address, and ask nobody
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["proxy", "resolver"])]
    address: Option<IpAddr>,
    /// Names of the servers; {} stands for the handshake's number
    #[arg(long)]
    names: String,
    /// The servers' UDP port
    #[arg(long, default_value_t = 443)]
    port: u16,
    /// How many handshakes
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    handshakes: u32,
    /// How many at a time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    at_a_time: u32,
    /// With a proxy: how many associations connections share
    #[arg(long, requires = "proxy", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    associations: u32,
    /// With a proxy: an association of its own for each connection, whose making counts
    #[arg(long, requires = "proxy")]
    cold: bool,
    /// With a proxy: go to the direct path after each handshake
    #[arg(long, requires = "proxy")]
    migrate: bool,
    /// Seconds that a handshake may take
    #[arg(long, default_value_t = 20)]
    patience: u64,
}

/// What came of it all.
#[derive(Default, Serialize)]
struct Report {
    /// Milliseconds that each took.
    handshake_ms: Vec<f64>,
    /// Milliseconds from the beginning until the server was heard on the direct path.
    migrated_ms: Vec<f64>,
    /// How many did not get so far, by why.
    failed: BTreeMap<String, u32>,
    stayed: BTreeMap<String, u32>,
}

/// How connections are made.
enum Way {
    Direct(Option<Box<Names>>, Option<IpAddr>),
    Cold(String),
    Warm(Vec<Arc<Relay>>),
}

struct Load {
    args: Args,
    way: Way,
    config: ClientConfig,
}

/// What came of one.
struct Done {
    handshake: Duration,
    migrated: Option<Result<Duration, String>>,
}

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("frontage-quicsocks-load: {error:#}");
            ExitCode::from(2)
        }
    }
}

#[tokio::main]
async fn run(args: Args) -> Result<bool> {
    frontage_program::limits::raise_open_files();
    let config = trust(&args.ca)?;
    let way = match &args.proxy {
        Some(proxy) if args.cold => Way::Cold(proxy.clone()),
        Some(proxy) => {
            let mut relays = Vec::new();
            for _ in 0..args.associations {
                relays.push(Relay::connect(proxy, None).await?);
            }
            Way::Warm(relays)
        }
        None => {
            let resolver = args.resolver.map(|resolver| Names::new(&[resolver], 0));
            Way::Direct(resolver.transpose()?.map(Box::new), args.address)
        }
    };
    let (handshakes, at_a_time) = (args.handshakes, args.at_a_time);
    let load = Arc::new(Load { args, way, config });
    let places = Arc::new(Semaphore::new(at_a_time as usize));
    let mut tasks = JoinSet::new();
    for number in 0..handshakes {
        let place = places.clone().acquire_owned().await?;
        let load = load.clone();
        tasks.spawn(async move {
            let done = load.one(number).await;
            drop(place);
            done
        });
    }
    let mut report = Report::default();
    while let Some(done) = tasks.join_next().await {
        report.add(done?);
    }
    println!("{}", serde_json::to_string(&report)?);
    Ok(report.failed.is_empty() && report.stayed.is_empty())
}

impl Report {
    fn add(&mut self, done: Result<Done, String>) {
        let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
        match done {
            Err(reason) => *self.failed.entry(reason).or_default() += 1,
            Ok(done) => {
                self.handshake_ms.push(ms(done.handshake));
                match done.migrated {
                    None => {}
                    Some(Ok(after)) => self.migrated_ms.push(ms(after)),
                    Some(Err(reason)) => *self.stayed.entry(reason).or_default() += 1,
                }
            }
        }
    }
}

impl Load {
    async fn one(&self, number: u32) -> Result<Done, String> {
        let name = self.args.names.replace("{}", &number.to_string());
        let begun = Instant::now();
        let patience = Duration::from_secs(self.args.patience);
        let late = |_| "timeout".to_owned();
        let text = |error: client::Error| error.to_string();
        let relay = match &self.way {
            Way::Direct(names, address) => {
                let direct = self.direct(&name, names.as_deref(), *address);
                let (endpoint, quic) = timeout(patience, direct).await.map_err(late)??;
                let handshake = begun.elapsed();
                close(&endpoint, &quic).await;
                return Ok(Done {
                    handshake,
                    migrated: None,
                });
            }
            Way::Warm(relays) => relays[number as usize % relays.len()].clone(),
            Way::Cold(proxy) => Relay::connect(proxy, None).await.map_err(text)?,
        };
        let connecting = client::connect(&relay, self.config.clone(), &name, self.args.port);
        let connected = timeout(patience, connecting).await;
        let connected = connected.map_err(late)?.map_err(text)?;
        let handshake = begun.elapsed();
        let (endpoint, quic) = (connected.endpoint.clone(), connected.quic.clone());
        let mut migrated = None;
        if self.args.migrate {
            let moving = timeout(patience, connected.migrate(None)).await;
            migrated = Some(moving.map_err(late).and_then(|moved| {
                moved
                    .map(|_| begun.elapsed())
                    .map_err(|stay| stay.to_string())
            }));
        }
        close(&endpoint, &quic).await;
        Ok(Done {
            handshake,
            migrated,
        })
    }

    async fn direct(
        &self,
        name: &str,
        names: Option<&Names>,
        address: Option<IpAddr>,
    ) -> Result<(Endpoint, Connection), String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let ip = match (names, address) {
            (Some(names), _) => {
                let resolver = self.args.resolver.map(|resolver| resolver.ip());
                let found = names.addresses(name, resolver.expect("it is asked")).await;
                found.map_err(|outcome| outcome.name().to_owned())?[0]
            }
            (None, Some(address)) => address,
            (None, None) => return Err("no address".into()),
        };
        let any = match ip {
            IpAddr::V4(_) => SocketAddr::from(([0; 4], 0)),
            IpAddr::V6(_) => SocketAddr::from(([0; 16], 0)),
        };
        let endpoint = Endpoint::client(any).map_err(|error| text(&error))?;
        let address = (ip, self.args.port).into();
        let connecting = endpoint.connect_with(self.config.clone(), address, name);
        let quic = connecting.map_err(|error| text(&error))?.await;
        Ok((endpoint, quic.map_err(|error| text(&error))?))
    }
}

/// Ends the connection, and sees that the server hears of it.
async fn close(endpoint: &Endpoint, quic: &Connection) {
    // H3_NO_ERROR (RFC 9114, section 8.1).
    quic.close(VarInt::from_u32(0x100), b"");
    endpoint.wait_all_draining().await;
}

fn trust(ca: &Path) -> Result<ClientConfig> {
    let problem = || format!("cannot take certificates from {}", ca.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca).with_context(problem)? {
        roots
            .add(certificate.with_context(problem)?)
            .with_context(problem)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".into()];
    // Each handshake is a whole one.
    tls.resumption = rustls::client::Resumption::disabled();
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(Arc::new(TransportConfig::default()));
    Ok(config)
}
