//! The configuration file (TOML): what may stand in it, and errors that name file, line and reason.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use anyhow::{Result, bail};
use frontage_daemon::config::{self, locate};
use frontage_tunnel::vxlan;
use serde::Deserialize;
use toml::Spanned;

/// What the dispatcher is to do.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Address and TCP port at which the controller and the replicas find it.
    pub control: SocketAddr,
    /// Workers, each a core's.
    #[serde(default = "cores")]
    pub threads: usize,
    /// Its end of the tunnels.
    pub tunnel: Tunnel,
    /// What each worker remembers.
    #[serde(default)]
    pub limits: Limits,
}

/// Where tunnels end.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tunnel {
    /// Its own unicast address, with VXLAN's port.
    pub listen: Spanned<SocketAddr>,
    /// This site's switches; other sites' come in the controller's table.
    pub peers: Spanned<Vec<IpAddr>>,
}

/// Sizes of a worker's memory, which is taken at the start and never grows.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// First flights whose service is not yet known (17 KiB each).
    pub unfinished: usize,
    /// First flights whose choice is remembered (about 80 bytes each).
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
    /// The address of its end of the tunnels.
    pub fn own(&self) -> IpAddr {
        self.tunnel.listen.get_ref().ip()
    }
}

/// Reads the configuration at `path`.
///
/// # Errors
/// With file and line, if it is wrong.
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
            "tunnel.listen is {own}; write an address of this machine and port {}",
            vxlan::PORT
        );
        bail!("{}", locate(path, text, listen.span(), &reason));
    }
    if peers.get_ref().is_empty() {
        let reason = "tunnel.peers names none; write the tunnel address of the site's switch";
        bail!("{}", locate(path, text, peers.span(), reason));
    }
    if let Some(other) = peers
        .get_ref()
        .iter()
        .find(|peer| peer.is_ipv4() != own.is_ipv4())
    {
        let reason = format!("tunnel.peers: {other} is of another family than tunnel.listen");
        bail!("{}", locate(path, text, peers.span(), &reason));
    }
    for (name, value) in [
        ("threads", config.threads),
        ("limits.unfinished", config.limits.unfinished),
        ("limits.recent", config.limits.recent),
    ] {
        if !(1..=1 << 24).contains(&value) {
            bail!(
                "{}: {name} is {value}; use 1 to {}",
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

    const GOOD: &str = "control = '[::1]:8080'\n[tunnel]\nlisten = '[2001:db8:1::d]:4789'\npeers = ['2001:db8:101::1']\n";

    #[test]
    fn errors_name_line_and_reason() {
        let config = parse(Path::new("d.toml"), GOOD).unwrap();
        assert_eq!(
            (config.limits.unfinished, config.limits.recent),
            (2048, 65_536)
        );
        for (from, to, expected) in [
            ("listen", "lisen", "d.toml:3: unknown field `lisen`"),
            (
                "2001:db8:1::d",
                "::",
                "d.toml:3: tunnel.listen is [::]:4789; write an address",
            ),
            (
                ":4789",
                ":4788",
                "d.toml:3: tunnel.listen is [2001:db8:1::d]:4788; write",
            ),
            ("'2001:db8:101::1'", "", "d.toml:4: tunnel.peers names none"),
            (
                "2001:db8:101::1",
                "192.0.2.1",
                "d.toml:4: tunnel.peers: 192.0.2.1 is of another family",
            ),
            (
                "[tunnel]",
                "threads = 0\n[tunnel]",
                "d.toml: threads is 0; use 1 to",
            ),
            ("'[::1]:8080'", "8080", "d.toml:1: "),
        ] {
            let error = parse(Path::new("d.toml"), &GOOD.replace(from, to))
                .unwrap_err()
                .to_string();
            assert!(error.starts_with(expected), "{error} is not {expected}");
        }
    }
}
