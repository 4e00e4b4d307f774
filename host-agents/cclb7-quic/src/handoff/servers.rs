// SPDX-License-Identifier: Apache-2.0
//! Real servers, and the pools that routes use.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::{Context as _, Result};
use frontage_handoff::delegator::MAX_FRAME_GROWTH;
use frontage_handoff::link::Link;
use frontage_http::config::RealServerChoice;
use frontage_http::routes::OriginPool;
use frontage_http::{Candidate, Draw, Policy, Proxy, hash};
use frontage_quic::session::MAX_HEADER_GROWTH;
use http::Uri;
use noq::{Endpoint, MtuDiscoveryConfig, TransportConfig};

use super::config::{Handoff, SinglePath};
use super::counters::{Counters, LocalReason};
use super::health::Health;

/// Maximum number of paths per connection.
const MAX_PATHS: u32 = 16;
/// Maximum UDP payload in octets that path MTU discovery probes: what fits into an Ethernet frame with IPv6.
const MAX_UDP_PAYLOAD: u16 = 1452;

/// A real server.
#[derive(Debug)]
pub struct RealServer {
    /// Name in its certificate.
    pub name: String,
    /// Address and UDP port at which it accepts balancers.
    pub address: SocketAddr,
    /// HTTP/1.1 origin.
    pub origin: Uri,
    /// Link to the real server.
    pub link: Link,
    /// Result of the health checks.
    pub health: Health,
    /// Share of the requests, relative to others.
    weight: u32,
    /// Counters of its requests.
    pub counters: Counters,
    /// Active requests.
    load: AtomicU64,
    hash: u64,
}

/// An active request, until it is dropped.
#[derive(Debug)]
pub struct Load<'a>(&'a AtomicU64);

impl RealServer {
    /// Count an active request.
    pub fn add_load(&self) -> Load<'_> {
        self.load.fetch_add(1, Relaxed);
        Load(&self.load)
    }

    /// Return whether the server is likely to respond: its health checks are successful, and its link is not silent.
    fn is_healthy(&self) -> bool {
        !self.link.is_silent() && self.health.is_healthy()
    }

    /// Return the number of active requests.
    pub fn load(&self) -> u64 {
        self.load.load(Relaxed)
    }
}

impl Drop for Load<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// All real servers.
#[derive(Debug)]
pub struct RealServers {
    list: Vec<RealServer>,
    /// The balancer proxies shorter responses itself, in bytes.
    pub min_size: u64,
    /// The balancer proxies requests with longer bodies itself, in bytes.
    pub max_request_body: usize,
    /// How the balancer responds to clients with a single path.
    pub single_path: SinglePath,
    /// True if the balancer completes interrupted responses.
    pub resume: bool,
    /// Connections to origins, for the rest of interrupted responses.
    pub proxy: Proxy,
    /// Requests to which the balancer responded itself, in the order of [`LocalReason::ALL`].
    pub local: [AtomicU64; LocalReason::ALL.len()],
}

impl RealServers {
    /// Dial all real servers. Must be called within a Tokio runtime.
    pub fn dial(config: &Handoff) -> Result<Self> {
        let tls = config.tls().client()?;
        let any_port = "[::]:0".parse().expect("valid address");
        let endpoint = Endpoint::client(any_port).context("cannot dial real servers")?;
        let servers = config.servers.iter().map(toml::Spanned::get_ref);
        let proxy = Proxy::default();
        let health =
            |name: &str, origin| Health::start(config.health.as_ref(), &proxy, name, origin);
        let list = servers.map(|server| RealServer {
            name: server.name.clone(),
            address: server.address,
            origin: server.origin.clone(),
            link: Link::dial(endpoint.clone(), tls.clone(), &server.name, server.address),
            health: health(&server.name, &server.origin),
            weight: server.weight,
            counters: Counters::default(),
            load: AtomicU64::new(0),
            hash: hash([server.name.as_bytes()]),
        });
        Ok(Self {
            list: list.collect(),
            max_request_body: config.max_request_body.0 as usize,
            single_path: config.single_path,
            resume: config.resume,
            proxy,
            min_size: config.min_size.map_or(0, |size| size.0),
            local: Default::default(),
        })
    }

