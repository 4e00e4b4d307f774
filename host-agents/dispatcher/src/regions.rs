// SPDX-License-Identifier: Apache-2.0
//! Regions of clients, by longest prefix match.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use foldhash::HashMap;
use serde::{Deserialize, Serialize};

/// An address prefix, written `2001:db8:c1::/48`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// Creates the prefix of a single address.
    pub const fn host(address: IpAddr) -> Self {
        let length = if address.is_ipv4() { 32 } else { 128 };
        Self { address, length }
    }

    const fn family(self) -> usize {
        family(self.address)
    }
}

const fn family(address: IpAddr) -> usize {
    address.is_ipv6() as usize
}

/// Returns an address as a 128-bit number, left-aligned.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

const fn mask(length: u8) -> u128 {
    match length {
        0 => 0,
        n => u128::MAX << (128 - n),
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(address, length)| {
            let address: IpAddr = address.parse().ok()?;
            let length: u8 = length.parse().ok()?;
            let fits = length <= if address.is_ipv4() { 32 } else { 128 };
            (fits && bits(address) & !mask(length) == 0).then_some(Self { address, length })
        });
        parsed.ok_or_else(|| {
            format!(
                "invalid prefix {text:?}: use a form such as 2001:db8:c1::/48 or 198.51.100.0/24, without host bits"
            )
        })
    }
}

impl TryFrom<String> for Prefix {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Prefix> for String {
    fn from(prefix: Prefix) -> Self {
        prefix.to_string()
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// Prefixes of an address family and their regions, by length, longest first.
type Family = BTreeMap<Reverse<u8>, HashMap<u128, u16>>;

/// Regions of client prefixes.
#[derive(Clone, Debug, Default)]
pub struct Regions([Family; 2]);

impl Regions {
    /// Sets the region of a prefix.
    pub fn insert(&mut self, prefix: Prefix, region: u16) {
        let lengths = &mut self.0[prefix.family()];
        let table = lengths.entry(Reverse(prefix.length)).or_default();
        table.insert(bits(prefix.address), region);
    }

    /// Removes a prefix; returns true if it was present.
    pub fn remove(&mut self, prefix: Prefix) -> bool {
        let lengths = &mut self.0[prefix.family()];
        let Some(table) = lengths.get_mut(&Reverse(prefix.length)) else {
            return false;
        };
        let was_present = table.remove(&bits(prefix.address)).is_some();
        if table.is_empty() {
            lengths.remove(&Reverse(prefix.length));
        }
        was_present
    }

    /// Returns the region of the longest prefix that contains `address`, or 0 if no prefix does.
    #[inline]
    pub fn find(&self, address: IpAddr) -> u16 {
        let bits = bits(address);
        let mut lengths = self.0[family(address)].iter();
        lengths
            .find_map(|(length, table)| table.get(&(bits & mask(length.0))))
            .copied()
            .unwrap_or(0)
    }

    /// Returns the number of prefixes.
    pub fn len(&self) -> usize {
        let tables = self.0.iter().flat_map(BTreeMap::values);
        tables.map(|table| table.len()).sum()
    }

    /// Returns true if there are no prefixes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_prefix_wins() {
        let mut regions = Regions::default();
        for (prefix, region) in [
            ("2001:db8::/32", 1),
            ("2001:db8:c1::/48", 2),
            ("::/0", 9),
            ("198.51.100.0/24", 3),
            ("198.51.100.9/32", 4),
        ] {
            regions.insert(prefix.parse().unwrap(), region);
        }
        let find = |regions: &Regions, address: &str| regions.find(address.parse().unwrap());
        assert_eq!(find(&regions, "2001:db8:c1::9"), 2);
        assert_eq!(find(&regions, "2001:db8:c2::9"), 1);
        assert_eq!(find(&regions, "2001:db9::"), 9);
        assert_eq!(find(&regions, "198.51.100.9"), 4);
        assert_eq!(find(&regions, "198.51.100.8"), 3);
        assert_eq!(find(&regions, "198.51.101.8"), 0);
        assert_eq!(regions.len(), 5);
        assert!(regions.remove("2001:db8:c1::/48".parse().unwrap()));
        assert!(!regions.remove("2001:db8:c1::/48".parse().unwrap()));
        assert_eq!(find(&regions, "2001:db8:c1::9"), 1);
    }

    #[test]
    fn invalid_prefix_is_rejected() {
        for invalid in [
            "",
            "1.2.3.4",
            "1.2.3.4/33",
            "::/129",
            "2001:db8::1/64",
            "10.0.0.1/8",
            "x/8",
        ] {
            assert!(invalid.parse::<Prefix>().is_err(), "{invalid}");
        }
        assert_eq!(
            "0.0.0.0/0".parse::<Prefix>().unwrap().to_string(),
            "0.0.0.0/0"
        );
    }
}
