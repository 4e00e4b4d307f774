//! The configuration file (TOML): what may stand in them, and errors that name file, line and reason.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use frontage_daemon::config::{locate, parse, read};
use serde::Deserialize;
use toml::Spanned;

use crate::artemis::Config as Artemis;
use crate::handoff::Config as Handoff;

mod keys;
mod route;
mod units;

pub use keys::load as load_keys;
pub use route::{Field, RealServers, Route};
pub(crate) use units::origin;
pub use units::{Bandwidth, Bytes, Prefix};

/// Instead of the access log's file.
pub const STANDARD_OUTPUT: &str = "-";

/// What the server is to do.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Addresses and UDP ports to serve; best the wildcards.
    pub listen: Vec<SocketAddr>,
    /// PEM file with the certificate and those that lead to its root.
    pub certificate: Spanned<PathBuf>,
    /// PEM file with the certificate's key.
    pub private_key: Spanned<PathBuf>,
    /// Where Prometheus may ask; nowhere if absent.
    pub metrics: Option<SocketAddr>,
    /// File of the access log, one JSON object a line, `-` for the standard output; none if absent.
    pub access_log: Option<PathBuf>,
    /// Seconds that requests may take to end once the server was told to.
    #[serde(default = "default_drain_seconds")]
    pub drain_seconds: u64,
    /// Most handshakes at a time whose clients did not show that they are where they say; each is held until it ends or idles. Beyond, a client is
    /// sent a Retry, for which nothing is held (RFC 9000, section 8.1.2): a flood from forged addresses stops there. 0 sends one to everybody.
    #[serde(default = "default_unproven_handshakes")]
    pub unproven_handshakes: usize,
    /// The CloudCookie; without it this is a plain HTTP/3 server.
    pub cookie: Option<Cookie>,
    /// What makes it a replica of Artemis; needs the CloudCookie, of which the unicast address is made.
    pub artemis: Option<Spanned<Artemis>>,
    /// The real servers to which routes may hand requests; none if absent.
    pub handoff: Option<Spanned<Handoff>>,
    /// Where requests go: of the routes whose host and header are the request's, that with the longest prefix of its path.
    #[serde(rename = "route")]
    pub routes: Vec<Spanned<Route>>,
}

const fn default_drain_seconds() -> u64 {
    30
}

const fn default_unproven_handshakes() -> usize {
    256
}

/// This server in its data centre.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cookie {
    /// Server id.
    pub sid: u16,
    /// Server id over IPv4, which is another service to the switch; `sid` if absent.
    pub sid_v4: Option<u16>,
    /// The /64 of this server (AnyIP).
    pub server_prefix: Prefix,
    /// The /64 at which clients find the servers by cookie.
    pub cookie_prefix: Prefix,
    /// The service's UDP port, at the VIP and at cookie addresses alike.
    pub port: u16,
    /// File of the keys, see [`load_keys`].
    pub keys: Spanned<PathBuf>,
    /// Bandwidth that a connection is assumed to get (RPT = remaining bytes / bandwidth).
    #[serde(default)]
    pub bandwidth: Bandwidth,
    /// Remaining bytes above which a response counts in N_FF.
    #[serde(default)]
    pub look_ahead: Bytes,
}

/// Reads the configuration at `path`. Relative paths in it start at its folder.
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
    if let Some(log) = &mut config.access_log
        && log.as_os_str() != STANDARD_OUTPUT
    {
        *log = folder(path).join(&log);
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
        let without = || "needs a [cookie]: the unicast address is made of it".to_owned();
        let reason = artemis.get_ref().problem();
        if let Some(reason) = reason.or_else(|| config.cookie.is_none().then(without)) {
            bail!(
                "{}",
                locate(path, &text, artemis.span(), &format!("artemis: {reason}"))
            );
        }
    }
    if config.listen.is_empty() {
        bail!(
            "{}: listen: names no address; write [\"[::]:443\"]",
            path.display()
        );
    }
    Ok(config)
}

/// Has `file`, which a configuration at `path` with this `text` names, start at the configuration's folder.
///
/// # Errors
/// If there is no such file.
pub fn resolve(file: &mut Spanned<PathBuf>, path: &Path, text: &str) -> Result<()> {
    *file.get_mut() = folder(path).join(file.get_ref());
    if !file.get_ref().is_file() {
        let reason = format!("{} is no file", file.get_ref().display());
        bail!("{}", locate(path, text, file.span(), &reason));
    }
    Ok(())
}

/// Has the routes' directories start at the folder of the configuration at `path` with this `text`. They may name these `real_servers`.
///
/// # Errors
/// If one is wrong, or there is none.
pub fn check_routes(
    routes: &mut [Spanned<Route>],
    real_servers: Option<&[&str]>,
    path: &Path,
    text: &str,
) -> Result<()> {
    if routes.is_empty() {
        let path = path.display();
        bail!("{path}: route: there is none, so every answer would be 404");
    }
    for route in routes {
        let span = route.span();
        let route = route.get_mut();
        if let Some(directory) = &mut route.directory {
            *directory = folder(path).join(&directory);
        }
        if let Some(reason) = route.problem(real_servers) {
            bail!("{}", locate(path, text, span, &reason));
        }
    }
    Ok(())
}

fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

#[cfg(test)]
mod tests;
