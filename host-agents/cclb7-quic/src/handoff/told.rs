//! What a real server was told of where a client is.

use std::net::SocketAddr;

use frontage_handoff::grant::Grant;
use frontage_handoff::lend::Event;
use frontage_handoff::message::ToServer;

/// By the grant, or by the last Moved.
pub struct Told {
    client: SocketAddr,
    /// What the client takes the balancer for.
    server: SocketAddr,
}

impl Told {
    /// By the grant.
    pub fn new(grant: &Grant) -> Self {
        Self {
            client: grant.client,
            server: grant.server,
        }
    }

    /// What it is to be told now, if the client is elsewhere. Nobody says when it takes the balancer for another `server`, as it does once it uses the address of
    /// its cookie; but then its acknowledgements make an event.
    pub fn follow(&mut self, server: SocketAddr, event: Option<&Event>) -> Option<ToServer> {
        let client = match event {
            Some(Event::Moved { client, .. }) => *client,
            _ => self.client,
        };
        if (client, server) == (self.client, self.server) {
            return None;
        }
        *self = Self { client, server };
        Some(ToServer::Moved { client, server })
    }
}
