// SPDX-License-Identifier: Apache-2.0
//! The configuration file (TOML). Errors name the file, the line and the reason.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;

use anyhow::{Result, bail};
use frontage_daemon::config::{self, BANDWIDTH_UNITS, locate, parse_quantity};
use ipnet::IpNet;
use serde::Deserialize;
use toml::Spanned;

/// Configuration of the proxy.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Addresses and TCP ports of the control connections.
    pub listen: Vec<SocketAddr>,
    /// Recursive resolvers, with their ports.
    pub resolvers: Vec<SocketAddr>,
    /// Address of the Prometheus page; disabled if absent.
    pub metrics: Option<SocketAddr>,
    /// Prefixes outside the public Internet to which the proxy may forward.
    #[serde(default)]
    pub allow: Vec<IpNet>,
    /// Users of the proxy. If the list is empty, clients need not authenticate.
    #[serde(default, rename = "user", deserialize_with = "users")]
    pub users: Vec<User>,
    /// Resource limits.
    #[serde(default)]
    pub limits: Limits,
}

/// User name and password (RFC 1929), 1 to 255 bytes each.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    pub name: String,
    pub password: String,
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "User({:?})", self.name)
    }
}

/// Resource limits.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Maximum number of associations of all clients.
    pub associations: usize,
    /// Maximum number of associations of one client address, which many hosts behind a NAT may share.
    pub associations_per_client: usize,
    /// Maximum number of concurrent flows of an association.
    pub flows_per_association: usize,
    /// Bandwidth of one client address in bits per second, both directions together.
    pub bandwidth: Bandwidth,
    /// Maximum lifetime of a flow in seconds. Clients migrate long before.
    pub flow_seconds: u64,
    /// Idle timeout of a flow in seconds.
    pub idle_seconds: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            associations: 65_536,
            associations_per_client: 64,
            flows_per_association: 256,
            bandwidth: Bandwidth(20_000_000),
            flow_seconds: 600,
            idle_seconds: 30,
        }
    }
}

/// Bandwidth in bits per second, written `20mbit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Bandwidth(pub u64);

impl TryFrom<String> for Bandwidth {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        parse_quantity(&text, &BANDWIDTH_UNITS)
            .map(Self)
            .ok_or_else(|| format!("invalid bandwidth {text:?}: add a unit, for example 20mbit"))
    }
}

fn users<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<User>, D::Error> {
    let users = Vec::<User>::deserialize(deserializer)?;
    for user in &users {
        // The message must not contain the password: it may be logged.
        for (what, text) in [("name", &user.name), ("password", &user.password)] {
            if !(1..=255).contains(&text.len()) {
                return Err(serde::de::Error::custom(format!(
                    "user {what} has {} bytes: must be 1 to 255 (RFC 1929)",
                    text.len()
                )));
            }
        }
    }
    Ok(users)
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
    #[derive(Deserialize)]
    struct Spans {
        listen: Spanned<toml::Value>,
        resolvers: Spanned<toml::Value>,
        limits: Option<Spanned<toml::Value>>,
    }
    let spans: Spans = toml::from_str(text)?;
    let reject = |span: Range<usize>, reason: &str| bail!("{}", locate(path, text, span, reason));
    if config.listen.is_empty() {
        return reject(
            spans.listen.span(),
            "listen is empty: add an address, for example \"[::]:1080\"",
        );
    }
    if config.resolvers.is_empty() {
        return reject(
            spans.resolvers.span(),
            "resolvers is empty: add a recursive resolver, for example \"127.0.0.1:53\"",
        );
    }
    let limits = &config.limits;
    for (name, value) in [
        ("associations", limits.associations as u64),
        (
            "associations_per_client",
            limits.associations_per_client as u64,
        ),
        ("flows_per_association", limits.flows_per_association as u64),
        ("flow_seconds", limits.flow_seconds),
        ("idle_seconds", limits.idle_seconds),
    ] {
        if value == 0 {
            let span = spans.limits.as_ref().map_or(0..0, Spanned::span);
            return reject(span, &format!("limits.{name} is 0: must be 1 or more"));
        }
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "listen = ['[::]:1080']\nresolvers = ['127.0.0.1:53']\n";

    #[test]
    fn errors_name_line_and_fix() {
        for (text, expected) in [
            ("listen = 3\n", "proxy.toml:1: "),
            (
                "listen = []\nresolvers = ['127.0.0.1:53']\n",
                "proxy.toml:1: listen is empty: add",
            ),
            (
                "listen = ['[::]:1080']\nresolvers = []\n",
                "proxy.toml:2: resolvers is empty: add",
            ),
            (
                &format!("{HEAD}alow = []\n"),
                "proxy.toml:3: unknown field `alow`",
            ),
            (
                &format!("{HEAD}allow = ['10.0.0.0/33']\n"),
                "proxy.toml:3: ",
            ),
            (
                &format!("{HEAD}[limits]\nbandwidth = '9'\n"),
                "proxy.toml:4: invalid bandwidth \"9\": add a unit",
            ),
            (
                &format!("{HEAD}[limits]\nidle_seconds = 0\n"),
                "proxy.toml:3: limits.idle_seconds is 0: must be",
            ),
            (
                &format!("{HEAD}[[user]]\nname = ''\npassword = 'x'\n"),
                "proxy.toml:3: user name has 0 bytes: must be 1 to 255",
            ),
        ] {
            let error = parse(Path::new("proxy.toml"), text)
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with(expected),
                "got {error:?}, expected {expected:?}"
            );
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn missing_settings_have_defaults() {
        let config = parse(Path::new("proxy.toml"), HEAD).unwrap();
        assert_eq!(config.limits.bandwidth, Bandwidth(20_000_000));
        assert!(config.users.is_empty() && config.allow.is_empty());
    }
}
