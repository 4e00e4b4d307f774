// SPDX-License-Identifier: Apache-2.0
//! The section `[artemis]` of the configuration.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::num::{NonZeroU8, NonZeroU32};

use http::Uri;
use serde::Deserialize;

/// Configuration of a replica.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Artemis {
    /// Names that the replica serves.
    pub services: Vec<String>,
    /// Time in seconds for which clients may cache the unicast address.
    pub service_ttl: u64,
    /// Id of the replica's site.
    pub site: NonZeroU8,
    /// Tunnel through which handshakes on the Service Address arrive.
    pub tunnel: Tunnel,
    /// Service Address that the switch shows to clients as the source of packets with dynamic cookies of this server: its VIP.
    /// Real servers then also respond to clients in the tunnel of this address.
    #[serde(default)]
    pub vip: Option<Ipv6Addr>,
    /// Base URLs of the site's dispatchers.
    #[serde(default, deserialize_with = "origins")]
    pub dispatchers: Vec<Uri>,
    /// Number of active responses that is a load of 1.
    pub capacity: NonZeroU32,
    /// Load at which the replica stops accepting connections, until it has fallen by a quarter.
    pub overload: f64,
}

/// The replica's end of the tunnel.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tunnel {
    /// The replica's unicast address, and the VXLAN port.
    pub listen: SocketAddr,
    /// Destination of responses: the site's switch (VTEP).
    pub gateway: IpAddr,
    /// Permitted senders: the dispatchers and the switch.
    pub peers: Vec<IpAddr>,
}

impl Artemis {
    /// Check the values. Returns the problem.
    pub(crate) fn problem(&self) -> Option<String> {
        let Tunnel {
            listen,
            gateway,
            peers,
        } = &self.tunnel;
        if self.services.is_empty() {
            return Some(
                "services: empty list: add a name, for example [\"films.example\"]".into(),
            );
        }
        if let Some(other) = peers
            .iter()
            .chain([gateway])
            .find(|peer| peer.is_ipv4() != listen.is_ipv4())
        {
            return Some(format!(
                "tunnel: {other}: must be of the same address family as {listen}"
            ));
        }
        if listen.ip().is_unspecified() {
            return Some(format!(
                "tunnel: listen: {listen} is a wildcard: use the address to which peers send"
            ));
        }
        if peers.is_empty() {
            return Some("tunnel: peers: empty list: add the dispatchers and the switch".into());
        }
        if !(self.overload > 0. && self.overload <= 1.) {
            return Some(format!(
                "overload: invalid load {}: must be above 0 and at most 1",
                self.overload
            ));
        }
        None
    }
}

fn origins<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Uri>, D::Error> {
    #[derive(Deserialize)]
    struct Origin(#[serde(deserialize_with = "frontage_http::config::origin")] Option<Uri>);
    let origins = Vec::<Origin>::deserialize(deserializer)?;
    Ok(origins.into_iter().filter_map(|origin| origin.0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "services = ['films.example']\nservice_ttl = 60\nsite = 2\ncapacity = 200\noverload = 0.9\n\
                         dispatchers = ['http://[2001:db8::20]:8080']\n\
                         tunnel = { listen = '[2001:db8::11]:4789', gateway = '2001:db8::1', peers = ['2001:db8::20'] }\n";

    /// Return the problem after replacing `from` by `to`.
    fn problem(from: &str, to: &str) -> String {
        assert!(VALID.contains(from));
        let read = toml::from_str::<Artemis>(&VALID.replace(from, to));
        match read {
            Ok(artemis) => artemis.problem().unwrap_or_default(),
            Err(error) => error.message().to_owned(),
        }
    }

    #[test]
    fn invalid_values_are_rejected() {
        for (from, to, expected) in [
            ("0.9", "0.9", ""),
            ("0.9", "1.5", "overload: invalid load 1.5"),
            ("'films.example'", "", "services: empty list"),
            ("['2001:db8::20']", "[]", "tunnel: peers: empty list"),
            (
                "'2001:db8::1'",
                "'192.0.2.1'",
                "tunnel: 192.0.2.1: must be of the same address family",
            ),
            (
                "[2001:db8::11]:4789",
                "[::]:4789",
                "tunnel: listen: [::]:4789 is a wildcard",
            ),
            (
                "http://[2001:db8::20]:8080",
                "https://x",
                "invalid origin \"https://x\"",
            ),
            ("site = 2", "site = 0", "invalid value: integer `0`"),
            ("site = 2", "cite = 2", "unknown field `cite`"),
        ] {
            let found = problem(from, to);
            assert!(
                found.starts_with(expected) && found.is_empty() == expected.is_empty(),
                "{found}"
            );
        }
    }
}
