//! The address that a server prefers (RFC 9000, section 9.6), which noq does not go to itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use bytes::{Buf as _, Bytes};
use frontage_quic::parameters::{Parameters, SERVICE_TTL, read_integer};
use frontage_quic::session::{Agreed, Config, Handshake, NoInitialSuite, Observer, Packet};
use noq::Endpoint;
use rustls::ClientConfig;

use crate::socket::Socket;

/// The transport parameter preferred_address (RFC 9000, section 18.2).
const PREFERRED_ADDRESS: u64 = 0x0d;

/// Looks at no packet. Sends a socket to the server's preferred address, if it has one, once the server has proven that it is its own.
pub struct Follower(Option<Socket>);

impl Observer for Follower {
    fn sent(&self, _: &Packet<'_>) {}

    fn received(&self, _: &Packet<'_>) {}

    fn complete(&self, agreed: &Agreed<'_>) {
        if let Some(socket) = &self.0
            && let Some(address) = preferred_in(agreed.peer, socket.server())
        {
            socket.go_to(address);
        }
    }
}

/// A TLS session that tells what address the server prefers; noq's own does not. `at_once` goes there with the packet that completes the handshake, so
/// that nothing more takes the detour of the first flight (Artemis, section 3.5); RFC 9000, section 9, has a client wait for a packet more.
pub fn session(
    tls: ClientConfig,
    at_once: Option<Socket>,
) -> Result<Config<ClientConfig, Follower>, NoInitialSuite> {
    Config::client(tls, Vec::new(), move || Arc::new(Follower(at_once.clone())))
}

/// The server's preferred address of the family of `known`, if it is to be followed and there is one.
pub fn preferred_address(quic: &noq::Connection, known: SocketAddr) -> Option<SocketAddr> {
    preferred_in(&peer(quic)?, known)
}

fn preferred_in(parameters: &Parameters, known: SocketAddr) -> Option<SocketAddr> {
    address_in(&parameter(parameters, PREFERRED_ADDRESS)?, known.is_ipv6())
}

/// What the server says of how long its preferred address holds, in seconds.
pub fn service_ttl(quic: &noq::Connection) -> Option<u64> {
    read_integer(&parameter(&peer(quic)?, SERVICE_TTL)?)
}

/// The server's transport parameters, if TLS is of [`session`].
pub fn peer(quic: &noq::Connection) -> Option<Parameters> {
    let handshake = quic
        .handshake_data()?
        .downcast::<Handshake<Follower>>()
        .ok()?;
    Some(handshake.peer)
}

/// A transport parameter of the server's.
fn parameter(parameters: &Parameters, id: u64) -> Option<Bytes> {
    let mut parameters = parameters.iter();
    parameters.find_map(|(this, value)| (*this == id).then(|| value.clone()))
}

/// An IPv4 address and port, those of IPv6, then what does not matter here; port 0 where there is none.
fn address_in(mut value: &[u8], ipv6: bool) -> Option<SocketAddr> {
    let v4 = (value.try_get_u32().ok()?, value.try_get_u16().ok()?);
    let v6 = (value.try_get_u128().ok()?, value.try_get_u16().ok()?);
    let (ip, port): (IpAddr, u16) = if ipv6 {
        (Ipv6Addr::from_bits(v6.0).into(), v6.1)
    } else {
        (Ipv4Addr::from_bits(v4.0).into(), v4.1)
    };
    (port > 0).then(|| (ip, port).into())
}

/// Goes to `address` as soon as a client may (RFC 9000, section 9.6.1).
pub async fn follow(
    endpoint: Endpoint,
    quic: noq::Connection,
    socket: Socket,
    address: SocketAddr,
) {
    if quic.handshake_confirmed().await.is_ok() {
        // Makes noq take the next connection id, the one that came with the address, and send a PING.
        endpoint.handle_network_change(None);
        socket.go_to(address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frontage_quic::session::TrafficSecrets;

    #[test]
    fn preferred_addresses_are_of_two_families() {
        let mut value = vec![0; 6];
        value.extend("2001:db8::7".parse::<Ipv6Addr>().unwrap().octets());
        value.extend(443u16.to_be_bytes());
        value.extend([4, 1, 2, 3, 4]);
        value.extend([9; 16]);
        let expected = "[2001:db8::7]:443".parse().unwrap();
        assert_eq!(address_in(&value, true), Some(expected));
        assert_eq!(address_in(&value, false), None);
        value[..6].copy_from_slice(&[192, 0, 2, 1, 0, 80]);
        let expected = "192.0.2.1:80".parse().unwrap();
        assert_eq!(address_in(&value, false), Some(expected));
        assert_eq!(address_in(&value[..20], true), None);
    }

    #[tokio::test]
    async fn a_complete_handshake_sends_a_socket_there() {
        let [server, preferred]: [SocketAddr; 2] =
            ["[::1]:443", "[2001:db8::7]:443"].map(|text| text.parse().unwrap());
        let socket = Socket::new(server).unwrap();
        let follower = Follower(Some(socket.clone()));
        let complete = |peer: &Parameters| {
            follower.complete(&Agreed {
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
        assert_eq!(socket.server(), server);
    }
}
