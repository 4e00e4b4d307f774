// SPDX-License-Identifier: Apache-2.0
//! A host: connections that share one interface, which sends their segments one at a time in round-robin order.

mod client;
mod server;
mod transport;

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::net::{IpAddr, SocketAddr};

use frontage_transport::tcp::{Connection, Flags};
use frontage_transport::{quic, tcp};
use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use serde::Serialize;
use slab::Slab;
use softswitch_pipeline::Nanos;
use softswitch_random::Rng;

use crate::agent::mask;
use crate::events::{Event, Timer};
use crate::flows::RecoveryCounts;
use crate::frame::{self, Body, Contents, Endpoints, Fault};
use crate::network::{Frame, Network, Outgoing};
use crate::scenario::{self, Protocol};
use client::{Client, ClientConnection};
use server::{Server, ServerConnection};
use transport::Transport;

/// Why a host dropped frames.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct HostDrops {
    /// Frames that are neither TCP nor QUIC.
    pub other_protocol: u64,
    /// Frames that are truncated or have inconsistent lengths.
    pub malformed: u64,
    /// Frames with a wrong checksum.
    pub checksum: u64,
    /// Frames with the Ethernet or IP address of another host.
    pub not_mine: u64,
    /// Packets that neither belong to a connection nor open one.
    pub no_connection: u64,
}

impl HostDrops {
    /// Returns the sum.
    pub fn total(&self) -> u64 {
        self.other_protocol + self.malformed + self.checksum + self.not_mine + self.no_connection
    }
}

/// A host with its connections.
#[derive(Debug)]
pub struct Host {
    /// Name of the host.
    pub name: String,
    /// Counters of dropped packets.
    pub dropped: HostDrops,
    number: u32,
    node: u32,
    mac: [u8; 6],
    gateway_mac: [u8; 6],
    addresses: Vec<IpAddr>,
    channel: u32,
    config: Config,
    /// Draws initial sequence numbers and connection ids.
    rng: Rng,
    client: Client,
    server: Option<Server>,
    masks: bool,
    sockets: Slab<Socket>,
    /// Socket indices, hashed by the keys of their connections.
    by_key: HashTable<u32>,
    /// Sockets that may have data to send, without duplicates.
    ready: VecDeque<u32>,
    /// RST segments that answer segments without a connection.
    resets: VecDeque<(Endpoints, Body)>,
}

/// Protocol, remote socket address and local socket address.
type ConnectionKey = (Protocol, SocketAddr, SocketAddr);

/// Configuration of a host's connections.
#[derive(Debug, Clone)]
pub struct Config {
    /// Configuration of TCP connections.
    pub tcp: tcp::Config,
    /// Configuration of QUIC connections, if the host supports QUIC.
    pub quic: Option<quic::Config>,
}

/// A connection and its role.
#[derive(Debug)]
struct Socket {
    transport: Transport,
    endpoints: Endpoints,
    /// Time of the next scheduled timer event.
    timer: Option<Nanos>,
    ready: bool,
    role: Role,
}

#[derive(Debug)]
enum Role {
    Client(ClientConnection),
    Server(Box<ServerConnection>),
}

/// Name and addresses of a host.
#[derive(Debug)]
pub struct Identity {
    /// Name of the host.
    pub name: String,
    /// Number of the host in the simulation.
    pub number: u32,
    /// Index of the host in its shard.
    pub node: u32,
    /// MAC address of the interface.
    pub mac: [u8; 6],
    /// MAC address of the default gateway.
    pub gateway_mac: [u8; 6],
    /// IP addresses of the host.
    pub addresses: Vec<IpAddr>,
    /// Index of its sending channel.
    pub channel: u32,
    /// True if the host removes cookies from received packets.
    pub masks: bool,
}

impl Host {
    /// Creates a host. It accepts connections if it has a server.
    pub fn new(
        identity: Identity,
        config: Config,
        rng: Rng,
        server: Option<&scenario::Server>,
    ) -> Self {
        Self {
            name: identity.name,
            dropped: HostDrops::default(),
            number: identity.number,
            node: identity.node,
            mac: identity.mac,
            gateway_mac: identity.gateway_mac,
            addresses: identity.addresses,
            channel: identity.channel,
            config,
            rng,
            client: Client::default(),
            server: server.map(Server::new),
            masks: identity.masks,
            sockets: Slab::new(),
            by_key: HashTable::new(),
            ready: VecDeque::new(),
            resets: VecDeque::new(),
        }
    }

    /// Returns the number of open connections.
    pub fn connections(&self) -> usize {
        self.sockets.len()
    }

