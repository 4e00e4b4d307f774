// SPDX-License-Identifier: Apache-2.0
//! The section `[handoff]` of the configuration.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;

use frontage_handoff::link::tls::Files;
use frontage_http::config::{self, Bytes};
use http::Uri;
use rustls::pki_types::ServerName;
use serde::Deserialize;
use toml::Spanned;

/// The real servers, and the balancer's certificate for them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handoff {
    /// PEM file with the certificate chain that the balancer presents to real servers.
    certificate: Spanned<PathBuf>,
    /// PEM file with the private key of the certificate.
    private_key: Spanned<PathBuf>,
    /// PEM file with the CA certificate for the real servers' certificates.
    ca: Spanned<PathBuf>,
    /// The real servers.
    pub servers: Vec<Spanned<RealServer>>,
    /// Checks of the real servers' origins; none if absent.
    pub health: Option<Health>,
    /// True if the balancer completes the responses of real servers that died. Otherwise it resets them.
    #[serde(default = "default_resume")]
    pub resume: bool,
    /// How the balancer responds to clients with a single path.
    #[serde(default)]
    pub single_path: SinglePath,
    /// The balancer proxies shorter responses itself. If absent, real servers respond whatever the size.
    pub min_size: Option<Bytes>,
    /// The balancer proxies requests with longer bodies as they arrive.
    #[serde(default = "default_max_request_body")]
    pub max_request_body: Bytes,
    /// Former name of `min_size`, which is rejected.
    #[serde(default, deserialize_with = "renamed_below")]
    #[allow(dead_code)]
    below: (),
}

/// How the balancer responds to clients with a single path.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum SinglePath {
    /// It delegates requests unless measurements show that proxying is faster.
    #[default]
    Fastest,
    /// It always delegates.
    Delegate,
    /// It always proxies.
    Proxy,
}

/// A real server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RealServer {
    /// Name in its certificate.
    pub name: String,
    /// Address and UDP port at which it accepts balancers.
    pub address: SocketAddr,
    /// HTTP/1.1 origin from which the balancer proxies the requests that it does not delegate.
    #[serde(deserialize_with = "origin")]
    pub origin: Uri,
    /// Share of the requests, relative to the other real servers of a route.
    #[serde(default = "default_weight")]
    pub weight: u32,
}

/// Largest weight of a real server.
const MAX_WEIGHT: u32 = 256;

/// Largest `max_request_body`: that of the hand-off protocol.
const MAX_REQUEST_BODY: u64 = 4 << 20;

const fn default_max_request_body() -> Bytes {
    Bytes(1 << 20)
}

const fn default_resume() -> bool {
    true
}

const fn default_weight() -> u32 {
    1
}

/// Health checks: requests for `path` to the origin of each real server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Health {
    /// Path and query. A server is healthy if the status is below 400.
    pub path: String,
    /// Pause between two checks, and the most that one may take, in milliseconds.
    #[serde(default = "default_interval")]
    pub interval_ms: u64,
    /// Failed checks in a row after which a server is unhealthy.
    #[serde(default = "default_failures")]
    pub failures: u32,
    /// Successful checks in a row after which it is healthy again.
    #[serde(default = "default_successes")]
    pub successes: u32,
}

const fn default_interval() -> u64 {
    1000
}

const fn default_failures() -> u32 {
    3
}

const fn default_successes() -> u32 {
    2
}

impl Health {
    fn problem(&self) -> Option<String> {
        let path = &self.path;
        if !path.starts_with('/') || path.parse::<http::uri::PathAndQuery>().is_err() {
            return Some(format!("health: invalid path {path:?}: must begin with /"));
        }
        let counts = [
            ("interval_ms", self.interval_ms),
            ("failures", self.failures.into()),
            ("successes", self.successes.into()),
        ];
        let (name, _) = counts.into_iter().find(|(_, count)| *count == 0)?;
        Some(format!("health: {name}: must be at least 1"))
    }
}

impl Handoff {
    /// Return the files that must exist.
    pub(crate) fn files(&mut self) -> [&mut Spanned<PathBuf>; 3] {
        [&mut self.certificate, &mut self.private_key, &mut self.ca]
    }

    /// Return the files for the link.
    pub(crate) fn tls(&self) -> Files {
        Files {
            certificate: self.certificate.get_ref().clone(),
            private_key: self.private_key.get_ref().clone(),
            ca: self.ca.get_ref().clone(),
        }
    }

    /// Return the real servers' names.
    pub(crate) fn names(&self) -> Vec<&str> {
        let servers = self.servers.iter();
        servers
            .map(|server| server.get_ref().name.as_str())
            .collect()
    }

    /// Check the values. Returns the problem and, if known, its position.
    pub(crate) fn problem(&self) -> Option<(Option<Range<usize>>, String)> {
        if self.servers.is_empty() {
            return Some((
                None,
                "servers: empty list: list the real servers or remove [handoff]".into(),
            ));
        }
        if self.max_request_body.0 > MAX_REQUEST_BODY {
            let problem = "max_request_body: too large: must be at most 4 MiB (4194304)";
            return Some((None, problem.into()));
        }
        if let Some(problem) = self.health.as_ref().and_then(Health::problem) {
            return Some((None, problem));
        }
        self.servers.iter().enumerate().find_map(|(i, server)| {
            let RealServer { name, weight, .. } = server.get_ref();
            let reason = if ServerName::try_from(name.as_str()).is_err() {
                format!("name: invalid host name {name:?}: use the name in its certificate, for example rs1.example")
            } else if self.names()[..i].contains(&name.as_str()) {
                format!("name: duplicate name {name:?}: list each real server once")
            } else if !(1..=MAX_WEIGHT).contains(weight) {
                format!("weight: invalid weight {weight}: must be between 1 and {MAX_WEIGHT}")
            } else {
                return None;
            };
            Some((Some(server.span()), reason))
        })
    }
}

fn renamed_below<'de, D: serde::Deserializer<'de>>(_: D) -> Result<(), D::Error> {
    Err(serde::de::Error::custom("below: renamed: use min_size"))
}

fn origin<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Uri, D::Error> {
    let origin = config::origin(deserializer)?;
    Ok(origin.expect("None only where the field is absent"))
}
