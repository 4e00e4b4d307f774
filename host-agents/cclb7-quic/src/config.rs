// SPDX-License-Identifier: Apache-2.0
//! The configuration file (TOML). Errors name file, line and reason.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use frontage_daemon::config::{locate, parse, read};
pub use frontage_http::config::{Bandwidth, Bytes, Congestion, Prefix, RealServerChoice, Route};
use frontage_http::config::{check_routes, resolve, resolve_log};
use serde::Deserialize;
use toml::Spanned;

use crate::artemis::Config as Artemis;
use crate::handoff::Config as Handoff;
use crate::moves::Config as Moves;

/// Configuration of the server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::manual_non_exhaustive)] // The private field only rejects a former name.
pub struct Config {
    /// Addresses and UDP ports to serve, preferably wildcards.
    pub listen: Vec<SocketAddr>,
    /// PEM file with the certificate chain.
    pub certificate: Spanned<PathBuf>,
    /// PEM file with the private key of the certificate.
    pub private_key: Spanned<PathBuf>,
    /// Address of the metrics endpoint for Prometheus; none if absent.
    pub metrics: Option<SocketAddr>,
    /// File of the access log, with one JSON object per line, or `-` for the standard output; none if absent.
    pub access_log: Option<PathBuf>,
    /// Time in seconds for active requests to end at shutdown.
    #[serde(default = "default_drain_seconds")]
    pub drain_seconds: u64,
    /// Maximum number of concurrent handshakes with clients whose address is not validated. Beyond it, clients get a Retry,
    /// which needs no state (RFC 9000, section 8.1.2) and thus stops a flood from spoofed addresses. With 0, every client gets
    /// one.
    #[serde(default = "default_max_unvalidated_handshakes")]
    pub max_unvalidated_handshakes: usize,
    /// Whether clients that return may send requests with their first packet (0-RTT, RFC 9001, section 4.6). Only requests
    /// with safe methods are processed before the handshake is complete, because an attacker can replay them.
    #[serde(default)]
    pub early_data: bool,
    /// Congestion control of responses.
    #[serde(default)]
    pub congestion: Congestion,
    /// Former name of `max_unvalidated_handshakes`, which is rejected.
    #[serde(default, deserialize_with = "renamed_unproven_handshakes")]
    #[allow(dead_code)]
    unproven_handshakes: (),
    /// CloudCookie; without it this is a plain HTTP/3 server.
    pub cookie: Option<Cookie>,
    /// Artemis replica. Requires `cookie`, because the unicast address contains the cookie.
    pub artemis: Option<Spanned<Artemis>>,
    /// Real servers to which routes delegate requests; none if absent.
    pub handoff: Option<Spanned<Handoff>>,
    /// Moves of clients during their connections; none if absent.
    pub moves: Option<Spanned<Moves>>,
    /// Routes. Among those whose host and header match, the one with the longest matching path prefix applies.
    #[serde(rename = "route")]
    pub routes: Vec<Spanned<Route>>,
}

const fn default_drain_seconds() -> u64 {
    30
}

const fn default_max_unvalidated_handshakes() -> usize {
    256
}

/// CloudCookie settings of this server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cookie {
    /// Server id.
    pub sid: u16,
    /// Server id over IPv4, which is a separate service on the switch; `sid` if absent.
    pub sid_v4: Option<u16>,
    /// The /64 prefix of this server (AnyIP).
    pub server_prefix: Prefix,
    /// The /64 prefix of the cookie addresses to which clients send.
    pub cookie_prefix: Prefix,
    /// UDP port of the service, at the VIP and at cookie addresses.
    pub port: u16,
    /// Key file, see [`frontage_http::config::load_keys`].
    pub keys: Spanned<PathBuf>,
    /// Assumed bandwidth of a connection (RPT = remaining bytes / bandwidth).
    #[serde(default)]
    pub bandwidth: Bandwidth,
    /// A response with more remaining bytes counts in N_FF.
    #[serde(default)]
    pub look_ahead: Bytes,
}

/// Load the configuration at `path`. Relative paths in it start at its folder.
pub fn load(path: &Path) -> Result<Config> {
    let text = read(path)?;
    let mut config: Config = parse(path, &text)?;
    let files = [&mut config.certificate, &mut config.private_key];
    let files = files.into_iter();
    let files = files.chain(config.cookie.iter_mut().map(|cookie| &mut cookie.keys));
    let handoff = config.handoff.iter_mut();
    for file in files.chain(handoff.flat_map(|handoff| handoff.get_mut().files())) {
        resolve(file, path, &text)?;
    }
    if let Some(log) = &mut config.access_log {
        resolve_log(log, path);
    }
    if let Some(moves) = &mut config.moves {
        if config.handoff.is_some() && config.cookie.is_none() {
            let problem =
                "moves: missing [cookie]: without it, real servers respond from one address only";
            bail!("{}", locate(path, &text, moves.span(), problem));
        }
        if let Some(folder) = path.parent() {
            let moves = moves.get_mut();
            moves.order = folder.join(&moves.order);
        }
    }
    if let Some(handoff) = &config.handoff
        && let Some((span, reason)) = handoff.get_ref().problem()
    {
        let span = span.unwrap_or(handoff.span());
        bail!(
            "{}",
            locate(path, &text, span, &format!("handoff: {reason}"))
        );
    }
    let real_servers = config.handoff.as_ref();
    let real_servers = real_servers.map(|handoff| handoff.get_ref().names());
    check_routes(&mut config.routes, real_servers.as_deref(), path, &text)?;
    if let Some(artemis) = &config.artemis {
        let missing_cookie = || "missing [cookie]: the unicast address contains it".to_owned();
        let reason = artemis.get_ref().problem();
        if let Some(reason) = reason.or_else(|| config.cookie.is_none().then(missing_cookie)) {
            bail!(
                "{}",
                locate(path, &text, artemis.span(), &format!("artemis: {reason}"))
            );
        }
    }
    if config.listen.is_empty() {
        bail!(
            "{}: listen: empty list: add an address, for example [\"[::]:443\"]",
            path.display()
        );
    }
    Ok(config)
}

fn renamed_unproven_handshakes<'de, D: serde::Deserializer<'de>>(_: D) -> Result<(), D::Error> {
    let message = "unproven_handshakes: renamed: use max_unvalidated_handshakes";
    Err(serde::de::Error::custom(message))
}

#[cfg(test)]
mod tests;
