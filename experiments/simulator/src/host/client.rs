// SPDX-License-Identifier: Apache-2.0
//! A client: opens connections and asks.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use frontage_cookie::cid;
use frontage_transport::tcp::Connection;
use rustc_hash::FxHashSet;
use softswitch_pipeline::Nanos;

use super::transport::Transport;
use super::{Host, Purpose};
use crate::flows::Effort;
use crate::frame::{ConnectionId, Way};
use crate::network::Network;
use crate::scenario::{ConnectionUse, Protocol, Workload};

/// Ephemeral ports are from here to the last.
const FIRST_PORT: u16 = 1024;
/// Configuration 7 of a connection id.
const NO_SERVER: u8 = 0xff;

#[derive(Debug, Default)]
pub(super) struct Client {
    /// Persistent connections without a flow, by workload and server.
    idle: BTreeMap<(u32, SocketAddr), Vec<u32>>,
    /// Counts through ports, and through addresses when the ports are through.
    next_socket: u64,
    /// Addresses and ports in use. Each is used once, since it names the flow that it asks for.
    used: FxHashSet<SocketAddr>,
}

/// State of a client's connection.
#[derive(Debug)]
pub(super) struct Asking {
    workload: u32,
    persistent: bool,
    flow: Option<usize>,
    /// Bytes received and effort spent before this flow.
    received_before: u64,
    effort_before: Effort,
}

impl Client {
    pub(super) fn closed(&mut self, local: &SocketAddr) {
        self.used.remove(local);
    }

    pub(super) fn advance(
        &mut self,
        socket: u32,
        asking: &mut Asking,
        transport: &mut Transport,
        way: &Way,
        network: &mut Network,
    ) {
        let Some(flow) = asking.flow else {
            return;
        };
        let complete = network
            .flows
            .receive(flow, transport.received() - asking.received_before);
        if !complete && !transport.is_closed() {
            return;
        }
        asking.flow = None;
        network
            .flows
            .end(&way.from, flow, transport.effort() - asking.effort_before);
        if !asking.persistent {
            transport.finish(true);
        } else if complete && !transport.is_closed() {
            let idle = self.idle.entry((asking.workload, way.to));
            idle.or_default().push(socket);
        }
    }
}

impl Host {
    /// Asks `to` for a flow that has begun, of the workload of this number. A flow for which there is no port left fails.
    pub fn ask(
        &mut self,
        flow: usize,
        number: u32,
        workload: &Workload,
        to: SocketAddr,
        network: &mut Network,
    ) {
        let persistent = workload.connection == ConnectionUse::Persistent;
        let socket = match self.take_idle(number, to).filter(|_| persistent) {
            Some(socket) => socket,
            None => {
                let Some(local) = self.free_socket(to) else {
                    return network.flows.fail(flow);
                };
                let transport = self.connect(workload.protocol, network.now);
                let asking = Asking {
                    workload: number,
                    persistent,
                    flow: None,
                    received_before: 0,
                    effort_before: Effort::default(),
                };
                let ends = (workload.protocol, to, local);
                self.insert(transport, ends, Purpose::Asking(asking))
            }
        };
        let it = &mut self.sockets[socket as usize];
        if let Purpose::Asking(asking) = &mut it.purpose {
            asking.flow = Some(flow);
            asking.received_before = it.transport.received();
            asking.effort_before = it.transport.effort();
        }
        it.transport.write(network.flows.ask(it.way.from, flow));
        self.advance(socket, network);
    }

    fn connect(&mut self, protocol: Protocol, now: Nanos) -> Transport {
        let random = self.rng.next();
        match (protocol, &self.config.quic) {
            (Protocol::Quic, Some(config)) => {
                Transport::connect_quic(config, Self::id(random), Self::id(!random))
            }
            _ => Transport::Tcp(Connection::connect(&self.config.tcp, random as u32, now)),
        }
    }

    /// A connection id that names no server: its first octet says so (docs/cookie.md).
    fn id(random: u64) -> ConnectionId {
        let mut id = [0; cid::LEN];
        id[0] = NO_SERVER;
        id[1..9].copy_from_slice(&random.to_be_bytes());
        id
    }

    /// Takes an idle persistent connection, and discards closed ones.
    fn take_idle(&mut self, workload: u32, to: SocketAddr) -> Option<u32> {
        let idle = self.client.idle.get_mut(&(workload, to))?;
        while let Some(socket) = idle.pop() {
            let usable = |it: &super::Socket| {
                matches!(&it.purpose, Purpose::Asking(asking) if asking.workload == workload && asking.flow.is_none())
                    && !it.transport.is_closed()
            };
            if self.sockets.get(socket as usize).is_some_and(usable) {
                return Some(socket);
            }
        }
        None
    }

    /// An address and port of ours that is not in use, of the family of the other's.
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
            if self.client.used.insert(local) {
                return Some(local);
            }
        }
        None
    }
}
