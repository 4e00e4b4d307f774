// SPDX-License-Identifier: Apache-2.0
//! A host: connections behind one interface, which takes their segments one at a time, in turn.

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
use softswitch_pipeline::{Nanos, Rng};

use crate::agenda::Event;
use crate::agent::mask;
use crate::flows::Effort;
use crate::frame::{self, Body, Contents, Fault, Way};
use crate::network::{Frame, Network, Outgoing};
use crate::scenario::{self, Protocol};
use client::{Asking, Client};
use server::{Answering, Server};
use transport::Transport;

/// Why a host dropped frames.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct HostDrops {
    /// Neither TCP nor QUIC.
    pub other_protocol: u64,
    /// Cut short, or at odds with its lengths.
    pub malformed: u64,
    /// A wrong checksum.
    pub checksum: u64,
    /// Of another's Ethernet or IP address.
    pub not_mine: u64,
    /// Of no connection, and beginning none.
    pub no_connection: u64,
}

impl HostDrops {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.other_protocol + self.malformed + self.checksum + self.not_mine + self.no_connection
    }
}

/// A host.
#[derive(Debug)]
pub struct Host {
    /// Name of the host.
    pub name: String,
    /// Counters of dropped packets.
    pub dropped: HostDrops,
    number: u32,
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
    /// Sockets by the ends of their connections, which they know themselves.
    by_ends: HashTable<u32>,
    /// Sockets that may have something to send, each once.
    ready: VecDeque<u32>,
    /// Answers to what belongs to no connection.
    resets: VecDeque<(Way, Body)>,
}

/// The other's address and port, and ours.
type Ends = (Protocol, SocketAddr, SocketAddr);

/// Configuration of a host's connections.
#[derive(Debug, Clone)]
pub struct Config {
    /// Those over TCP.
    pub tcp: tcp::Config,
    /// Those over QUIC, if there are any.
    pub quic: Option<quic::Config>,
}

/// A connection and what it is used for.
#[derive(Debug)]
struct Socket {
    transport: Transport,
    way: Way,
    /// When the next timer event is planned.
    timer: Option<Nanos>,
    ready: bool,
    purpose: Purpose,
}

#[derive(Debug)]
enum Purpose {
    Asking(Asking),
    Answering(Box<Answering>),
}

/// Name and addresses of a host.
#[derive(Debug)]
pub struct Identity {
    /// Name of the host.
    pub name: String,
    /// Number of the host.
    pub number: u32,
    /// MAC address of the interface.
    pub mac: [u8; 6],
    /// MAC address of the default gateway.
    pub gateway_mac: [u8; 6],
    /// IP addresses of the host.
    pub addresses: Vec<IpAddr>,
    /// The channel by which it sends.
    pub channel: u32,
    /// The host removes cookies from received packets.
    pub masks: bool,
}

