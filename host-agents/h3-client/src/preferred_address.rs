// SPDX-License-Identifier: Apache-2.0
//! Migration to the server's preferred address (RFC 9000, section 9.6), which noq does not do itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use bytes::{Buf as _, Bytes};
use frontage_quic::session::{
    Config, Handshake, MissingInitialSuite, Negotiated, Observer, Packet,
};
use frontage_quic_wire::parameters::{Parameters, SERVICE_TTL, decode_integer};
use noq::Endpoint;
use rustls::ClientConfig;

use crate::socket::Socket;

/// The transport parameter preferred_address (RFC 9000, section 18.2).
const PREFERRED_ADDRESS: u64 = 0x0d;

/// Redirects a socket to the server's preferred address once the handshake is complete, which authenticates the address.
pub struct EarlyMigration(Option<Socket>);

impl Observer for EarlyMigration {
    fn on_sent(&self, _: &Packet<'_>) {}

    fn on_received(&self, _: &Packet<'_>) {}

    fn on_handshake_complete(&self, agreed: &Negotiated<'_>) {
        if let Some(socket) = &self.0
            && let Some(address) = find_preferred(agreed.peer, socket.nominal_server())
        {
            socket.redirect(address);
        }
    }
}

/// Creates a TLS configuration that gives access to the server's transport parameters, which noq's own hides.
///
/// `early` is redirected to the preferred address with the packet that completes the handshake, so that no further packet
/// takes the detour of the first flight (Artemis, section 3.5). RFC 9000, section 9, requires clients to wait for confirmation.
pub fn tls_session(
    tls: ClientConfig,
    early: Option<Socket>,
) -> Result<Config<ClientConfig, EarlyMigration>, MissingInitialSuite> {
    Config::client(tls, Vec::new(), move || {
        Arc::new(EarlyMigration(early.clone()))
    })
}

/// Returns the server's preferred address of the same family as `known`, if TLS uses [`tls_session`] and there is one.
pub fn preferred_address(quic: &noq::Connection, known: SocketAddr) -> Option<SocketAddr> {
    find_preferred(&peer_parameters(quic)?, known)
}

fn find_preferred(parameters: &Parameters, known: SocketAddr) -> Option<SocketAddr> {
    parse_address(&parameter(parameters, PREFERRED_ADDRESS)?, known.is_ipv6())
}

/// Returns for how many seconds new connections may use the server's preferred address.
pub fn service_ttl(quic: &noq::Connection) -> Option<u64> {
    decode_integer(&parameter(&peer_parameters(quic)?, SERVICE_TTL)?)
}

/// Returns the server's transport parameters, if TLS uses [`tls_session`].
pub fn peer_parameters(quic: &noq::Connection) -> Option<Parameters> {
    let handshake = quic
        .handshake_data()?
        .downcast::<Handshake<EarlyMigration>>()
        .ok()?;
    Some(handshake.peer)
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
    use frontage_quic::session::TrafficSecrets;

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

    #[tokio::test]
    async fn completed_handshake_redirects_the_socket() {
        let [server, preferred]: [SocketAddr; 2] =
            ["[::1]:443", "[2001:db8::7]:443"].map(|text| text.parse().unwrap());
        let socket = Socket::new(server).unwrap();
        let follower = EarlyMigration(Some(socket.clone()));
        let complete = |peer: &Parameters| {
            follower.on_handshake_complete(&Negotiated {
                peer,
                suite: 0x1301,
                secrets: TrafficSecrets {
                    client: vec![0; 32],
                    server: vec![0; 32],
                },
            });
        };
        complete(&Vec::new());
        assert_eq!(socket.addresses().unwrap().1, server);
        let mut value = vec![0; 6];
        value.extend("2001:db8::7".parse::<Ipv6Addr>().unwrap().octets());
        value.extend(443u16.to_be_bytes());
        complete(&vec![(PREFERRED_ADDRESS, value.into())]);
        assert_eq!(socket.addresses().unwrap().1, preferred);
        assert_eq!(socket.nominal_server(), server);
    }
}
