// SPDX-License-Identifier: Apache-2.0
//! Values with units in configurations.

use std::net::Ipv6Addr;

use frontage_daemon::config::{BANDWIDTH_UNITS, parse_quantity};
use http::Uri;
use serde::Deserialize;

/// Upper 64 bits of addresses, written `2001:db8:0:7::/64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Prefix(pub u64);

impl TryFrom<String> for Prefix {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let address = text
            .strip_suffix("/64")
            .and_then(|address| address.parse::<Ipv6Addr>().ok());
        let bits = address
            .map(Ipv6Addr::to_bits)
            .filter(|bits| *bits as u64 == 0);
        let bits = bits.ok_or_else(|| {
            format!("invalid prefix {text:?}: must be a /64, for example 2001:db8:0:7::/64")
        })?;
        Ok(Self((bits >> 64) as u64))
    }
}

/// Bandwidth in bits per second, written `1gbit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Bandwidth(pub u64);

impl Default for Bandwidth {
    fn default() -> Self {
        Self(1_000_000_000)
    }
}

impl TryFrom<String> for Bandwidth {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        parse_quantity(&text, &BANDWIDTH_UNITS)
            .map(Self)
            .ok_or_else(|| format!("invalid bandwidth {text:?}: add a unit, for example 1gbit"))
    }
}

/// Size in bytes, written `1MB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Bytes(pub u64);

impl Default for Bytes {
    fn default() -> Self {
        Self(65_536)
    }
}

impl TryFrom<String> for Bytes {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let units = [("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000)];
        parse_quantity(&text, &units)
            .map(Self)
            .ok_or_else(|| format!("invalid size {text:?}: add a unit, for example 1MB"))
    }
}

/// Deserialize an origin, for example `http://127.0.0.1:8080`.
pub fn origin<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Uri>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let uri = text.parse::<Uri>().ok().filter(|uri| {
        uri.scheme_str() == Some("http")
            && uri.authority().is_some()
            && matches!(uri.path(), "" | "/")
    });
    let problem = || {
        serde::de::Error::custom(format!(
            "invalid origin {text:?}: must be http://HOST:PORT, for example http://127.0.0.1:8080"
        ))
    };
    uri.map(Some).ok_or_else(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_need_units() {
        assert_eq!(
            Bandwidth::try_from("25gbit".to_owned()),
            Ok(Bandwidth(25_000_000_000))
        );
        assert_eq!(Bytes::try_from("64 kB".to_owned()), Ok(Bytes(64_000)));
        for invalid in ["", "1", "MB", "0MB", "1.5MB", "-1MB", "99999999999999GB"] {
            assert!(Bytes::try_from(invalid.to_owned()).is_err(), "{invalid}");
        }
    }
}
