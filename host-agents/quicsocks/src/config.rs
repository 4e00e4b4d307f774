//! The configuration file (TOML): what may stand in it, and errors that name file, line and reason.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;

use anyhow::{Result, bail};
use frontage_program::config::{self, BANDWIDTHS, amount, at};
use ipnet::IpNet;
use serde::Deserialize;
use toml::Spanned;

/// What the proxy is to do.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Addresses and TCP ports of the control connections.
    pub listen: Vec<SocketAddr>,
    /// Recursive resolvers, with their ports.
    pub resolvers: Vec<SocketAddr>,
    /// Where Prometheus may ask; nowhere if absent.
    pub metrics: Option<SocketAddr>,
    /// Prefixes to which datagrams may go although they are not of the public Internet.
    #[serde(default)]
    pub allow: Vec<IpNet>,
    /// Who may use it; everybody if there is none.
    #[serde(default, rename = "user", deserialize_with = "users")]
    pub users: Vec<User>,
    /// What clients may use of it.
    #[serde(default)]
    pub limits: Limits,
}

/// User name and password (RFC 1929), each of 1 to 255 bytes.
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

/// What clients may use of the proxy.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Associations of all clients.
    pub associations: usize,
    /// Associations of one address, which may be that of a NAT.
    pub associations_per_client: usize,
    /// Destinations of an association at a time.
    pub flows_per_association: usize,
    /// Bits per second of one address, both ways together.
    pub bandwidth: Bandwidth,
    /// Seconds that a flow may last; clients migrate long before.
    pub flow_seconds: u64,
    /// Seconds that a flow may have nothing to forward.
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

/// Bits per second, written `20mbit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Bandwidth(pub u64);

impl TryFrom<String> for Bandwidth {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        amount(&text, &BANDWIDTHS)
            .map(Self)
            .ok_or_else(|| format!("{text:?} is no bandwidth; write 20mbit"))
    }
}

fn users<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<User>, D::Error> {
    let users = Vec::<User>::deserialize(deserializer)?;
    for user in &users {
        // The password itself must not end up in a log.
        for (what, text) in [("name", &user.name), ("password", &user.password)] {
            if !(1..=255).contains(&text.len()) {
                return Err(serde::de::Error::custom(format!(
                    "a user's {what} has {} bytes; give it 1 to 255 (RFC 1929)",
                    text.len()
                )));
            }
        }
    }
    Ok(users)
}

/// Reads the configuration at `path`.
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
    let refuse = |place: Range<usize>, reason: &str| bail!("{}", at(path, text, place, reason));
    if config.listen.is_empty() {
        return refuse(
            spans.listen.span(),
            "listen names no address; write [\"[::]:1080\"]",
        );
    }
    if config.resolvers.is_empty() {
        return refuse(
            spans.resolvers.span(),
            "resolvers names none; write [\"127.0.0.1:53\"]",
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
            let place = spans.limits.as_ref().map_or(0..0, Spanned::span);
            return refuse(
                place,
                &format!("{name} = 0 would forward nothing; write 1 or more"),
            );
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
                "proxy.toml:1: listen names no address; write",
            ),
            (
                "listen = ['[::]:1080']\nresolvers = []\n",
                "proxy.toml:2: resolvers names none; write",
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
                "proxy.toml:4: \"9\" is no bandwidth; write 20mbit",
            ),
            (
                &format!("{HEAD}[limits]\nidle_seconds = 0\n"),
                "proxy.toml:3: idle_seconds = 0 would forward nothing",
            ),
            (
                &format!("{HEAD}[[user]]\nname = ''\npassword = 'x'\n"),
                "proxy.toml:3: a user's name has 0 bytes; give it 1 to 255",
            ),
        ] {
            let error = parse(Path::new("proxy.toml"), text)
                .unwrap_err()
                .to_string();
            assert!(error.starts_with(expected), "{error} is not {expected}");
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn what_is_not_said_has_a_default() {
        let config = parse(Path::new("proxy.toml"), HEAD).unwrap();
        assert_eq!(config.limits.bandwidth, Bandwidth(20_000_000));
        assert!(config.users.is_empty() && config.allow.is_empty());
    }
}
