// SPDX-License-Identifier: Apache-2.0
//! Migration to the server's preferred address (RFC 9000, section 9.6), which noq does not do itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::{Buf as _, Bytes};
use frontage_quic_wire::parameters::{Parameters, SERVICE_TTL, decode_integer};
use noq::Endpoint;

use crate::socket::Socket;

/// The transport parameter preferred_address (RFC 9000, section 18.2).
pub const PREFERRED_ADDRESS: u64 = 0x0d;

/// Returns the preferred address of the same family as `known`, if `parameters` have one.
pub fn find_preferred(parameters: &Parameters, known: SocketAddr) -> Option<SocketAddr> {
    parse_address(&parameter(parameters, PREFERRED_ADDRESS)?, known.is_ipv6())
}

/// Returns for how many seconds new connections may use the server's preferred address.
pub fn service_ttl(parameters: &Parameters) -> Option<u64> {
    decode_integer(&parameter(parameters, SERVICE_TTL)?)
}

/// Returns the value of a transport parameter.
fn parameter(parameters: &Parameters, id: u64) -> Option<Bytes> {
    let mut parameters = parameters.iter();
    parameters.find_map(|(this, value)| (*this == id).then(|| value.clone()))
}

/// Parses the address of one family from a preferred_address parameter.
///
/// The value starts with an IPv4 address and port, then an IPv6 address and port. A port of 0 marks an absent address.
fn parse_address(mut value: &[u8], ipv6: bool) -> Option<SocketAddr> {
    let v4 = (value.try_get_u32().ok()?, value.try_get_u16().ok()?);
    let v6 = (value.try_get_u128().ok()?, value.try_get_u16().ok()?);
    let (ip, port): (IpAddr, u16) = if ipv6 {
        (Ipv6Addr::from_bits(v6.0).into(), v6.1)
    } else {
        (Ipv4Addr::from_bits(v4.0).into(), v4.1)
    };
    (port > 0).then(|| (ip, port).into())
}

/// Migrates to `address` as soon as the handshake is confirmed (RFC 9000, section 9.6.1).
pub async fn migrate(
    endpoint: Endpoint,
    quic: noq::Connection,
    socket: Socket,
    address: SocketAddr,
) {
    if quic.handshake_confirmed().await.is_ok() {
        // Makes noq switch to the next connection id, the one from the preferred_address parameter, and send a PING.
        endpoint.handle_network_change(None);
        socket.redirect(address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_preferred_address_of_each_family() {
        let mut value = vec![0; 6];
        value.extend("2001:db8::7".parse::<Ipv6Addr>().unwrap().octets());
        value.extend(443u16.to_be_bytes());
        value.extend([4, 1, 2, 3, 4]);
        value.extend([9; 16]);
        let expected = "[2001:db8::7]:443".parse().unwrap();
        assert_eq!(parse_address(&value, true), Some(expected));
        assert_eq!(parse_address(&value, false), None);
        value[..6].copy_from_slice(&[192, 0, 2, 1, 0, 80]);
        let expected = "192.0.2.1:80".parse().unwrap();
        assert_eq!(parse_address(&value, false), Some(expected));
        assert_eq!(parse_address(&value[..20], true), None);
    }
}
