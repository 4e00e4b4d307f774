// SPDX-License-Identifier: Apache-2.0
//! A server: it accepts connections, answers requests, and signals its loads.

use frontage_cookie::load::Loads;
use frontage_transport::tcp::Flags;

use super::Host;
use super::transport::Transport;
use crate::agent::{Agent, Responses};
use crate::flows::Answer;
use crate::frame::{Body, ConnectionId, Endpoints};
use crate::network::Network;
use crate::scenario;

#[derive(Debug)]
pub(super) struct Server {
    pub(super) port: u16,
    agent: Agent,
}

/// State of a server's connection.
#[derive(Debug, Default)]
pub(super) struct ServerConnection {
    /// Bytes of answered requests.
    answered: u64,
    /// Number of the flow whose request was answered last; 0 before the first.
    flow: u64,
    responses: Responses,
}

impl Server {
    pub(super) fn new(server: &scenario::Server) -> Self {
        Self {
            port: server.port,
            agent: Agent::new(server),
        }
    }

    pub(super) fn advance(
        &mut self,
        socket: (u32, u32),
        connection: &mut ServerConnection,
        transport: &mut Transport,
        endpoints: &Endpoints,
        network: &mut Network,
    ) {
        if transport.received() == connection.answered {
            return;
        }
        let client = &endpoints.to;
        let request = network.flows.requested_by(client);
        let Some(request) = request.filter(|it| !it.is_answered && it.flow != connection.flow)
        else {
            return;
        };
        if transport.received() < connection.answered + request.bytes {
            return;
        }
        let (host, socket) = socket;
        let answer = Answer {
            host,
            socket,
            recovery: transport.recovery_counts(),
        };
        connection.answered += request.bytes;
        connection.flow = request.flow;
        let rpt = request.rpt.clone();
        self.agent
            .begin(&mut connection.responses, request.response, rpt);
        transport.write(request.response);
        if request.last {
            transport.finish(false);
        }
        network.flows.answer(*client, connection.flow, answer);
    }

    pub(super) fn incoming(&self, connection: &mut ServerConnection, body: &mut Body) {
        self.agent.incoming(&mut connection.responses, body);
    }

    /// Writes the cookie into a packet and returns its rank. `sent` counts the bytes of the connection including this packet.
    pub(super) fn outgoing(
        &self,
        connection: &mut ServerConnection,
        sent: u64,
        body: &mut Body,
        endpoints: &mut Endpoints,
        network: &mut Network,
    ) -> u32 {
        // A SYN-ACK precedes the response.
        let unanswered = match body {
            Body::Tcp { segment, .. } if segment.flags.has(Flags::SYN) => network
                .flows
                .requested_by(&endpoints.to)
                .map_or(0, |request| request.response),
            _ => 0,
        };
        let responses = &mut connection.responses;
        self.agent.outgoing(
            responses,
            sent,
            unanswered,
            body,
            &mut endpoints.from,
            network.now,
        )
    }

    /// Returns a new connection id by which switches find this server.
    pub(super) fn connection_id(&mut self, random: u64) -> ConnectionId {
        self.agent.connection_id(random)
    }
}

impl Host {
    /// Returns the loads of the host's server, if it has one.
    pub fn loads(&self) -> Option<&Loads> {
        self.server.as_ref().map(|server| server.agent.loads())
    }
}
