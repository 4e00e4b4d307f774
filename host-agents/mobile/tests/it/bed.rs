// SPDX-License-Identifier: Apache-2.0
//! A client and a server on this machine. The server is reachable at every address of 127.0.0.0/8.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use frontage_mobile::addresses::Address;
use frontage_mobile::connect::Client;
use frontage_mobile::dial::{Network, Target};
use frontage_mobile::key::Secret;
use frontage_mobile::listen::Server;
use frontage_mobile::metrics::Metrics;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

/// Time that a test may take.
pub const LIMIT: Duration = Duration::from_secs(60);
/// Bytes that each end stores: few, so that windows fill up.
pub const WINDOW: u32 = 64 * 1024;

/// Settings of a bed.
pub struct Settings {
    pub client_key: Secret,
    pub server_key: Secret,
    pub max_sessions: usize,
    pub session_timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        let key = Secret::random();
        Self {
            client_key: key.clone(),
            server_key: key,
            max_sessions: 10,
            session_timeout: LIMIT,
        }
    }
}

/// A running client and server.
pub struct Bed {
    /// Where programs connect to.
    pub local: SocketAddr,
    /// Where the service receives connections.
    pub service: TcpListener,
    /// Where the server receives carriers.
    pub carriers: SocketAddr,
    pub target: watch::Sender<Target>,
    pub observed: watch::Sender<Vec<Address>>,
    pub client_metrics: Arc<Metrics>,
    pub server_metrics: Arc<Metrics>,
}

impl Bed {
    pub async fn start(settings: Settings) -> Self {
        let service = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let carriers = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = carriers.local_addr().unwrap().port();
        let local = listener.local_addr().unwrap();
        let (target, follows_target) = watch::channel(at(1, port));
        let (observed, follows_observed) = watch::channel(vec![loopback()]);
        let (client_metrics, server_metrics) =
            (Arc::<Metrics>::default(), Arc::<Metrics>::default());
        let server = Server {
            key: settings.server_key,
            forward: service.local_addr().unwrap(),
            window: WINDOW,
            max_sessions: settings.max_sessions,
            session_timeout: settings.session_timeout,
            metrics: server_metrics.clone(),
            sessions: Default::default(),
        };
        let client = Client {
            network: Network {
                target: follows_target,
                observed: follows_observed,
            },
            key: settings.client_key,
            window: WINDOW,
            max_sessions: 10,
            session_timeout: settings.session_timeout,
            metrics: client_metrics.clone(),
        };
        tokio::spawn(Arc::new(server).serve(carriers));
        tokio::spawn(Arc::new(client).serve(listener));
        Self {
            local,
            service,
            carriers: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            target,
            observed,
            client_metrics,
            server_metrics,
        }
    }

    /// Connect a program, and return both ends of its connection through the proxies.
    pub async fn connect(&self) -> (TcpStream, TcpStream) {
        let program = TcpStream::connect(self.local).await.unwrap();
        (program, self.service.accept().await.unwrap().0)
    }

    /// Move the server to the address 127.0.0.`host`.
    pub fn move_server(&self, host: u8) {
        self.target.send_replace(at(host, self.carriers.port()));
    }

    /// Take the client's address away, and give it back.
    pub async fn move_client(&self) {
        self.observed.send_replace(Vec::new());
        tokio::time::sleep(Duration::from_millis(3)).await;
        self.observed.send_replace(vec![loopback()]);
    }
}

fn at(host: u8, port: u16) -> Target {
    Target {
        addresses: vec![IpAddr::from([127, 0, 0, host])],
        port,
    }
}

fn loopback() -> Address {
    Address {
        interface: "lo".to_owned(),
        ip: Ipv4Addr::LOCALHOST.into(),
    }
}

/// Return the value of a metric.
pub fn metric(metrics: &Arc<Metrics>, name: &str) -> f64 {
    let source = metrics.clone();
    let registry =
        frontage_daemon::metrics::registry("m", move |families| source.collect(families));
    let text = frontage_daemon::metrics::encode(&registry);
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("m_{name} ")));
    line.unwrap_or_else(|| panic!("no metric {name} in {text}"))
        .parse()
        .unwrap()
}

/// Wait until `condition` holds; panic after [`LIMIT`].
pub async fn eventually(mut condition: impl FnMut() -> bool) {
    let holds = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LIMIT, holds)
        .await
        .expect("the condition holds in time");
}
