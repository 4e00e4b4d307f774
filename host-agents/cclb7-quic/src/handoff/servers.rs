//! The real servers, and those of them that a route may use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::{Context as _, Result};
use frontage_handoff::link::Link;
use frontage_quic::session::MAX_HEADER_GROWTH;
use http::{Request, Uri};
use noq::{Endpoint, MtuDiscoveryConfig, TransportConfig};

use super::config::Handoff;
use super::counts::{Counts, Kept};
use super::policy::{Candidate, Draw, Policy, hash};
use crate::config::RealServers;

/// Most paths of a connection.
const PATHS: u32 = 16;
/// Octets of UDP payload that fit into an Ethernet frame, with IPv6. More is not looked for.
const MTU: u16 = 1452;

/// A real server.
#[derive(Debug)]
pub struct Server {
    /// For which its certificate is.
    pub name: String,
    /// Where it answers over HTTP/1.1.
    pub origin: Uri,
    /// The way to it.
    pub link: Link,
    /// What became of its requests.
    pub counts: Counts,
    /// Requests under way.
    load: AtomicU64,
    hash: u64,
}

/// Counts as load until it is dropped.
#[derive(Debug)]
pub struct Load<'a>(&'a AtomicU64);

impl Server {
    /// A request is under way.
    pub fn begin(&self) -> Load<'_> {
        self.load.fetch_add(1, Relaxed);
        Load(&self.load)
    }

    /// Requests under way.
    pub fn load(&self) -> u64 {
        self.load.load(Relaxed)
    }
}

impl Drop for Load<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// All of them.
#[derive(Debug)]
pub struct Servers {
    list: Vec<Server>,
    /// Answers of fewer bytes are not theirs.
    pub below: u64,
    /// Requests that the balancer answered itself, in the order of [`Kept::ALL`].
    pub kept: [AtomicU64; Kept::ALL.len()],
}

impl Servers {
    /// Dials all of them. Must be called within a Tokio runtime.
    pub fn dial(config: &Handoff) -> Result<Self> {
        let tls = config.tls().client()?;
        let anywhere = "[::]:0".parse().expect("an address");
        let endpoint = Endpoint::client(anywhere).context("cannot dial real servers")?;
        let servers = config.servers.iter().map(toml::Spanned::get_ref);
        let list = servers.map(|server| Server {
            name: server.name.clone(),
            origin: server.origin.clone(),
            link: Link::dial(endpoint.clone(), tls.clone(), &server.name, server.address),
            counts: Counts::default(),
            load: AtomicU64::new(0),
            hash: hash([server.name.as_bytes()]),
        });
        Ok(Self {
            list: list.collect(),
            below: config.below.map_or(0, |below| below.0),
            kept: Default::default(),
        })
    }

    /// What clients' connections need: a path for each real server, and the balancer's own. Of those with one path packets become longer on their way out.
    pub fn transport(&self) -> TransportConfig {
        let mut config = TransportConfig::default();
        config.max_concurrent_multipath_paths(PATHS.min(1 + self.list.len() as u32));
        let mut mtu = MtuDiscoveryConfig::default();
        mtu.upper_bound(MTU - MAX_HEADER_GROWTH as u16);
        config.mtu_discovery_config(Some(mtu));
        config
    }

    /// In the configuration's order.
    pub fn list(&self) -> &[Server] {
        &self.list
    }
}

/// The real servers of a route.
#[derive(Debug)]
pub struct Pool {
    servers: Arc<Servers>,
    members: Vec<usize>,
    policy: Policy,
    turn: AtomicU64,
}

impl Pool {
    /// Those of `servers` that a route has `chosen`.
    pub fn new(servers: Arc<Servers>, chosen: &RealServers) -> Self {
        let list = servers.list.iter().enumerate();
        let member =
            |server: &Server| chosen.names.is_empty() || chosen.names.contains(&server.name);
        let members = list.filter(|(_, server)| member(server));
        Self {
            members: members.map(|(i, _)| i).collect(),
            policy: chosen.policy,
            turn: AtomicU64::new(0),
            servers,
        }
    }

    /// The one to answer a request with this [`key`], of those whose link is up and that `usable` allows.
    pub fn choose(&self, key: u64, usable: impl Fn(usize) -> bool) -> Option<usize> {
        let is_up = |i: &usize| self.servers.list[*i].link.is_up() && usable(*i);
        let members: Vec<usize> = self.members.iter().copied().filter(is_up).collect();
        self.among(&members, key)
    }

    /// The one to answer as an origin: whose link is up, or any.
    pub fn choose_origin(&self, key: u64) -> &Server {
        let chosen = self.choose(key, |_| true);
        let chosen = chosen.or_else(|| self.among(&self.members, key));
        &self.servers.list[chosen.expect("config::load refuses a list without servers")]
    }

    fn among(&self, members: &[usize], key: u64) -> Option<usize> {
        let candidates = members.iter().map(|i| {
            let server = &self.servers.list[*i];
            Candidate {
                hash: server.hash,
                load: server.load(),
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

/// What a request is known by to policies that go by its content: its host and path.
pub fn key<B>(request: &Request<B>) -> u64 {
    let uri = request.uri();
    let host = uri.host().unwrap_or_default();
    hash([host.as_bytes(), uri.path().as_bytes()])
}
