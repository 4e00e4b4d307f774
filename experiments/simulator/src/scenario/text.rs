// SPDX-License-Identifier: Apache-2.0
//! Text forms in scenarios: MAC addresses, bytes, and the ends of links.

use serde::{Deserialize, Deserializer, de::Error};

/// An Ethernet address, for example `02:00:00:00:00:01`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mac(pub [u8; 6]);

/// Bytes in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hex(pub Vec<u8>);

/// Key material of 16 to 32 bytes in hexadecimal.
#[derive(Debug, Clone)]
pub struct Secret(pub frontage_cookie::Secret);

/// An end of a link: `node:port`. A host's only port is 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Name of the switch or host.
    pub node: String,
    /// Port number.
    pub port: u32,
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [_, _] => u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok(),
            _ => None,
        })
        .collect()
}

impl<'de> Deserialize<'de> for Mac {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        from_hex(&text.replace(':', ""))
            .and_then(|bytes| bytes.try_into().ok())
            .map(Self)
            .ok_or_else(|| {
                D::Error::custom(format!(
                    "invalid MAC address '{text}': use the form 02:00:00:00:00:01"
                ))
            })
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        from_hex(&text).map(Self).ok_or_else(|| {
            D::Error::custom(format!(
                "invalid hexadecimal text '{text}': use an even number of digits"
            ))
        })
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Hex(bytes) = Hex::deserialize(deserializer)?;
        frontage_cookie::Secret::new(&bytes)
            .map(Self)
            .map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for End {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let parsed = text.split_once(':').and_then(|(node, port)| {
            let (node, port) = (node.to_owned(), port.parse().ok()?);
            Some(Self { node, port })
        });
        parsed.ok_or_else(|| {
            D::Error::custom(format!(
                "invalid link end '{text}': use NODE:PORT, for example edge:1"
            ))
        })
    }
}
