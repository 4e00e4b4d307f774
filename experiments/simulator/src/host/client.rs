//! A client: opens connections and asks.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use frontage_transport::tcp::Connection;

use super::{Host, Purpose, effort};
use crate::flows::Effort;
use crate::frame::Way;
use crate::network::Network;
use crate::scenario::ConnectionUse;

/// Ephemeral ports are from here to the last.
const FIRST_PORT: u16 = 1024;

#[derive(Debug, Default)]
pub(super) struct Client {
    /// Persistent connections without a flow, by workload and server.
    idle: BTreeMap<(u32, SocketAddr), Vec<u32>>,
    /// Counts through ports, and through addresses when the ports are through.
    next_socket: u64,
}

/// What a client's connection is used for.
#[derive(Debug)]
pub(super) struct Asking {
    workload: u32,
    persistent: bool,
    flow: Option<usize>,
    /// What had been received and spent before this flow.
    received_before: u64,
    effort_before: Effort,
}

impl Client {
    pub(super) fn advance(
        &mut self,
        socket: u32,
        asking: &mut Asking,
        tcp: &mut Connection,
        way: &Way,
        network: &mut Network,
    ) {
        let Some(flow) = asking.flow else {
            return;
        };
        let complete = network
            .flows
            .receive(flow, tcp.readable() - asking.received_before);
        if !complete && !tcp.is_closed() {
            return;
        }
        asking.flow = None;
        network
            .flows
            .end(&way.from, flow, effort(tcp) - asking.effort_before);
        if !asking.persistent {
            tcp.finish();
        } else if complete && !tcp.is_closed() {
            let idle = self.idle.entry((asking.workload, way.to));
            idle.or_default().push(socket);
        }
    }
}

impl Host {
    /// Asks a server for a flow that has begun, over a connection of this workload. A flow for which there is no port left fails.
    pub fn ask(
        &mut self,
        flow: usize,
        workload: u32,
        to: SocketAddr,
        use_of: ConnectionUse,
        network: &mut Network,
    ) {
        let persistent = use_of == ConnectionUse::Persistent;
        let socket = match self.take_idle(workload, to).filter(|_| persistent) {
            Some(socket) => socket,
            None => {
                let Some(local) = self.free_socket(to) else {
                    return network.flows.fail(flow);
                };
                let tcp = Connection::connect(&self.config, self.rng.next() as u32, network.now);
                let asking = Asking {
                    workload,
                    persistent,
                    flow: None,
                    received_before: 0,
                    effort_before: Effort::default(),
                };
                self.insert(tcp, local, to, Purpose::Asking(asking))
            }
        };
        let it = &mut self.sockets[socket as usize];
        if let Purpose::Asking(asking) = &mut it.purpose {
            asking.flow = Some(flow);
            asking.received_before = it.tcp.readable();
            asking.effort_before = effort(&it.tcp);
        }
        it.tcp.write(network.flows.ask(it.way.from, flow));
        self.advance(socket, network);
    }

    /// A persistent connection without a flow. Those that have been closed meanwhile are forgotten.
    fn take_idle(&mut self, workload: u32, to: SocketAddr) -> Option<u32> {
        let idle = self.client.idle.get_mut(&(workload, to))?;
        while let Some(socket) = idle.pop() {
            let usable = |it: &super::Socket| {
                matches!(&it.purpose, Purpose::Asking(asking) if asking.workload == workload && asking.flow.is_none())
                    && !it.tcp.is_closed()
            };
            if self.sockets.get(socket as usize).is_some_and(usable) {
                return Some(socket);
            }
        }
        None
    }

    /// An address and port of ours from which no connection goes there.
    fn free_socket(&mut self, to: SocketAddr) -> Option<SocketAddr> {
        let ports = u64::from(u16::MAX - FIRST_PORT) + 1;
        let of_family = || {
            self.addresses
                .iter()
                .filter(|address| address.is_ipv4() == to.is_ipv4())
        };
        let addresses = of_family().count() as u64;
        for _ in 0..ports * addresses {
            let n = self.client.next_socket;
            self.client.next_socket += 1;
            let address = of_family().nth((n / ports % addresses) as usize)?;
            let local = SocketAddr::new(*address, FIRST_PORT + (n % ports) as u16);
            if !self.by_ends.contains_key(&(to, local)) {
                return Some(local);
            }
        }
        None
    }
}
