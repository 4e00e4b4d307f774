// SPDX-License-Identifier: Apache-2.0
//! The reasons for rejecting a packet. Each has a name, under which metrics count it.

/// Why a tunnelled packet cannot be decoded, or a payload cannot be encapsulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Error {
    /// Shorter than the tunnel's own headers.
    TunnelShort,
    /// VXLAN without a valid network identifier (flag I, RFC 7348, 5).
    VniAbsent,
    /// A GRE version other than 0, or one of RFC 1701's routing fields (RFC 2784, 2.2).
    GreVersion,
    /// GRE without a key (RFC 2890).
    KeyAbsent,
    /// The GRE checksum is wrong.
    GreChecksum,
    /// The network identifier or key is not a site id, 1 to 255.
    Origin,
    /// The inner packet is neither IPv4 nor IPv6, for example because it has a VLAN tag (RFC 7348, 6.1).
    EtherType,
    /// The version in the inner IP header differs from the tunnel header's protocol type.
    Version,
    /// The inner packet ends before its own length, or within a header.
    InnerShort,
    /// The inner IPv4 header's length or checksum is wrong.
    Ipv4Header,
    /// The inner packet is a fragment, so it may lack the ports.
    Fragment,
    /// The inner packet is not UDP, or has IPv6 extension headers.
    Protocol,
    /// The inner UDP length contradicts the length of the IP packet.
    UdpLength,
    /// The inner UDP checksum is wrong, or absent over IPv6.
    UdpChecksum,
    /// Encapsulation: source and destination are of different address families.
    Families,
    /// Encapsulation: the payload does not fit an IP packet.
    TooLong,
}

impl Error {
    /// All errors, in the order of their discriminants.
    pub const ALL: [Self; 16] = [
        Self::TunnelShort,
        Self::VniAbsent,
        Self::GreVersion,
        Self::KeyAbsent,
        Self::GreChecksum,
        Self::Origin,
        Self::EtherType,
        Self::Version,
        Self::InnerShort,
        Self::Ipv4Header,
        Self::Fragment,
        Self::Protocol,
        Self::UdpLength,
        Self::UdpChecksum,
        Self::Families,
        Self::TooLong,
    ];

    /// Return the name of the error in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TunnelShort => "tunnel_short",
            Self::VniAbsent => "vni_absent",
            Self::GreVersion => "gre_version",
            Self::KeyAbsent => "key_absent",
            Self::GreChecksum => "gre_checksum",
            Self::Origin => "origin",
            Self::EtherType => "ether_type",
            Self::Version => "version",
            Self::InnerShort => "inner_short",
            Self::Ipv4Header => "ipv4_header",
            Self::Fragment => "fragment",
            Self::Protocol => "protocol",
            Self::UdpLength => "udp_length",
            Self::UdpChecksum => "udp_checksum",
            Self::Families => "families",
            Self::TooLong => "too_long",
        }
    }
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

impl core::error::Error for Error {}
