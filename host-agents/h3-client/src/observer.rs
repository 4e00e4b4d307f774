// SPDX-License-Identifier: Apache-2.0
//! The observer of a connection's packets and of its handshake.

use std::sync::Arc;

use frontage_quic::relocate::Relocator;
use frontage_quic::session::{
    Config, Handshake, Incoming, MissingInitialSuite, Negotiated, Nonce, Observer, Outgoing, Packet,
};
use frontage_quic_wire::parameters::Parameters;
use rustls::ClientConfig;

use crate::preferred_address::find_preferred;
use crate::socket::Socket;

/// The observer of one connection. The default one does nothing.
#[derive(Clone, Default)]
pub struct ClientObserver {
    /// Redirected to the server's preferred address with the packet that completes the handshake, which authenticates the
    /// address, so that no further packet takes the detour of the first flight (Artemis, section 3.5). RFC 9000, section 9,
    /// requires clients to wait for confirmation.
    pub early: Option<Socket>,
    /// Receives addresses that the server announces during the connection.
    pub relocator: Option<Relocator>,
}

impl ClientObserver {
    /// Creates a TLS configuration for connections that this observer observes. It gives access to the server's transport
    /// parameters, which noq's own hides.
    pub fn tls_session(
        self,
        tls: ClientConfig,
    ) -> Result<Config<ClientConfig, Self>, MissingInitialSuite> {
        let parameters = match self.relocator {
            Some(_) => Relocator::parameters(),
            None => Parameters::new(),
        };
        Config::client(tls, parameters, move || Arc::new(self.clone()))
    }
}

impl Observer for ClientObserver {
    fn on_sent(&self, _: &Packet<'_>) {}

    fn on_received(&self, _: &Packet<'_>) {}

    fn on_handshake_complete(&self, agreed: &Negotiated<'_>) {
        if let Some(relocator) = &self.relocator {
            relocator.on_handshake_complete(agreed);
        }
        if let Some(socket) = &self.early
            && let Some(address) = find_preferred(agreed.peer, socket.nominal_server())
        {
            socket.redirect(address);
        }
    }

    fn on_peer_parameters(&self, peer: &mut Parameters) -> bool {
        let relocator = self.relocator.as_ref();
        relocator.is_some_and(|relocator| relocator.on_peer_parameters(peer))
    }

    fn seal(&self, outgoing: &mut Outgoing<'_>) -> Nonce {
        match &self.relocator {
            Some(relocator) => relocator.seal(outgoing),
            None => Nonce {
                path: outgoing.path,
                number: outgoing.number,
            },
        }
    }

    fn on_opened(&self, incoming: &mut Incoming<'_>) {
        if let Some(relocator) = &self.relocator {
            relocator.on_opened(incoming);
        }
    }
}

/// Returns the server's transport parameters, if TLS uses [`ClientObserver::tls_session`].
pub fn peer_parameters(quic: &noq::Connection) -> Option<Parameters> {
    let handshake = quic
        .handshake_data()?
        .downcast::<Handshake<ClientObserver>>()
        .ok()?;
    Some(handshake.peer)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv6Addr, SocketAddr};

    use frontage_quic::session::TrafficSecrets;

    use super::*;
    use crate::preferred_address::PREFERRED_ADDRESS;

    #[tokio::test]
    async fn completed_handshake_redirects_the_socket() {
        let [server, preferred]: [SocketAddr; 2] =
            ["[::1]:443", "[2001:db8::7]:443"].map(|text| text.parse().unwrap());
        let socket = Socket::new(server).unwrap();
        let follower = ClientObserver {
            early: Some(socket.clone()),
            relocator: None,
        };
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
