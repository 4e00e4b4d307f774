// SPDX-License-Identifier: Apache-2.0
//! A server: accepts connections and answers, and tells its loads.

use frontage_cookie::load::Loads;
use frontage_transport::tcp::Flags;

use super::Host;
use super::transport::Transport;
use crate::agent::{Agent, Responses};
use crate::frame::{Body, ConnectionId, Way};
use crate::network::Network;
use crate::scenario;

#[derive(Debug)]
pub(super) struct Server {
    pub(super) port: u16,
    agent: Agent,
}

/// State of a server's connection.
#[derive(Debug, Default)]
pub(super) struct Answering {
    /// Bytes of the requests answered.
    answered: u64,
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
        answering: &mut Answering,
        transport: &mut Transport,
        way: &Way,
        network: &mut Network,
    ) {
        let Some(flow) = network
            .flows
            .asked_by(&way.to)
            .filter(|flow| flow.server.is_none())
        else {
            return;
        };
        if transport.received() < answering.answered + flow.request {
            return;
        }
        answering.answered += flow.request;
        flow.server = Some(socket);
        flow.effort = transport.effort();
        let rpt = flow.rpt.take();
        self.agent.begin(&mut answering.responses, flow.size, rpt);
        transport.write(flow.size);
        if flow.last {
            transport.finish(false);
        }
    }

    pub(super) fn incoming(&self, answering: &mut Answering, body: &mut Body) {
        self.agent.incoming(&mut answering.responses, body);
    }

    /// Writes the cookie into what leaves, with which the connection has sent so many bytes in all; gives its rank.
    pub(super) fn outgoing(
        &self,
        answering: &mut Answering,
        sent: u64,
        body: &mut Body,
        way: &mut Way,
        network: &mut Network,
    ) -> u32 {
        // With a SYN, nothing has been answered yet.
        let asked = match body {
            Body::Tcp { segment, .. } if segment.flags.has(Flags::SYN) => {
                network.flows.asked_by(&way.to).map_or(0, |flow| flow.size)
            }
            _ => 0,
        };
        let responses = &mut answering.responses;
        self.agent
            .outgoing(responses, sent, asked, body, &mut way.from, network.now)
    }

    /// A new id by which a switch finds this server.
    pub(super) fn connection_id(&mut self, random: u64) -> ConnectionId {
        self.agent.connection_id(random)
    }
}

impl Host {
    /// Its server's loads, if it has one.
    pub fn loads(&self) -> Option<&Loads> {
        self.server.as_ref().map(|server| server.agent.loads())
    }
}
