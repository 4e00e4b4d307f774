// SPDX-License-Identifier: Apache-2.0
//! Address lookup for a name: by hashing, by DNS, or by the system.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context as _, Result};
use artemis::{Name, ServicePrefix};
use hickory_resolver::Resolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use serde::Serialize;

use crate::client::Url;

/// How to look up the address of a name.
#[derive(Clone, Copy, Debug)]
pub enum Lookup {
    /// Compute its Service Address (docs/naming.md).
    Artemis(ServicePrefix),
    /// Query this DNS server.
    Dns(SocketAddr),
    /// Call getaddrinfo(3).
    System,
}

/// Where an address came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AddressSource {
    /// Hash of the name.
    Artemis,
    /// DNS server.
    Dns,
    /// getaddrinfo(3).
    System,
    /// The URL itself.
    Literal,
    /// QuicSocks proxy, which resolved the name of the first flight.
    QuicSocks,
}

impl Lookup {
    /// Looks up the address of the host of `url`.
    ///
    /// # Errors
    /// Returns an error if the host has no address.
    pub async fn find(self, url: &Url) -> Result<(SocketAddr, AddressSource)> {
        if let Ok(ip) = url.host.parse::<IpAddr>() {
            return Ok(((ip, url.port).into(), AddressSource::Literal));
        }
        match self {
            Self::Artemis(prefix) => {
                let ip = prefix.service_address(&Name::new(&url.host)?);
                Ok(((ip, url.port).into(), AddressSource::Artemis))
            }
            Self::Dns(server) => {
                let host = &url.host;
                let ip = query(server, host).await;
                let ip = ip.with_context(|| {
                    format!("cannot resolve {host} with the DNS server {server}")
                })?;
                Ok(((ip, url.port).into(), AddressSource::Dns))
            }
            Self::System => Ok((url.resolve().await?, AddressSource::System)),
        }
    }
}

/// Queries AAAA and A at once, as browsers do, and prefers IPv6.
async fn query(server: SocketAddr, host: &str) -> Result<IpAddr> {
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
        connection.port = server.port();
        connection
    });
    let server = NameServerConfig::new(server.ip(), true, connections.into());
    let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
    let mut builder = Resolver::builder_with_config(config, TokioRuntimeProvider::default());
    let options = builder.options_mut();
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.use_hosts_file = ResolveHosts::Never;
    // The trailing dot disables the search list.
    let name = format!("{}.", host.trim_end_matches('.'));
    let answer = builder.build()?.lookup_ip(name).await?;
    let addresses: Vec<IpAddr> = answer.iter().collect();
    let v6 = addresses.iter().find(|address| address.is_ipv6());
    v6.or(addresses.first())
        .copied()
        .context("the name has no address")
}
