//! A name's address: by hashing, by DNS, or as this machine finds it.

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

/// How to look a name up.
#[derive(Clone, Copy, Debug)]
pub enum Lookup {
    /// Its Service Address (docs/naming.md).
    Artemis(ServicePrefix),
    /// What this DNS server answers.
    Dns(SocketAddr),
    /// getaddrinfo(3).
    System,
}

/// How an address was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Found {
    /// By hashing the name.
    Artemis,
    /// By asking a DNS server.
    Dns,
    /// By getaddrinfo(3).
    System,
    /// The URL has it.
    Literal,
    /// By a QuicSocks proxy, which said it with the first flight.
    QuicSocks,
}

impl Lookup {
    /// The address of the host of `url`.
    pub async fn find(self, url: &Url) -> Result<(SocketAddr, Found)> {
        if let Ok(ip) = url.host.parse::<IpAddr>() {
            return Ok(((ip, url.port).into(), Found::Literal));
        }
        match self {
            Self::Artemis(prefix) => {
                let ip = prefix.service_address(&Name::new(&url.host)?);
                Ok(((ip, url.port).into(), Found::Artemis))
            }
            Self::Dns(server) => {
                let host = &url.host;
                let ip = ask(server, host).await;
                let ip = ip.with_context(|| format!("DNS at {server} does not know {host}"))?;
                Ok(((ip, url.port).into(), Found::Dns))
            }
            Self::System => Ok((url.look_up().await?, Found::System)),
        }
    }
}

/// AAAA and A at once, as browsers ask; IPv6 comes first.
async fn ask(server: SocketAddr, host: &str) -> Result<IpAddr> {
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
    // The whole name: no search list.
    let name = format!("{}.", host.trim_end_matches('.'));
    let answer = builder.build()?.lookup_ip(name).await?;
    let addresses: Vec<IpAddr> = answer.iter().collect();
    let v6 = addresses.iter().find(|address| address.is_ipv6());
    v6.or(addresses.first())
        .copied()
        .context("it has no address")
}
