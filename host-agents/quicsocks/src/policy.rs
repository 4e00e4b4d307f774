// SPDX-License-Identifier: Apache-2.0
//! Destination policy: the proxy must not give access to the networks behind it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv6Net};

/// Prefixes outside the public Internet (IANA's special-purpose address registries, RFC 6890). Documentation prefixes are
/// missing because they are not routed.
const NON_PUBLIC: [&str; 19] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "::/127",
    "100::/64",
    "64:ff9b:1::/48",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
    "5f00::/16",
];

/// IPv6 prefixes with an embedded IPv4 address, and the bit at which it starts: IPv4-mapped and -compatible, NAT64 (RFC 6052)
/// and 6to4 (RFC 3056).
const EMBEDDING: [(&str, u32); 4] = [
    ("::ffff:0:0/96", 96),
    ("::/96", 96),
    ("64:ff9b::/96", 96),
    ("2002::/16", 16),
];

/// The destinations to which the proxy may forward.
#[derive(Clone, Debug)]
pub struct Policy {
    non_public: Vec<IpNet>,
    embedding: Vec<(Ipv6Net, u32)>,
    allow: Vec<IpNet>,
}

impl Policy {
    /// Creates a policy that allows the public Internet and the prefixes in `allow`.
    pub fn new(allow: &[IpNet]) -> Self {
        let net = |text: &&str| text.parse().expect("constant prefixes are valid");
        let embedding =
            |(text, bit): &(&str, u32)| (text.parse().expect("constant prefixes are valid"), *bit);
        Self {
            non_public: NON_PUBLIC.iter().map(net).collect(),
            embedding: EMBEDDING.iter().map(embedding).collect(),
            allow: allow.to_vec(),
        }
    }

    /// Returns true if the proxy may forward to `address`.
    pub fn allows(&self, address: IpAddr) -> bool {
        let contains = |nets: &[IpNet], ip: IpAddr| nets.iter().any(|net| net.contains(&ip));
        if contains(&self.allow, address) {
            return true;
        }
        if contains(&self.non_public, address) {
            return false;
        }
        match address {
            IpAddr::V4(_) => true,
            IpAddr::V6(v6) => self.embedded_v4(v6).is_none_or(|v4| self.allows(v4.into())),
        }
    }

    fn embedded_v4(&self, v6: Ipv6Addr) -> Option<Ipv4Addr> {
        let (_, bit) = self.embedding.iter().find(|(net, _)| net.contains(&v6))?;
        Some(Ipv4Addr::from_bits((v6.to_bits() >> (96 - bit)) as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denies_non_public_addresses_in_every_notation() {
        let policy = Policy::new(&[]);
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "169.254.169.254",
            "100.64.0.1",
            "255.255.255.255",
            "224.0.0.1",
            "::",
            "::1",
            "fe80::1",
            "fd00::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::10.0.0.1",
            "64:ff9b::10.0.0.1",
            "2002:a00:1::1",
        ] {
            assert!(!policy.allows(address.parse().unwrap()), "{address}");
        }
        for address in [
            "8.8.8.8",
            "192.0.2.1",
            "2001:db8::1",
            "2606:4700::1",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2002:808:808::1",
        ] {
            assert!(policy.allows(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn allows_exactly_the_configured_prefixes() {
        let policy = Policy::new(&["10.0.0.0/24".parse().unwrap()]);
        assert!(policy.allows("10.0.0.9".parse().unwrap()));
        assert!(!policy.allows("10.0.1.9".parse().unwrap()));
        assert!(policy.allows("::ffff:10.0.0.9".parse().unwrap()));
    }
}
