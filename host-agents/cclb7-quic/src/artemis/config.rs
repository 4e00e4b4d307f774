//! The section `[artemis]` of the configuration.

use std::net::{IpAddr, SocketAddr};
use std::num::{NonZeroU8, NonZeroU32};

use http::Uri;
use serde::Deserialize;

/// This server as a replica.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Artemis {
    /// Names that it serves.
    pub services: Vec<String>,
    /// For how many seconds clients may come to its unicast address at once.
    pub service_ttl: u64,
    /// Its site's id.
    pub site: NonZeroU8,
    /// Where handshakes on the Service Address come in.
    pub tunnel: Tunnel,
    /// Base URLs of the site's dispatchers.
    #[serde(default, deserialize_with = "origins")]
    pub dispatchers: Vec<Uri>,
    /// Responses under way that are a load of 1.
    pub capacity: NonZeroU32,
    /// Load from which on it is not to be chosen, until it has fallen by a quarter.
    pub overload: f64,
}

/// Its end of the tunnel.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tunnel {
    /// Its own unicast address, and VXLAN's port.
    pub listen: SocketAddr,
    /// Where answers go: the site's switch (VTEP).
    pub gateway: IpAddr,
    /// Who may send: dispatchers, and the switch.
    pub peers: Vec<IpAddr>,
}

impl Artemis {
    /// What is wrong with it, beside its form.
    pub(crate) fn problem(&self) -> Option<String> {
        let Tunnel {
            listen,
            gateway,
            peers,
        } = &self.tunnel;
        if self.services.is_empty() {
            return Some("services: names none; write [\"films.example\"]".into());
        }
        if let Some(other) = peers
            .iter()
            .chain([gateway])
            .find(|peer| peer.is_ipv4() != listen.is_ipv4())
        {
            return Some(format!(
                "tunnel: {other} is of another family than {listen}"
            ));
        }
        if listen.ip().is_unspecified() {
            return Some(format!(
                "tunnel: listen: {listen} is everywhere; write the address that peers send to"
            ));
        }
        if peers.is_empty() {
            return Some("tunnel: peers: names none, so that nothing would come in".into());
        }
        if !(self.overload > 0. && self.overload <= 1.) {
            return Some(format!(
                "overload: {} is no load; write one above 0 and up to 1",
                self.overload
            ));
        }
        None
    }
}

fn origins<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Uri>, D::Error> {
    #[derive(Deserialize)]
    struct Origin(#[serde(deserialize_with = "crate::config::origin")] Option<Uri>);
    let origins = Vec::<Origin>::deserialize(deserializer)?;
    Ok(origins.into_iter().filter_map(|origin| origin.0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: &str = "services = ['films.example']\nservice_ttl = 60\nsite = 2\ncapacity = 200\noverload = 0.9\n\
                         dispatchers = ['http://[2001:db8::20]:8080']\n\
                         tunnel = { listen = '[2001:db8::11]:4789', gateway = '2001:db8::1', peers = ['2001:db8::20'] }\n";

    /// What is wrong once `from` is `to`.
    fn problem(from: &str, to: &str) -> String {
        assert!(RIGHT.contains(from));
        let read = toml::from_str::<Artemis>(&RIGHT.replace(from, to));
        match read {
            Ok(artemis) => artemis.problem().unwrap_or_default(),
            Err(error) => error.message().to_owned(),
        }
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (from, to, expected) in [
            ("0.9", "0.9", ""),
            ("0.9", "1.5", "overload: 1.5 is no load"),
            ("'films.example'", "", "services: names none"),
            ("['2001:db8::20']", "[]", "tunnel: peers: names none"),
            (
                "'2001:db8::1'",
                "'192.0.2.1'",
                "tunnel: 192.0.2.1 is of another family",
            ),
            (
                "[2001:db8::11]:4789",
                "[::]:4789",
                "tunnel: listen: [::]:4789 is everywhere",
            ),
            (
                "http://[2001:db8::20]:8080",
                "https://x",
                "\"https://x\" is no origin",
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