    /// Returns the recovery counts of a connection, if it exists.
    pub fn recovery_counts(&self, socket: u32) -> Option<RecoveryCounts> {
        self.sockets
            .get(socket as usize)
            .map(Socket::recovery_counts)
    }

    /// Processes a received frame.
    pub fn receive(&mut self, frame: Frame, network: &mut Network) {
        let contents = frame::read(&frame.bytes);
        network.recycle(frame.bytes);
        match contents {
            Ok(contents) if self.is_mine(&contents.endpoints) => self.process(&contents, network),
            Ok(_) => self.dropped.not_mine += 1,
            Err(Fault::OtherProtocol) => self.dropped.other_protocol += 1,
            Err(Fault::Malformed) => self.dropped.malformed += 1,
            Err(Fault::Checksum) => self.dropped.checksum += 1,
        }
    }

    /// Sends more segments, because the channel is free.
    pub fn on_channel_free(&mut self, network: &mut Network) {
        self.pump(network);
    }

    /// Processes a timer event. The timer may have been postponed, or belong to an earlier connection.
    pub fn timer(&mut self, socket: u32, network: &mut Network) {
        let Some(entry) = self.sockets.get_mut(socket as usize) else {
            return;
        };
        if entry.timer != Some(network.now) {
            return;
        }
        entry.timer = None;
        if entry
            .transport
            .timeout()
            .is_some_and(|at| at <= network.now)
        {
            entry.transport.on_timeout(network.now);
        }
        self.advance(socket, network);
    }

    fn is_mine(&self, endpoints: &Endpoints) -> bool {
        endpoints.to_mac == self.mac && self.addresses.contains(&endpoints.to.ip())
    }

    fn process(&mut self, contents: &Contents, network: &mut Network) {
        let Contents {
            endpoints,
            mut body,
        } = *contents;
        if let Body::Tcp { segment, ck: true } = &mut body
            && self.masks
            && let Some(ts) = &mut segment.ts
        {
            ts.val = mask(ts.val);
        }
        let key = (protocol(&body), endpoints.from, endpoints.to);
        if let Some(socket) = self.find(&key) {
            network.frame_counts.delivered += 1;
            let entry = &mut self.sockets[socket as usize];
            if let (Some(server), Role::Server(connection)) = (&self.server, &mut entry.role) {
                server.incoming(connection, &mut body);
            }
            entry.transport.receive(network.now, &body);
            self.advance(socket, network);
        } else if let Some(transport) = self.accept(&endpoints, &body, network.now) {
            network.frame_counts.delivered += 1;
            let socket = self.insert(transport, key, Role::Server(Box::default()));
            self.advance(socket, network);
        } else {
            self.dropped.no_connection += 1;
            if let Body::Tcp { segment, .. } = body
                && let Some(segment) = segment.reset()
            {
                let reset = Body::Tcp { segment, ck: false };
                self.resets
                    .push_back((self.endpoints(endpoints.to, endpoints.from), reset));
                self.pump(network);
            }
        }
    }

