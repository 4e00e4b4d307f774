// SPDX-License-Identifier: Apache-2.0
//! The configuration file (TOML). Errors name the file, the line and the reason.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use anyhow::{Result, bail};
use frontage_daemon::config::{self, locate};
use frontage_tunnel::vxlan;
use serde::Deserialize;
use toml::Spanned;

/// Configuration of the dispatcher.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Address and TCP port of the HTTP API.
    pub control: SocketAddr,
    /// Number of workers, one per core by default.
    #[serde(default = "cores")]
    pub threads: usize,
    /// Tunnel endpoint.
    pub tunnel: Tunnel,
    /// Memory of each worker.
    #[serde(default)]
    pub limits: Limits,
}

/// The tunnel endpoint and its peers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tunnel {
    /// The dispatcher's own unicast address with the VXLAN port.
    pub listen: Spanned<SocketAddr>,
    /// Tunnel addresses of this site's switches. Those of other sites are in the controller's table.
    pub peers: Spanned<Vec<IpAddr>>,
}

/// Memory of each worker, which is allocated at start and never grows.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Maximum number of unfinished first flights (17 KiB each).
    pub unfinished: usize,
    /// Number of recent first flights whose targets are cached (about 80 bytes each).
    pub recent: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            unfinished: 2048,
            recent: 65_536,
        }
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl Config {
    /// Returns the address of the dispatcher's tunnel endpoint.
    pub fn own_address(&self) -> IpAddr {
        self.tunnel.listen.get_ref().ip()
    }
}

/// Reads the configuration at `path`.
///
/// # Errors
/// Returns an error with the file and line if the configuration is invalid.
pub fn load(path: &Path) -> Result<Config> {
    let text = config::read(path)?;
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<Config> {
    let config: Config = config::parse(path, text)?;
    let Tunnel { listen, peers } = &config.tunnel;
    let own = *listen.get_ref();
    if own.ip().is_unspecified() || own.port() != vxlan::PORT {
        let reason = format!(
            "tunnel.listen is {own}: must be an address of this machine with port {}",
            vxlan::PORT
        );
        bail!("{}", locate(path, text, listen.span(), &reason));
    }
    if peers.get_ref().is_empty() {
        let reason = "tunnel.peers is empty: add the tunnel address of the site's switch";
        bail!("{}", locate(path, text, peers.span(), reason));
    }
    if let Some(other) = peers
        .get_ref()
        .iter()
        .find(|peer| peer.is_ipv4() != own.is_ipv4())
    {
        let reason = format!("tunnel.peers: {other} must be of the same family as tunnel.listen");
        bail!("{}", locate(path, text, peers.span(), &reason));
    }
    for (name, value) in [
        ("threads", config.threads),
        ("limits.unfinished", config.limits.unfinished),
        ("limits.recent", config.limits.recent),
    ] {
        if !(1..=1 << 24).contains(&value) {
            bail!(
                "{}: {name} is {value}: must be 1 to {}",
                path.display(),
                1 << 24
            );
        }
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "control = '[::1]:8080'\n[tunnel]\nlisten = '[2001:db8:1::d]:4789'\npeers = ['2001:db8:101::1']\n";

    #[test]
    fn errors_name_line_and_reason() {
        let config = parse(Path::new("d.toml"), VALID).unwrap();
        assert_eq!(
            (config.limits.unfinished, config.limits.recent),
            (2048, 65_536)
        );
        for (from, to, expected) in [
            ("listen", "lisen", "d.toml:3: unknown field `lisen`"),
            (
                "2001:db8:1::d",
                "::",
                "d.toml:3: tunnel.listen is [::]:4789: must be an address",
            ),
            (
                ":4789",
                ":4788",
                "d.toml:3: tunnel.listen is [2001:db8:1::d]:4788: must",
            ),
            ("'2001:db8:101::1'", "", "d.toml:4: tunnel.peers is empty"),
            (
                "2001:db8:101::1",
                "192.0.2.1",
                "d.toml:4: tunnel.peers: 192.0.2.1 must be of the same family",
            ),
            (
                "[tunnel]",
                "threads = 0\n[tunnel]",
                "d.toml: threads is 0: must be 1 to",
            ),
            ("'[::1]:8080'", "8080", "d.toml:1: "),
        ] {
            let error = parse(Path::new("d.toml"), &VALID.replace(from, to))
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with(expected),
                "got {error:?}, expected {expected:?}"
            );
        }
    }
}
