// SPDX-License-Identifier: Apache-2.0
//! The configuration file (TOML). Errors name file, line and reason.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use frontage_daemon::config::{parse, read};
use frontage_handoff::link::tls::Files;
use frontage_http::config::{Bandwidth, Congestion, Route, check_routes, resolve, resolve_log};
use serde::Deserialize;
use toml::Spanned;

/// Configuration of the real server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Address and UDP port at which balancers connect.
    pub listen: SocketAddr,
    /// PEM file with the certificate chain that the server presents to balancers.
    certificate: Spanned<PathBuf>,
    /// PEM file with the private key of the certificate.
    private_key: Spanned<PathBuf>,
    /// PEM file with the CA certificate for the balancers' certificates.
    ca: Spanned<PathBuf>,
    /// Names in the balancers' certificates.
    pub balancers: Vec<String>,
    /// Address and TCP port of the HTTP/1.1 origin from which balancers proxy requests that they do not delegate; none if absent.
    pub origin: Option<SocketAddr>,
    /// Address of the metrics endpoint for Prometheus; none if absent.
    pub metrics: Option<SocketAddr>,
    /// File of the access log, with one JSON object per line, or `-` for the standard output; none if absent.
    pub access_log: Option<PathBuf>,
    /// Time in seconds for active responses to end at shutdown.
    #[serde(default = "default_drain_seconds")]
    pub drain_seconds: u64,
    /// Congestion control.
    #[serde(default)]
    pub congestion: Congestion,
    /// CloudCookies for source addresses; required for balancers that use cookies.
    pub cookie: Option<Cookie>,
    /// Routes. Among those whose host and header match, the one with the longest matching path prefix applies.
    #[serde(rename = "route")]
    pub routes: Vec<Spanned<Route>>,
}

const fn default_drain_seconds() -> u64 {
    30
}

/// CloudCookie settings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cookie {
    /// The balancers' key file: `[[keys]]` with `id` and `secret` (hexadecimal), one or the two newest.
    pub keys: Spanned<PathBuf>,
    /// Assumed bandwidth of a connection (RPT = remaining bytes / bandwidth).
    #[serde(default)]
    pub bandwidth: Bandwidth,
}

impl Config {
    /// Return the files for the link.
    pub fn tls(&self) -> Files {
        Files {
            certificate: self.certificate.get_ref().clone(),
            private_key: self.private_key.get_ref().clone(),
            ca: self.ca.get_ref().clone(),
        }
    }
}

/// Load the configuration at `path`. Relative paths in it start at its folder.
pub fn load(path: &Path) -> Result<Config> {
    let text = read(path)?;
    let mut config: Config = parse(path, &text)?;
    let files = [
        &mut config.certificate,
        &mut config.private_key,
        &mut config.ca,
    ];
    let keys = config.cookie.iter_mut().map(|cookie| &mut cookie.keys);
    for file in files.into_iter().chain(keys) {
        resolve(file, path, &text)?;
    }
    if let Some(log) = &mut config.access_log {
        resolve_log(log, path);
    }
    if config.balancers.is_empty() {
        bail!(
            "{}: balancers: empty list: add the name in a balancer's certificate, for example [\"lb.example\"]",
            path.display()
        );
    }
    check_routes(&mut config.routes, None, path, &text)?;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Load a valid beginning followed by `tail`. Returns the error.
    fn load_error(folder: &Path, balancers: &str, tail: &str) -> String {
        let path = folder.join("server.toml");
        let text = format!(
            "listen = '[::1]:4500'\ncertificate = 'c.pem'\nprivate_key = 'k.pem'\nca = 'ca.pem'\nbalancers = {balancers}\n{tail}"
        );
        std::fs::write(&path, text).unwrap();
        let error = load(&path).unwrap_err().to_string();
        error.replace(&format!("{}/", folder.display()), "")
    }

    #[test]
    fn invalid_configurations_are_rejected() {
        let folder = std::env::temp_dir().join(format!("real-server-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let lb = "['lb.test']";
        let route = "[[route]]\npath = '/'\n";
        assert_eq!(
            load_error(&folder, lb, "route = []"),
            "server.toml:2: c.pem: no such file"
        );
        for file in ["c.pem", "k.pem", "ca.pem"] {
            std::fs::write(folder.join(file), "").unwrap();
        }
        for (balancers, tail, expected) in [
            (lb, "route = []", "server.toml: route: missing"),
            ("[]", route, "server.toml: balancers: empty list"),
            (
                lb,
                "congestion = 'reno'",
                "server.toml:6: unknown variant `reno`",
            ),
            (
                lb,
                &format!("{route}directory = '.'\n[cookie]\nkeys = 'k.toml'"),
                "server.toml:10: k.toml: no such file",
            ),
            (
                lb,
                &format!("{route}directory = 'www'"),
                "server.toml:6: directory: www: no such directory",
            ),
            (
                lb,
                &format!("{route}real_servers = {{ policy = 'random' }}"),
                "server.toml:6: real_servers: missing [handoff]",
            ),
        ] {
            let error = load_error(&folder, balancers, tail);
            assert!(
                error.starts_with(expected),
                "{error} does not start with {expected}"
            );
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
