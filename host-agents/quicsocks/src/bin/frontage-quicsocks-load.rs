// SPDX-License-Identifier: Apache-2.0
//! `frontage-quicsocks-load`: measures the duration of QUIC handshakes, directly or through a QuicSocks proxy.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::Parser;
use frontage_quicsocks::resolve::RecursiveResolver;
use frontage_quicsocks_client as client;
use frontage_quicsocks_client::Association;
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

/// Time after which a connection is closed although the server has not confirmed its handshake.
const CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(1);

/// Opens QUIC connections to many names and prints one line of JSON with the duration of each handshake, name resolution
/// included.
///
/// Exit status: 0 if all connections succeeded and migrated, 1 if not, 2 if the load could not start.
#[derive(Parser)]
#[command(version, after_help = EXAMPLES)]
struct Args {
    /// PEM file with the trusted CA certificates
    #[arg(long, value_name = "FILE")]
    ca: PathBuf,
    /// Connect through this QuicSocks proxy
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "resolver", required_unless_present_any = ["resolver", "address"])]
    proxy: Option<String>,
    /// Connect directly, and resolve names with this recursive resolver
    #[arg(long, value_name = "ADDRESS:PORT")]
    resolver: Option<SocketAddr>,
    /// Connect directly to this address, without name resolution
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["proxy", "resolver"])]
    address: Option<IpAddr>,
    /// Server names; {} is replaced by the number of the handshake
    #[arg(long)]
    names: String,
    /// UDP port of the servers
    #[arg(long, default_value_t = 443)]
    port: u16,
    /// Number of handshakes
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    handshakes: u32,
    /// Number of concurrent handshakes
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    concurrency: u32,
    /// With a proxy: number of associations that the connections share
    #[arg(long, requires = "proxy", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    associations: u32,
    /// With a proxy: open a new association for each connection, and include it in the duration
    #[arg(long, requires = "proxy")]
    cold: bool,
    /// With a proxy: migrate to the direct path after each handshake
    #[arg(long, requires = "proxy")]
    migrate: bool,
    /// Time limit for each handshake and each migration, in seconds
    #[arg(long, default_value_t = 20)]
    timeout: u64,
}

/// Results of all handshakes.
#[derive(Default, Serialize)]
struct Report {
    /// Duration of each handshake in milliseconds.
    handshake_ms: Vec<f64>,
    /// Milliseconds from the start of each handshake until the server answered on the direct path.
    migrated_ms: Vec<f64>,
    /// Number of failed handshakes by reason.
    failed: BTreeMap<String, u32>,
    /// Number of connections that stayed at the proxy by reason.
    stayed: BTreeMap<String, u32>,
}

/// How to connect.
enum Route {
    /// Directly, to the address from the resolver or to a fixed one.
    Direct(Option<Box<RecursiveResolver>>, Option<IpAddr>),
    /// Through this proxy, with a new association for each connection.
    Cold(String),
    /// Through existing associations.
    Warm(Vec<Arc<Association>>),
}

struct Load {
    args: Args,
    route: Route,
    config: ClientConfig,
}

/// Result of one handshake.
struct Handshake {
    duration: Duration,
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
    frontage_daemon::process::raise_open_file_limit();
    let config = client_config(&args.ca)?;
    let route = match &args.proxy {
        Some(proxy) if args.cold => Route::Cold(proxy.clone()),
        Some(proxy) => {
            let mut associations = Vec::new();
            for _ in 0..args.associations {
                associations.push(Association::connect(proxy, None).await?);
            }
            Route::Warm(associations)
        }
        None => {
            let resolver = args
                .resolver
                .map(|resolver| RecursiveResolver::new(&[resolver], 0));
            Route::Direct(resolver.transpose()?.map(Box::new), args.address)
        }
    };
    let (handshakes, concurrency) = (args.handshakes, args.concurrency);
    let load = Arc::new(Load {
        args,
        route,
        config,
    });
    let permits = Arc::new(Semaphore::new(concurrency as usize));
    let mut tasks = JoinSet::new();
    for number in 0..handshakes {
        let permit = permits.clone().acquire_owned().await?;
        let load = load.clone();
        tasks.spawn(async move {
            let result = load.handshake(number).await;
            drop(permit);
            result
        });
    }
    let mut report = Report::default();
    while let Some(result) = tasks.join_next().await {
        report.add(result?);
    }
    println!("{}", serde_json::to_string(&report)?);
    Ok(report.failed.is_empty() && report.stayed.is_empty())
}

