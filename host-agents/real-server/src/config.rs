//! The configuration file (TOML), and errors that name file, line and reason.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use frontage_cclb7_quic::config::{Bandwidth, Route, STANDARD_OUTPUT, check_routes, resolve};
use frontage_daemon::config::{parse, read};
use frontage_handoff::link::tls::Files;
use noq::congestion::{Bbr3Config, ControllerFactory, CubicConfig};
use serde::Deserialize;
use toml::Spanned;

/// What the real server is to do.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Address and UDP port at which balancers find it.
    pub listen: SocketAddr,
    /// PEM file with the certificate that balancers are shown, and those that lead to the CA's.
    certificate: Spanned<PathBuf>,
    /// PEM file with the certificate's key.
    private_key: Spanned<PathBuf>,
    /// PEM file with the certificate of the CA that balancers' lead to.
    ca: Spanned<PathBuf>,
    /// Names of the balancers, as their certificates have them.
    pub balancers: Vec<String>,
    /// Address and TCP port at which balancers fetch over HTTP/1.1 what they answer themselves; nowhere if absent.
    pub origin: Option<SocketAddr>,
    /// Where Prometheus may ask; nowhere if absent.
    pub metrics: Option<SocketAddr>,
    /// File of the access log, one JSON object a line, `-` for the standard output; none if absent.
    pub access_log: Option<PathBuf>,
    /// Seconds that answers may take to end once the server was told to.
    #[serde(default = "default_drain_seconds")]
    pub drain_seconds: u64,
    /// How fast it sends.
    #[serde(default)]
    pub congestion: Congestion,
    /// What the sources of packets are made of for balancers that have CloudCookies, whose paths it cannot use without.
    pub cookie: Option<Cookie>,
    /// Where requests go: of the routes whose host and header are the request's, that with the longest prefix of its path.
    #[serde(rename = "route")]
    pub routes: Vec<Spanned<Route>>,
}

const fn default_drain_seconds() -> u64 {
    30
}

/// The CloudCookies of the site.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cookie {
    /// File of the keys, as the balancers': `[[keys]]` with `id` and `secret` (hexadecimal), one or the two newest.
    pub keys: Spanned<PathBuf>,
    /// Bandwidth that a connection is assumed to get (RPT = remaining bytes / bandwidth).
    #[serde(default)]
    pub bandwidth: Bandwidth,
}

/// The congestion control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Congestion {
    /// RFC 9438.
    #[default]
    Cubic,
    /// draft-ietf-ccwg-bbr, version 3.
    Bbr,
}

impl Congestion {
    /// What makes one for each path.
    pub fn factory(self) -> Arc<dyn ControllerFactory + Send + Sync> {
        match self {
            Self::Cubic => Arc::new(CubicConfig::default()),
            Self::Bbr => Arc::new(Bbr3Config::default()),
        }
    }
}

impl Config {
    /// What the link needs.
    pub fn tls(&self) -> Files {
        Files {
            certificate: self.certificate.get_ref().clone(),
            private_key: self.private_key.get_ref().clone(),
            ca: self.ca.get_ref().clone(),
        }
    }
}

/// Reads the configuration at `path`. Relative paths in it start at its folder.
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
    if let Some(log) = &mut config.access_log
        && log.as_os_str() != STANDARD_OUTPUT
    {
        *log = path.parent().unwrap_or(Path::new("")).join(&log);
    }
    if config.balancers.is_empty() {
        bail!(
            "{}: balancers: names none, so nobody could hand it a request; write [\"lb.example\"]",
            path.display()
        );
    }
    check_routes(&mut config.routes, None, path, &text)?;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reason why `tail` after a right beginning is refused.
    fn refused(folder: &Path, balancers: &str, tail: &str) -> String {
        let path = folder.join("server.toml");
        let text = format!(
            "listen = '[::1]:4500'\ncertificate = 'c.pem'\nprivate_key = 'k.pem'\nca = 'ca.pem'\nbalancers = {balancers}\n{tail}"
        );
        std::fs::write(&path, text).unwrap();
        let error = load(&path).unwrap_err().to_string();
        error.replace(&format!("{}/", folder.display()), "")
    }

    #[test]
    fn what_is_wrong_is_told() {
        let folder = std::env::temp_dir().join(format!("real-server-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let lb = "['lb.test']";
        let route = "[[route]]\npath = '/'\n";
        assert_eq!(
            refused(&folder, lb, "route = []"),
            "server.toml:2: c.pem is no file"
        );
        for file in ["c.pem", "k.pem", "ca.pem"] {
            std::fs::write(folder.join(file), "").unwrap();
        }
        for (balancers, tail, expected) in [
            (lb, "route = []", "server.toml: route: there is none"),
            ("[]", route, "server.toml: balancers: names none"),
            (
                lb,
                "congestion = 'reno'",
                "server.toml:6: unknown variant `reno`",
            ),
            (
                lb,
                &format!("{route}directory = '.'\n[cookie]\nkeys = 'k.toml'"),
                "server.toml:10: k.toml is no file",
            ),
            (
                lb,
                &format!("{route}directory = 'www'"),
                "server.toml:6: www is no directory",
            ),
            (
                lb,
                &format!("{route}real_servers = {{ policy = 'random' }}"),
                "server.toml:6: real_servers: needs a [handoff]",
            ),
        ] {
            let error = refused(&folder, balancers, tail);
            assert!(error.starts_with(expected), "{error} is not {expected}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