    /// Return the transport configuration of client connections: one path for each real server and one for the balancer.
    /// MTU discovery leaves room, because packets to clients with a single path and packets of resumed streams grow when
    /// they are sealed.
    pub fn transport(&self) -> TransportConfig {
        let mut config = TransportConfig::default();
        config.max_concurrent_multipath_paths(MAX_PATHS.min(1 + self.list.len() as u32));
        let mut mtu = MtuDiscoveryConfig::default();
        mtu.upper_bound(MAX_UDP_PAYLOAD - (MAX_HEADER_GROWTH + MAX_FRAME_GROWTH) as u16);
        config.mtu_discovery_config(Some(mtu));
        config
    }

    /// Count a request to which the balancer responds itself.
    pub fn on_local(&self, reason: LocalReason) {
        self.local[reason as usize].fetch_add(1, Relaxed);
    }

    /// Return the real servers in the order of the configuration.
    pub fn list(&self) -> &[RealServer] {
        &self.list
    }
}

/// The real servers of a route.
#[derive(Debug)]
pub struct Pool {
    servers: Arc<RealServers>,
    members: Vec<usize>,
    policy: Policy,
    turn: AtomicU64,
}

impl Pool {
    /// Create the pool of the `servers` that a route has `chosen`.
    pub fn new(servers: Arc<RealServers>, chosen: &RealServerChoice) -> Self {
        let list = servers.list.iter().enumerate();
        let is_member =
            |server: &RealServer| chosen.names.is_empty() || chosen.names.contains(&server.name);
        let members = list.filter(|(_, server)| is_member(server));
        Self {
            members: members.map(|(i, _)| i).collect(),
            policy: chosen.policy,
            turn: AtomicU64::new(0),
            servers,
        }
    }

    /// Choose a server for a request with this [`request_key`], among those whose link is up and that are `usable`:
    /// a healthy one, unless none of them is.
    pub fn choose(&self, key: u64, usable: impl Fn(usize) -> bool) -> Option<usize> {
        let is_up = |i: &usize| self.servers.list[*i].link.is_up() && usable(*i);
        let mut members: Vec<usize> = self.members.iter().copied().filter(is_up).collect();
        let is_healthy = |i: &usize| self.servers.list[*i].is_healthy();
        let healthy: Vec<usize> = members.iter().copied().filter(is_healthy).collect();
        if !healthy.is_empty() {
            members = healthy;
        }
        self.choose_among(&members, key)
    }

    /// Return whether a connection that uses this server should keep it. `is_only_sender` means that the connection has a
    /// single path, on which this server responds at the moment: with a second one, every packet of both would need a
    /// round trip to the balancer for its number.
    pub fn keeps(&self, server: usize, is_only_sender: bool) -> bool {
        let is_usable = || {
            let server = &self.servers.list[server];
            server.link.is_up() && server.is_healthy()
        };
        let is_kept = match self.policy {
            Policy::PerConnection => true,
            Policy::RoundRobin | Policy::Random | Policy::LeastLoad => is_only_sender,
            Policy::ConsistentHash => false,
        };
        is_kept && self.members.contains(&server) && is_usable()
    }

    /// Choose a server as an origin: one whose link is up, or else any.
    fn choose_origin(&self, key: u64) -> &RealServer {
        let chosen = self.choose(key, |_| true);
        let chosen = chosen.or_else(|| self.choose_among(&self.members, key));
        &self.servers.list[chosen.expect("config::load rejects an empty list of servers")]
    }

    /// Choose a server that is not among `tried`: one whose link is up, or else any.
    pub fn choose_other(&self, key: u64, tried: &[usize]) -> Option<usize> {
        let is_new = |i: usize| !tried.contains(&i);
        self.choose(key, is_new).or_else(|| {
            let members = self.members.iter().copied().filter(|i| is_new(*i));
            self.choose_among(&members.collect::<Vec<_>>(), key)
        })
    }

    fn choose_among(&self, members: &[usize], key: u64) -> Option<usize> {
        let candidates = members.iter().map(|i| {
            let server = &self.servers.list[*i];
            Candidate {
                hash: server.hash,
                load: server.load(),
                weight: server.weight,
            }
        });
        let candidates: Vec<_> = candidates.collect();
        let draw = Draw {
            turn: self.turn.fetch_add(1, Relaxed),
            random: rand::random(),
            key,
        };
        let chosen = self.policy.choose(&candidates, draw)?;
        Some(members[chosen])
    }
}

impl OriginPool for Pool {
    fn origin(&self, uri: &Uri) -> &Uri {
        &self.choose_origin(request_key(uri)).origin
    }
}

/// Return the hash of a request's host and path, for policies that choose by content.
pub fn request_key(uri: &Uri) -> u64 {
    let host = uri.host().unwrap_or_default();
    hash([host.as_bytes(), uri.path().as_bytes()])
}