    /// Creates the server's end of a connection that the packet opens.
    fn accept(&mut self, endpoints: &Endpoints, body: &Body, now: Nanos) -> Option<Transport> {
        let port = endpoints.to.port();
        let server = self.server.as_mut().filter(|server| server.port == port)?;
        match body {
            Body::Tcp { segment, .. } => {
                let is_syn = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK);
                let isn = self.rng.next() as u32;
                is_syn.then(|| {
                    Transport::Tcp(Connection::accept(&self.config.tcp, isn, segment, now))
                })
            }
            Body::Quic(datagram) => {
                let id = server.connection_id(self.rng.next());
                Transport::accept_quic(self.config.quic.as_ref()?, id, datagram, now)
            }
        }
    }

    fn endpoints(&self, from: SocketAddr, to: SocketAddr) -> Endpoints {
        Endpoints {
            from_mac: self.mac,
            to_mac: self.gateway_mac,
            from,
            to,
        }
    }

    fn insert(&mut self, transport: Transport, key: ConnectionKey, role: Role) -> u32 {
        let (_, remote, local) = key;
        let endpoints = self.endpoints(local, remote);
        let socket = self.sockets.insert(Socket {
            transport,
            endpoints,
            timer: None,
            ready: false,
            role,
        }) as u32;
        let sockets = &self.sockets;
        self.by_key.insert_unique(hash(&key), socket, |&other| {
            hash(&sockets[other as usize].key())
        });
        socket
    }

    /// Lets the application process the state of a connection that has changed, and sends what is ready.
    fn advance(&mut self, socket: u32, network: &mut Network) {
        let entry = &mut self.sockets[socket as usize];
        match (&mut entry.role, &mut self.server) {
            (Role::Client(connection), _) => {
                let client = &mut self.client;
                client.advance(
                    socket,
                    connection,
                    &mut entry.transport,
                    &entry.endpoints,
                    network,
                );
            }
            (Role::Server(connection), Some(server)) => {
                let socket = (self.number, socket);
                server.advance(
                    socket,
                    connection,
                    &mut entry.transport,
                    &entry.endpoints,
                    network,
                );
            }
            (Role::Server(_), None) => unreachable!("only hosts with a server accept connections"),
        }
        entry.schedule_timer(self.node, socket, network);
        if !entry.ready {
            entry.ready = true;
            self.ready.push_back(socket);
        }
        self.pump(network);
    }

    /// Sends segments in round-robin order while the channel is free.
    fn pump(&mut self, network: &mut Network) {
        while network.channels[self.channel as usize].is_free(network.now) {
            if let Some((endpoints, reset)) = self.resets.pop_front() {
                self.send(&endpoints, &reset, 0, network);
            } else if let Some(socket) = self.ready.pop_front() {
                self.send_from(socket, network);
            } else {
                return;
            }
        }
        if !self.ready.is_empty() || !self.resets.is_empty() {
            network.schedule_free(self.channel);
        }
    }

    fn send_from(&mut self, socket: u32, network: &mut Network) {
        let entry = &mut self.sockets[socket as usize];
        let Some(mut body) = entry.transport.poll_transmit(network.now) else {
            entry.ready = false;
            if entry.transport.is_closed() {
                self.remove(socket);
            }
            return;
        };
        let (mut endpoints, sent) = (entry.endpoints, entry.transport.sent());
        let rank = match (&self.server, &mut entry.role) {
            (Some(server), Role::Server(connection)) => {
                server.outgoing(connection, sent, &mut body, &mut endpoints, network)
            }
            _ => 0,
        };
        entry.schedule_timer(self.node, socket, network);
        self.ready.push_back(socket);
        self.send(&endpoints, &body, rank, network);
    }

    fn find(&self, key: &ConnectionKey) -> Option<u32> {
        let has_key = |&socket: &u32| self.sockets[socket as usize].key() == *key;
        self.by_key.find(hash(key), has_key).copied()
    }

    fn remove(&mut self, socket: u32) {
        let Socket {
            endpoints, role, ..
        } = {
            let removed = self.sockets.remove(socket as usize);
            let key_hash = hash(&removed.key());
            if let Ok(entry) = self.by_key.find_entry(key_hash, |&other| other == socket) {
                entry.remove();
            }
            removed
        };
        if let Role::Client(_) = role {
            self.client.closed(&endpoints.from);
        }
    }

    fn send(&self, endpoints: &Endpoints, body: &Body, rank: u32, network: &mut Network) {
        let mut bytes = network.take_buffer(body.payload_length());
        frame::write(&mut bytes, endpoints, body);
        network.frame_counts.sent += 1;
        let length = bytes.len() as u32;
        let queue = &mut network.channels[self.channel as usize].queue;
        let frame = Outgoing::Frame(Frame { bytes, rank });
        // The channel is free and its queue empty, so the frame is transmitted at once.
        if queue.enqueue(network.now, frame, length, rank).is_ok()
            && let Some(started) = queue.start(network.now)
            && let Outgoing::Frame(frame) = started.packet
        {
            network.transmit(self.channel, started.slot, frame);
        }
    }
}

fn hash(key: &ConnectionKey) -> u64 {
    FxBuildHasher.hash_one(key)
}

impl Socket {
    fn key(&self) -> ConnectionKey {
        let protocol = match self.transport {
            Transport::Tcp(_) => Protocol::Tcp,
            Transport::Quic(_) => Protocol::Quic,
        };
        (protocol, self.endpoints.to, self.endpoints.from)
    }

    fn recovery_counts(&self) -> RecoveryCounts {
        self.transport.recovery_counts()
    }

    fn schedule_timer(&mut self, host: u32, connection: u32, network: &mut Network) {
        if let Some(at) = self.transport.timeout()
            && self.timer.is_none_or(|scheduled| at < scheduled)
        {
            // A timer may have expired while the interface was busy.
            let at = at.max(network.now);
            self.timer = Some(at);
            network
                .events
                .schedule(at, Event::Timer(Timer { host, connection }));
        }
    }
}

fn protocol(body: &Body) -> Protocol {
    match body {
        Body::Tcp { .. } => Protocol::Tcp,
        Body::Quic(_) => Protocol::Quic,
    }
}
