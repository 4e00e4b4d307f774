// SPDX-License-Identifier: Apache-2.0
//! Name resolution by the recursive resolvers next to the proxy.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, Result};
use hickory_resolver::config::{NameServerConfig, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{RData, RecordType};
use hickory_resolver::{Resolver, TokioResolver};
use tokio::time::timeout;

use crate::outcome::Lookup;

/// Time to wait for addresses of the client's family after the other family's have arrived (RFC 8305, section 3).
const RESOLUTION_DELAY: Duration = Duration::from_millis(50);
/// Time limit for an answer to one query.
const QUERY_TIMEOUT: Duration = Duration::from_secs(3);
/// Number of queries before resolution fails.
const ATTEMPTS: usize = 2;
/// Maximum number of concurrent queries to one resolver.
const MAX_QUERIES: usize = 1 << 16;

/// Client of recursive resolvers with a cache that respects TTLs.
#[derive(Clone)]
pub struct RecursiveResolver(TokioResolver);

impl RecursiveResolver {
    /// Creates a client of `resolvers`, which must be recursive, that caches up to `cache_size` answers. Must be called within
    /// a Tokio runtime.
    ///
    /// # Errors
    /// Returns the error of the resolver library.
    pub fn new(resolvers: &[SocketAddr], cache_size: u64) -> Result<Self> {
        let servers = resolvers.iter().map(|address| {
            let mut server = NameServerConfig::udp_and_tcp(address.ip());
            for connection in &mut server.connections {
                connection.port = address.port();
            }
            server
        });
        let config = ResolverConfig::from_parts(None, Vec::new(), servers.collect());
        let mut builder = Resolver::builder_with_config(config, TokioRuntimeProvider::default());
        let options = builder.options_mut();
        options.cache_size = cache_size;
        options.timeout = QUERY_TIMEOUT;
        options.attempts = ATTEMPTS;
        options.max_active_requests = MAX_QUERIES;
        options.use_hosts_file = hickory_resolver::config::ResolveHosts::Never;
        let resolver = builder.build().context("cannot set up the resolvers")?;
        Ok(Self(resolver))
    }

    /// Resolves `name`. Addresses of the client's family come first, because the client can use it on the direct path, too.
    ///
    /// Queries both families at once (the name resolution part of Happy Eyeballs, RFC 8305).
    ///
    /// # Errors
    /// Returns the outcome of the lookup if it yields no address.
    pub async fn resolve(&self, name: &str, client: IpAddr) -> Result<Vec<IpAddr>, Lookup> {
        // The trailing dot disables the search list.
        let name = format!("{name}.");
        let kinds = match client.to_canonical() {
            IpAddr::V4(_) => [RecordType::A, RecordType::AAAA],
            IpAddr::V6(_) => [RecordType::AAAA, RecordType::A],
        };
        let [mut first, mut second] = kinds.map(|kind| Box::pin(self.query(&name, kind)));
        let (first, second) = tokio::select! {
            answer = &mut first => match answer {
                Ok(addresses) if !addresses.is_empty() => return Ok(addresses),
                answer => (Some(answer), second.await),
            },
            answer = &mut second => match &answer {
                // The preferred family may still arrive.
                Ok(addresses) if !addresses.is_empty() => {
                    (timeout(RESOLUTION_DELAY, first).await.ok(), answer)
                }
                _ => (Some(first.await), answer),
            },
        };
        let mut all = Vec::new();
        let mut failure = None;
        for answer in [first, Some(second)].into_iter().flatten() {
            match answer {
                Ok(addresses) => all.extend(addresses),
                Err(outcome) => failure = failure.or(Some(outcome)),
            }
        }
        if all.is_empty() {
            return Err(failure.unwrap_or(Lookup::NoAddress));
        }
        Ok(all)
    }

    async fn query(&self, name: &str, kind: RecordType) -> Result<Vec<IpAddr>, Lookup> {
        match self.0.lookup(name, kind).await {
            Ok(response) => Ok(response
                .answers()
                .iter()
                .filter_map(|record| match &record.data {
                    RData::A(a) => Some(a.0.into()),
                    RData::AAAA(aaaa) => Some(aaaa.0.into()),
                    _ => None,
                })
                .collect()),
            Err(error) if error.is_nx_domain() => Err(Lookup::NoSuchName),
            Err(error) if error.is_no_records_found() => Ok(Vec::new()),
            Err(NetError::Timeout) => Err(Lookup::Timeout),
            Err(_) => Err(Lookup::Failed),
        }
    }
}

impl std::fmt::Debug for RecursiveResolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RecursiveResolver(..)")
    }
}
