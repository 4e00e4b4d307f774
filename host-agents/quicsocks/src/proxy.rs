//! The proxy: where it listens, and what its associations share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use frontage_first_flight::Reader;
use frontage_program::prometheus;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinSet;

use crate::account::Accounts;
use crate::config::{Config, User};
use crate::control;
use crate::metrics::Metrics;
use crate::policy::Policy;
use crate::resolve::Names;

/// Control connections that may wait to be accepted.
const BACKLOG: u32 = 4096;
/// Answers of resolvers that are kept, for as long as they may be.
const NAMES: u64 = 8192;
/// How long nothing is accepted if the process has no descriptor for it.
const PAUSE: Duration = Duration::from_millis(100);

/// What associations share.
pub struct Shared {
    pub users: Vec<User>,
    pub policy: Policy,
    pub names: Names,
    pub accounts: Arc<Accounts>,
    pub limits: Limits,
    pub metrics: Arc<Metrics>,
    pub reader: Reader,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shared(..)")
    }
}

/// Of each flow, and of each association.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long a flow may last.
    pub flow: Duration,
    /// How long it may have nothing to forward.
    pub idle: Duration,
    /// Most flows of an association.
    pub flows: usize,
}

/// A proxy that runs until it is dropped.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    /// Starts what `config` says. To be called within a Tokio runtime.
    pub async fn start(config: Config) -> Result<Self> {
        let limits = &config.limits;
        let accounts = Accounts::new(
            limits.associations_per_client,
            limits.associations,
            limits.bandwidth.0,
        );
        let shared = Arc::new(Shared {
            policy: Policy::new(&config.allow),
            names: Names::new(&config.resolvers, NAMES)?,
            accounts: Arc::new(accounts),
            limits: Limits {
                flow: Duration::from_secs(limits.flow_seconds),
                idle: Duration::from_secs(limits.idle_seconds),
                flows: limits.flows_per_association,
            },
            metrics: Arc::default(),
            reader: Reader::default(),
            users: config.users,
        });
        let mut tasks = JoinSet::new();
        if let Some(address) = config.metrics {
            let listener = TcpListener::bind(address).await;
            let listener = listener
                .with_context(|| format!("cannot listen at TCP {address} for Prometheus"))?;
            let metrics = shared.metrics.clone();
            tasks.spawn(prometheus::serve(listener, move || metrics.page()));
        }
        let mut addresses = Vec::new();
        for address in config.listen {
            let listener =
                listen(address).with_context(|| format!("cannot listen at TCP {address}"))?;
            addresses.push(listener.local_addr()?);
            tasks.spawn(accept(listener, shared.clone()));
        }
        Ok(Self {
            shared,
            addresses,
            _tasks: tasks,
        })
    }

    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What it counts.
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv6() {
        TcpSocket::new_v6()
    } else {
        TcpSocket::new_v4()
    }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut open = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                open.spawn(control::serve(shared.clone(), stream));
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
        while open.try_join_next().is_some() {}
    }
}
