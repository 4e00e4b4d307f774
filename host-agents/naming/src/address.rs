// SPDX-License-Identifier: Apache-2.0
//! Service Addresses: an anycast prefix followed by the first bits of a name's SHA-512 hash (Artemis, section 3.2).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use sha2::{Digest as _, Sha512};

use crate::Name;

/// The prefix of an instance and N_sid, the number of bits of its ServiceIDs, written as `2001:db8:a::/48+16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServicePrefix {
    network: IpAddr,
    length: u8,
    sid_bits: u8,
}

/// Why a text is not a [`ServicePrefix`], and how to correct it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidPrefix(String);

impl fmt::Display for InvalidPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidPrefix {}

impl ServicePrefix {
    /// Return the Service Address of `name`: prefix, ServiceID, zeros.
    pub fn service_address(&self, name: &Name) -> IpAddr {
        let digest = Sha512::digest(name.as_str().as_bytes());
        let head = u128::from_be_bytes(*digest.first_chunk().expect("SHA-512 has 64 bytes"));
        // For N_sid = 0 the shift is by 128 bits, and the ServiceID is empty.
        let sid = head
            .checked_shr(128 - u32::from(self.sid_bits))
            .unwrap_or(0);
        let host_bits = u32::from(width(self.network) - self.length - self.sid_bits);
        let sid = sid.checked_shl(host_bits).unwrap_or(0);
        match self.network {
            IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits() | sid as u32).into(),
            IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() | sid).into(),
        }
    }

    /// Return N_sid.
    pub const fn sid_bits(&self) -> u8 {
        self.sid_bits
    }
}

/// Return the number of bits of an address.
const fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

impl FromStr for ServicePrefix {
    type Err = InvalidPrefix;

    fn from_str(text: &str) -> Result<Self, InvalidPrefix> {
        let invalid = |reason: &str| {
            let fix = "write prefix/length+bits, for example 2001:db8:a::/48+16";
            InvalidPrefix(format!("invalid prefix {text:?}: {reason}: {fix}"))
        };
        let parts = || {
            let (network, rest) = text.split_once('/')?;
            let (length, sid_bits) = rest.split_once('+')?;
            Some((number(length)?, number(sid_bits)?, network.parse().ok()?))
        };
        let (length, sid_bits, network): (u8, u8, IpAddr) =
            parts().ok_or_else(|| invalid("not a prefix with N_sid"))?;
        let width = width(network);
        if length.checked_add(sid_bits).is_none_or(|bits| bits > width) {
            let reason = format!("more than {width} bits");
            return Err(invalid(&reason));
        }
        let host = match network {
            IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
            IpAddr::V6(v6) => v6.to_bits(),
        };
        if host.checked_shl(length.into()).unwrap_or(0) != 0 {
            return Err(invalid("bits set after the prefix"));
        }
        Ok(Self {
            network,
            length,
            sid_bits,
        })
    }
}

/// Parse decimal digits. `u8::from_str` would also accept a sign.
fn number(digits: &str) -> Option<u8> {
    let only_digits = digits.bytes().all(|digit| digit.is_ascii_digit());
    digits.parse().ok().filter(|_| only_digits)
}

impl fmt::Display for ServicePrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}+{}", self.network, self.length, self.sid_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn address(prefix: &str, name: &str) -> IpAddr {
        let prefix: ServicePrefix = prefix.parse().unwrap();
        prefix.service_address(&Name::new(name).unwrap())
    }

    #[test]
    fn service_id_follows_the_prefix() {
        // SHA-512("abc") = ddaf35a193617aba cc417349ae204131 ... (example of RFC 6234).
        for (prefix, expected) in [
            ("2001:db8:a::/48+16", "2001:db8:a:ddaf::"),
            ("2001:db8:a::/48+12", "2001:db8:a:dda0::"),
            ("2001:db8:a::/48+80", "2001:db8:a:ddaf:35a1:9361:7aba:cc41"),
            ("2001:db8:a::/48+0", "2001:db8:a::"),
            ("::/0+128", "ddaf:35a1:9361:7aba:cc41:7349:ae20:4131"),
            ("::/0+0", "::"),
            ("198.51.100.0/24+8", "198.51.100.221"),
            ("198.51.100.0/24+3", "198.51.100.192"),
            ("198.51.100.7/32+0", "198.51.100.7"),
            ("0.0.0.0/0+32", "221.175.53.161"),
        ] {
            assert_eq!(address(prefix, "ABC.").to_string(), expected, "{prefix}");
        }
    }

    #[test]
    fn invalid_prefixes_are_rejected_with_the_reason() {
        for (text, reason) in [
            ("2001:db8:a::/48", "not a prefix"),
            ("2001:db8:a::/48+", "not a prefix"),
            ("2001:db8:a::/+48+1", "not a prefix"),
            ("198.51.100/24+8", "not a prefix"),
            ("2001:db8:a::/48+81", "more than 128 bits"),
            ("198.51.100.0/24+9", "more than 32 bits"),
            ("198.51.100.0/200+200", "more than 32 bits"),
            ("2001:db8:a::1/48+16", "bits set after the prefix"),
            ("198.51.100.1/31+0", "bits set after the prefix"),
        ] {
            let error = text.parse::<ServicePrefix>().unwrap_err().to_string();
            let expected = format!("invalid prefix {text:?}: {reason}");
            assert!(error.starts_with(&expected), "{error}");
        }
    }

    proptest! {
        #[test]
        fn displayed_prefix_is_parsed_back(bits: u128, length in 0..=128u8, sid_bits in 0..=128u8) {
            let network = bits.checked_shr(128 - u32::from(length)).unwrap_or(0).checked_shl(128 - u32::from(length)).unwrap_or(0);
            let prefix = ServicePrefix { network: Ipv6Addr::from_bits(network).into(), length, sid_bits: sid_bits.min(128 - length) };
            prop_assert_eq!(prefix.to_string().parse(), Ok(prefix));
        }
    }
}