impl Host {
    /// A host, which answers if it has a server.
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
            by_ends: HashTable::new(),
            ready: VecDeque::new(),
            resets: VecDeque::new(),
        }
    }

    /// Connections that are not closed.
    pub fn connections(&self) -> usize {
        self.sockets.len()
    }

    /// Returns the effort that a connection has spent on losses, if it exists.
    pub fn effort(&self, socket: u32) -> Option<Effort> {
        self.sockets.get(socket as usize).map(Socket::effort)
    }

    /// A frame has come in.
    pub fn receive(&mut self, frame: Frame, network: &mut Network) {
        let contents = frame::read(&frame.bytes);
        network.reuse(frame.bytes);
        match contents {
            Ok(contents) if self.is_mine(&contents.way) => self.take(&contents, network),
            Ok(_) => self.dropped.not_mine += 1,
            Err(Fault::OtherProtocol) => self.dropped.other_protocol += 1,
            Err(Fault::Malformed) => self.dropped.malformed += 1,
            Err(Fault::Checksum) => self.dropped.checksum += 1,
        }
    }

    /// The channel is free again.
    pub fn free(&mut self, network: &mut Network) {
        self.pump(network);
    }

    /// Processes a timer event. The timer may have been postponed, or belong to an earlier connection.
    pub fn timer(&mut self, socket: u32, network: &mut Network) {
        let Some(it) = self.sockets.get_mut(socket as usize) else {
            return;
        };
        if it.timer != Some(network.now) {
            return;
        }
        it.timer = None;
        if it.transport.timeout().is_some_and(|at| at <= network.now) {
            it.transport.on_timeout(network.now);
        }
        self.advance(socket, network);
    }

    fn is_mine(&self, way: &Way) -> bool {
        way.to_mac == self.mac && self.addresses.contains(&way.to.ip())
    }

    fn take(&mut self, contents: &Contents, network: &mut Network) {
        let Contents { way, mut body } = *contents;
        if let Body::Tcp { segment, ck: true } = &mut body
            && self.masks
            && let Some(ts) = &mut segment.ts
        {
            ts.val = mask(ts.val);
        }
        let ends = (protocol(&body), way.from, way.to);
        if let Some(socket) = self.find(&ends) {
            network.tally.delivered += 1;
            let it = &mut self.sockets[socket as usize];
            if let (Some(server), Purpose::Answering(answering)) = (&self.server, &mut it.purpose) {
                server.incoming(answering, &mut body);
            }
            it.transport.receive(network.now, &body);
            self.advance(socket, network);
        } else if let Some(transport) = self.accept(&way, &body, network.now) {
            network.tally.delivered += 1;
            let socket = self.insert(transport, ends, Purpose::Answering(Box::default()));
            self.advance(socket, network);
        } else {
            self.dropped.no_connection += 1;
            if let Body::Tcp { segment, .. } = body
                && let Some(segment) = segment.reset()
            {
                let reset = Body::Tcp { segment, ck: false };
                self.resets.push_back((self.way(way.to, way.from), reset));
                self.pump(network);
            }
        }
    }

    /// The connection that a client begins.
    fn accept(&mut self, way: &Way, body: &Body, now: Nanos) -> Option<Transport> {
        let port = way.to.port();
        let server = self.server.as_mut().filter(|server| server.port == port)?;
        match body {
            Body::Tcp { segment, .. } => {
                let begins = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK);
                let isn = self.rng.next() as u32;
                begins.then(|| {
                    Transport::Tcp(Connection::accept(&self.config.tcp, isn, segment, now))
                })
            }
            Body::Quic(datagram) => {
                let id = server.connection_id(self.rng.next());
                Transport::accept_quic(self.config.quic.as_ref()?, id, datagram, now)
            }
        }
    }

    fn way(&self, from: SocketAddr, to: SocketAddr) -> Way {
        Way {
            from_mac: self.mac,
            to_mac: self.gateway_mac,
            from,
            to,
        }
    }

    fn insert(&mut self, transport: Transport, ends: Ends, purpose: Purpose) -> u32 {
        let (_, remote, local) = ends;
        let way = self.way(local, remote);
        let socket = self.sockets.insert(Socket {
            transport,
            way,
            timer: None,
            ready: false,
            purpose,
        }) as u32;
        let sockets = &self.sockets;
        self.by_ends.insert_unique(hash(&ends), socket, |&other| {
            hash(&sockets[other as usize].ends())
        });
        socket
    }

    /// Something has happened to a connection: lets the application see it, and sends what there is.
    fn advance(&mut self, socket: u32, network: &mut Network) {
        let it = &mut self.sockets[socket as usize];
        match (&mut it.purpose, &mut self.server) {
            (Purpose::Asking(asking), _) => {
                let client = &mut self.client;
                client.advance(socket, asking, &mut it.transport, &it.way, network);
            }
            (Purpose::Answering(answering), Some(server)) => {
                let socket = (self.number, socket);
                server.advance(socket, answering, &mut it.transport, &it.way, network);
            }
            (Purpose::Answering(_), None) => unreachable!("only a server accepts"),
        }
        it.plan_timer(self.number, socket, network);
        if !it.ready {
            it.ready = true;
            self.ready.push_back(socket);
        }
        self.pump(network);
    }

    /// Sends while the channel is free, a segment of each connection in turn.
    fn pump(&mut self, network: &mut Network) {
        while network.channels[self.channel as usize].is_free(network.now) {
            if let Some((way, reset)) = self.resets.pop_front() {
                self.send(&way, &reset, 0, network);
            } else if let Some(socket) = self.ready.pop_front() {
                self.send_from(socket, network);
            } else {
                return;
            }
        }
        if !self.ready.is_empty() || !self.resets.is_empty() {
            network.plan_free(self.channel);
        }
    }

    fn send_from(&mut self, socket: u32, network: &mut Network) {
        let it = &mut self.sockets[socket as usize];
        let Some(mut body) = it.transport.poll_transmit(network.now) else {
            it.ready = false;
            if it.transport.is_closed() {
                self.remove(socket);
            }
            return;
        };
        let (mut way, sent) = (it.way, it.transport.sent());
        let rank = match (&self.server, &mut it.purpose) {
            (Some(server), Purpose::Answering(answering)) => {
                server.outgoing(answering, sent, &mut body, &mut way, network)
            }
            _ => 0,
        };
        it.plan_timer(self.number, socket, network);
        self.ready.push_back(socket);
        self.send(&way, &body, rank, network);
    }

    fn find(&self, ends: &Ends) -> Option<u32> {
        let is_theirs = |&socket: &u32| self.sockets[socket as usize].ends() == *ends;
        self.by_ends.find(hash(ends), is_theirs).copied()
    }

    fn remove(&mut self, socket: u32) {
        let Socket { way, purpose, .. } = {
            let removed = self.sockets.remove(socket as usize);
            let place = hash(&removed.ends());
            if let Ok(entry) = self.by_ends.find_entry(place, |&other| other == socket) {
                entry.remove();
            }
            removed
        };
        if let Purpose::Asking(_) = purpose {
            self.client.closed(&way.from);
        }
    }

    fn send(&self, way: &Way, body: &Body, rank: u32, network: &mut Network) {
        let mut bytes = network.buffer();
        frame::write(&mut bytes, way, body);
        network.tally.sent += 1;
        let length = bytes.len() as u32;
        let queue = &mut network.channels[self.channel as usize].queue;
        let frame = Outgoing::Frame(Frame { bytes, rank });
        // The channel is free and nothing waits, so it is taken, and at once.
        if queue.enqueue(network.now, frame, length, rank).is_ok()
            && let Some(started) = queue.start(network.now)
            && let Outgoing::Frame(frame) = started.packet
        {
            network.transmit(self.channel, started.slot, frame);
        }
    }
}

fn hash(ends: &Ends) -> u64 {
    FxBuildHasher.hash_one(ends)
}

impl Socket {
    fn ends(&self) -> Ends {
        let protocol = match self.transport {
            Transport::Tcp(_) => Protocol::Tcp,
            Transport::Quic(_) => Protocol::Quic,
        };
        (protocol, self.way.to, self.way.from)
    }

    fn effort(&self) -> Effort {
        self.transport.effort()
    }

    fn plan_timer(&mut self, host: u32, connection: u32, network: &mut Network) {
        if let Some(at) = self.transport.timeout()
            && self.timer.is_none_or(|planned| at < planned)
        {
            // A timer that was due while the interface was busy is due now.
            let at = at.max(network.now);
            self.timer = Some(at);
            network.agenda.plan(at, Event::Timer { host, connection });
        }
    }
}

fn protocol(body: &Body) -> Protocol {
    match body {
        Body::Tcp { .. } => Protocol::Tcp,
        Body::Quic(_) => Protocol::Quic,
    }
}
