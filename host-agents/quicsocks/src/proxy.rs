// SPDX-License-Identifier: Apache-2.0
//! The proxy and its listeners.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use frontage_daemon::metrics::{registry, serve};
use frontage_first_flight::Reader;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinSet;

use crate::config::Config;
use crate::control;
use crate::metrics::Metrics;
use crate::policy::Policy;
use crate::quota::Quotas;
use crate::resolve::RecursiveResolver;
use crate::shared::{Limits, Shared};

/// Backlog of the listeners for control connections.
const BACKLOG: u32 = 4096;
/// Number of DNS answers to cache.
const DNS_CACHE_SIZE: u64 = 8192;
/// Delay before the next accept after one failed, for want of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// A proxy. It runs until it is dropped.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    /// Starts a proxy. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// Returns an error if an address is in use or not of this machine.
    pub async fn start(config: Config) -> Result<Self> {
        let limits = &config.limits;
        let quotas = Quotas::new(
            limits.associations_per_client,
            limits.associations,
            limits.bandwidth.0,
        );
        let shared = Arc::new(Shared {
            policy: Policy::new(&config.allow),
            resolver: RecursiveResolver::new(&config.resolvers, DNS_CACHE_SIZE)?,
            quotas: Arc::new(quotas),
            limits: Limits {
                flow_lifetime: Duration::from_secs(limits.flow_seconds),
                idle_timeout: Duration::from_secs(limits.idle_seconds),
                max_flows: limits.flows_per_association,
            },
            metrics: Arc::default(),
            reader: Reader::default(),
            users: config.users,
        });
        let mut tasks = JoinSet::new();
        if let Some(address) = config.metrics {
            let listener = TcpListener::bind(address).await;
            let listener =
                listener.with_context(|| format!("metrics: cannot listen on TCP {address}"))?;
            let metrics = shared.metrics.clone();
            let registry = registry("frontage_quicsocks", move |families| {
                metrics.collect(families)
            });
            tasks.spawn(serve(listener, registry));
        }
        let mut addresses = Vec::new();
        for address in config.listen {
            let listener = listen(address)
                .with_context(|| format!("listen: cannot listen on TCP {address}"))?;
            addresses.push(listener.local_addr()?);
            tasks.spawn(accept(listener, shared.clone()));
        }
        Ok(Self {
            shared,
            addresses,
            _tasks: tasks,
        })
    }

    /// Returns the addresses of the control listeners.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns the metrics of this proxy.
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
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(control::serve(shared.clone(), stream));
            }
            Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
        }
        while connections.try_join_next().is_some() {}
    }
}
