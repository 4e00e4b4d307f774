//! Names to addresses, by the recursive resolver beside the proxy.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, Result};
use hickory_resolver::config::{NameServerConfig, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{RData, RecordType};
use hickory_resolver::{Resolver, TokioResolver};
use tokio::time::timeout;

use crate::outcome::Name;

/// How long the addresses of the family that the client uses are waited for once the others are here (RFC 8305, section 3).
const RESOLUTION_DELAY: Duration = Duration::from_millis(50);
/// How long a resolver may take to answer, and how often it is asked.
const PATIENCE: Duration = Duration::from_secs(3);
const ATTEMPTS: usize = 2;
/// Questions under way at a time to one resolver.
const UNDER_WAY: usize = 1 << 16;

/// Asks the resolvers; answers are kept for as long as their TTL says.
#[derive(Clone)]
pub struct Names(TokioResolver);

impl Names {
    /// Asks these, which must be recursive, and keeps so many answers. To be called within a Tokio runtime.
    pub fn new(resolvers: &[SocketAddr], kept: u64) -> Result<Self> {
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
        options.cache_size = kept;
        options.timeout = PATIENCE;
        options.attempts = ATTEMPTS;
        options.max_active_requests = UNDER_WAY;
        options.use_hosts_file = hickory_resolver::config::ResolveHosts::Never;
        let resolver = builder.build().context("cannot ask the resolvers")?;
        Ok(Self(resolver))
    }

    /// The addresses of `name`, best first: those of the family in which the client came, for that has a direct path to them (happy eyeballs,
    /// RFC 8305, as far as it concerns names: both families are asked for at once).
    pub async fn addresses(&self, name: &str, client: IpAddr) -> Result<Vec<IpAddr>, Name> {
        // A dot at the end: no search list, no other name than this.
        let name = format!("{name}.");
        let kinds = match client.to_canonical() {
            IpAddr::V4(_) => [RecordType::A, RecordType::AAAA],
            IpAddr::V6(_) => [RecordType::AAAA, RecordType::A],
        };
        let [mut first, mut second] = kinds.map(|kind| Box::pin(self.ask(&name, kind)));
        let (first, second) = tokio::select! {
            found = &mut first => match found {
                Ok(found) if !found.is_empty() => return Ok(found),
                found => (Some(found), second.await),
            },
            found = &mut second => match &found {
                // There is one; the better may still come.
                Ok(addresses) if !addresses.is_empty() => {
                    (timeout(RESOLUTION_DELAY, first).await.ok(), found)
                }
                _ => (Some(first.await), found),
            },
        };
        let mut found = Vec::new();
        let mut problem = None;
        for answer in [first, Some(second)].into_iter().flatten() {
            match answer {
                Ok(addresses) => found.extend(addresses),
                Err(reason) => problem = problem.or(Some(reason)),
            }
        }
        if found.is_empty() {
            return Err(problem.unwrap_or(Name::NoAddress));
        }
        Ok(found)
    }

    async fn ask(&self, name: &str, kind: RecordType) -> Result<Vec<IpAddr>, Name> {
        match self.0.lookup(name, kind).await {
            Ok(found) => Ok(found
                .answers()
                .iter()
                .filter_map(|record| match &record.data {
                    RData::A(a) => Some(a.0.into()),
                    RData::AAAA(aaaa) => Some(aaaa.0.into()),
                    _ => None,
                })
                .collect()),
            Err(error) if error.is_nx_domain() => Err(Name::NoSuchName),
            Err(error) if error.is_no_records_found() => Ok(Vec::new()),
            Err(NetError::Timeout) => Err(Name::Timeout),
            Err(_) => Err(Name::Failed),
        }
    }
}

impl std::fmt::Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Names")
    }
}