impl Report {
    fn add(&mut self, result: Result<Handshake, String>) {
        let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
        match result {
            Err(reason) => *self.failed.entry(reason).or_default() += 1,
            Ok(handshake) => {
                self.handshake_ms.push(ms(handshake.duration));
                match handshake.migrated {
                    None => {}
                    Some(Ok(after)) => self.migrated_ms.push(ms(after)),
                    Some(Err(reason)) => *self.stayed.entry(reason).or_default() += 1,
                }
            }
        }
    }
}

impl Load {
    async fn handshake(&self, number: u32) -> Result<Handshake, String> {
        let name = self.args.names.replace("{}", &number.to_string());
        let started = Instant::now();
        let limit = Duration::from_secs(self.args.timeout);
        let timed_out = |_| "timeout".to_owned();
        let text = |error: client::Error| error.to_string();
        let association = match &self.route {
            Route::Direct(resolver, address) => {
                let direct = self.connect_directly(&name, resolver.as_deref(), *address);
                let (endpoint, quic) = timeout(limit, direct).await.map_err(timed_out)??;
                let duration = started.elapsed();
                close(&endpoint, &quic).await;
                return Ok(Handshake {
                    duration,
                    migrated: None,
                });
            }
            Route::Warm(associations) => associations[number as usize % associations.len()].clone(),
            Route::Cold(proxy) => Association::connect(proxy, None).await.map_err(text)?,
        };
        let connecting = client::connect(&association, self.config.clone(), &name, self.args.port);
        let connected = timeout(limit, connecting).await;
        let connected = connected.map_err(timed_out)?.map_err(text)?;
        let duration = started.elapsed();
        let (endpoint, quic) = (connected.endpoint.clone(), connected.quic.clone());
        let mut migrated = None;
        if self.args.migrate {
            let result = timeout(limit, connected.migrate(None)).await;
            migrated = Some(result.map_err(timed_out).and_then(|result| {
                result
                    .map(|_| started.elapsed())
                    .map_err(|error| error.to_string())
            }));
        }
        close(&endpoint, &quic).await;
        Ok(Handshake { duration, migrated })
    }

    async fn connect_directly(
        &self,
        name: &str,
        resolver: Option<&RecursiveResolver>,
        address: Option<IpAddr>,
    ) -> Result<(Endpoint, Connection), String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let ip = match (resolver, address) {
            (Some(resolver), _) => {
                let address = self.args.resolver.map(|resolver| resolver.ip());
                let address = address.expect("the resolver has an address");
                let resolved = resolver.resolve(name, address).await;
                resolved.map_err(|outcome| outcome.name().to_owned())?[0]
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

/// Closes the connection after its handshake is confirmed, and waits until the close was sent.
async fn close(endpoint: &Endpoint, quic: &Connection) {
    // While noq 1.4.0 has the keys of Initial packets, it sends their close again and again, until its timer ends.
    let _ = timeout(CONFIRMATION_TIMEOUT, quic.handshake_confirmed()).await;
    // H3_NO_ERROR (RFC 9114, section 8.1).
    quic.close(VarInt::from_u32(0x100), b"");
    endpoint.wait_all_draining().await;
}

fn client_config(ca: &Path) -> Result<ClientConfig> {
    let problem = || format!("--ca: cannot read certificates from {}", ca.display());
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
    // Measure full handshakes.
    tls.resumption = rustls::client::Resumption::disabled();
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(Arc::new(TransportConfig::default()));
    Ok(config)
}
