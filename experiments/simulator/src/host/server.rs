//! A server: accepts connections and answers, and tells its loads.

use frontage_transport::tcp::{Connection, Segment};

use super::{Host, effort};
use crate::agent::{Agent, Loads, Responses};
use crate::frame::Way;
use crate::network::Network;
use crate::scenario;

#[derive(Debug)]
pub(super) struct Server {
    pub(super) port: u16,
    agent: Agent,
}

/// What a server's connection is used for.
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
        tcp: &mut Connection,
        way: &Way,
        network: &mut Network,
    ) {
        self.agent
            .acknowledge(&mut answering.responses, tcp.acknowledged());
        let Some(flow) = network
            .flows
            .asked_by(&way.to)
            .filter(|flow| flow.server.is_none())
        else {
            return;
        };
        if tcp.readable() < answering.answered + flow.request {
            return;
        }
        answering.answered += flow.request;
        flow.server = Some(socket);
        flow.effort = effort(tcp);
        self.agent.begin(&mut answering.responses, flow.size);
        tcp.write(flow.size);
        if flow.last {
            tcp.finish();
        }
    }

    pub(super) fn incoming(&self, answering: &mut Answering, segment: &mut Segment) {
        self.agent.incoming(&mut answering.responses, segment);
    }

    /// Whether the segment now carries a cookie, and its rank.
    pub(super) fn outgoing(&self, answering: &mut Answering, segment: &mut Segment) -> (bool, u8) {
        let rank = self.agent.rank(&answering.responses);
        (self.agent.outgoing(&mut answering.responses, segment), rank)
    }

    pub(super) fn closed(&mut self, answering: &mut Answering) {
        self.agent.close(&mut answering.responses);
    }
}

impl Host {
    /// Its server's loads, if it has one.
    pub fn loads(&self) -> Option<Loads> {
        self.server.as_ref().map(|server| server.agent.loads())
    }
}
