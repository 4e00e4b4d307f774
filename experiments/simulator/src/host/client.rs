// SPDX-License-Identifier: Apache-2.0
//! A client: it opens connections and sends requests.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use frontage_cookie::cid;
use frontage_transport::tcp::Connection;
use rustc_hash::FxHashSet;
use softswitch_pipeline::Nanos;

use super::transport::Transport;
use super::{Host, Role};
use crate::flows::RecoveryCounts;
use crate::frame::{ConnectionId, Endpoints};
use crate::network::Network;
use crate::scenario::{ConnectionUse, Protocol, Workload};

/// First ephemeral port; the last one is 65535.
const FIRST_PORT: u16 = 1024;
/// First octet of a connection id that does not name a server: configuration 7.
const NO_SERVER: u8 = 0xff;

#[derive(Debug, Default)]
pub(super) struct Client {
    /// Persistent connections without a flow, by workload and server.
    idle: BTreeMap<(u32, SocketAddr), Vec<u32>>,
    /// Counter over all ports of the first address, then of the next one.
    next_socket: u64,
    /// Addresses and ports in use. Each is used by one connection only, because it identifies the requested flow.
    used: FxHashSet<SocketAddr>,
}

/// State of a client's connection.
#[derive(Debug)]
pub(super) struct ClientConnection {
    workload: u32,
    persistent: bool,
    flow: Option<usize>,
    /// Bytes that the connection had received before this flow.
    received_before: u64,
    /// Recovery counts of the connection before this flow.
    recovery_before: RecoveryCounts,
}

impl Client {
    pub(super) fn closed(&mut self, local: &SocketAddr) {
        self.used.remove(local);
    }

    pub(super) fn advance(
        &mut self,
        socket: u32,
        connection: &mut ClientConnection,
        transport: &mut Transport,
        endpoints: &Endpoints,
        network: &mut Network,
    ) {
        let Some(flow) = connection.flow else {
            return;
        };
        let complete = network
            .flows
            .receive(flow, transport.received() - connection.received_before);
        if !complete && !transport.is_closed() {
            return;
        }
        connection.flow = None;
        network.flows.end(
            endpoints.from,
            flow,
            network.now,
            transport.recovery_counts() - connection.recovery_before,
        );
        if !connection.persistent {
            transport.finish(true);
        } else if complete && !transport.is_closed() {
            let idle = self.idle.entry((connection.workload, endpoints.to));
            idle.or_default().push(socket);
        }
    }
}

impl Host {
    /// Sends the request of a new flow of workload `number` to the server `to`. The flow fails if all ports are in use.
    pub fn start_flow(
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
                    return network.flows.fail(flow, network.now);
                };
                let transport = self.connect(workload.protocol, network.now);
                let connection = ClientConnection {
                    workload: number,
                    persistent,
                    flow: None,
                    received_before: 0,
                    recovery_before: RecoveryCounts::default(),
                };
                let key = (workload.protocol, to, local);
                self.insert(transport, key, Role::Client(connection))
            }
        };
        let entry = &mut self.sockets[socket as usize];
        if let Role::Client(connection) = &mut entry.role {
            connection.flow = Some(flow);
            connection.received_before = entry.transport.received();
            connection.recovery_before = entry.transport.recovery_counts();
        }
        entry
            .transport
            .write(network.flows.request(entry.endpoints.from, flow));
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

    /// Returns a connection id that does not name a server, according to its first octet (docs/cookie.md).
    fn id(random: u64) -> ConnectionId {
        let mut id = [0; cid::LEN];
        id[0] = NO_SERVER;
        id[1..9].copy_from_slice(&random.to_be_bytes());
        id
    }

    /// Removes and returns an idle persistent connection, and discards closed ones.
    fn take_idle(&mut self, workload: u32, to: SocketAddr) -> Option<u32> {
        let idle = self.client.idle.get_mut(&(workload, to))?;
        while let Some(socket) = idle.pop() {
            let usable = |entry: &super::Socket| {
                matches!(&entry.role, Role::Client(connection) if connection.workload == workload && connection.flow.is_none())
                    && !entry.transport.is_closed()
            };
            if self.sockets.get(socket as usize).is_some_and(usable) {
                return Some(socket);
            }
        }
        None
    }

    /// Returns an unused local address and port of the same family as `to`.
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
