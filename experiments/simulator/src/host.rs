//! A host: TCP connections behind one interface, which takes their segments one at a time, in turn.

mod client;
mod server;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use frontage_transport::tcp::{Config, Connection, Flags, Segment};
use rustc_hash::FxHashMap;
use serde::Serialize;
use slab::Slab;
use softswitch_pipeline::{Nanos, Rng};

use crate::agenda::Event;
use crate::agent::mask;
use crate::flows::Effort;
use crate::frame::{self, Contents, Fault, Way};
use crate::network::{Frame, Network, Outgoing};
use crate::scenario;
use client::{Asking, Client};
use server::{Answering, Server};

/// Why a host dropped frames.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct HostDrops {
    /// No TCP.
    pub not_tcp: u64,
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
        self.not_tcp + self.malformed + self.checksum + self.not_mine + self.no_connection
    }
}

/// A host.
#[derive(Debug)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// What it dropped.
    pub dropped: HostDrops,
    number: u32,
    mac: [u8; 6],
    gateway_mac: [u8; 6],
    addresses: Vec<IpAddr>,
    channel: u32,
    config: Config,
    /// Draws initial sequence numbers.
    rng: Rng,
    client: Client,
    server: Option<Server>,
    masks: bool,
    sockets: Slab<Socket>,
    /// By the other's address and port, and ours.
    by_ends: FxHashMap<(SocketAddr, SocketAddr), u32>,
    /// Sockets that may have something to send, each once.
    ready: VecDeque<u32>,
    /// Answers to what belongs to no connection.
    resets: VecDeque<(Way, Segment)>,
}

/// A connection and what it is used for.
#[derive(Debug)]
struct Socket {
    tcp: Connection,
    way: Way,
    /// When the next timer event is planned.
    timer: Option<Nanos>,
    ready: bool,
    purpose: Purpose,
}

#[derive(Debug)]
enum Purpose {
    Asking(Asking),
    Answering(Answering),
}

/// Who a host is in the network.
#[derive(Debug)]
pub struct Identity {
    /// Its name.
    pub name: String,
    /// Its number.
    pub number: u32,
    /// Its interface's address.
    pub mac: [u8; 6],
    /// Whom it sends everything to.
    pub gateway_mac: [u8; 6],
    /// Its IP addresses.
    pub addresses: Vec<IpAddr>,
    /// The channel by which it sends.
    pub channel: u32,
    /// Whether it takes cookies off what comes in.
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
            by_ends: FxHashMap::default(),
            ready: VecDeque::new(),
            resets: VecDeque::new(),
        }
    }

    /// Connections that are not closed.
    pub fn connections(&self) -> usize {
        self.sockets.len()
    }

    /// What a connection has spent on loss, if it is there.
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
            Err(Fault::NotTcp) => self.dropped.not_tcp += 1,
            Err(Fault::Malformed) => self.dropped.malformed += 1,
            Err(Fault::Checksum) => self.dropped.checksum += 1,
        }
    }

    /// The channel is free again.
    pub fn free(&mut self, network: &mut Network) {
        self.pump(network);
    }

    /// A timer event of a connection has come, which may have been put off meanwhile, or be another's.
    pub fn timer(&mut self, socket: u32, network: &mut Network) {
        let Some(it) = self.sockets.get_mut(socket as usize) else {
            return;
        };
        if it.timer != Some(network.now) {
            return;
        }
        it.timer = None;
        if it.tcp.timeout().is_some_and(|at| at <= network.now) {
            it.tcp.on_timeout(network.now);
        }
        self.advance(socket, network);
    }

    fn is_mine(&self, way: &Way) -> bool {
        way.to_mac == self.mac && self.addresses.contains(&way.to.ip())
    }

    fn take(&mut self, contents: &Contents, network: &mut Network) {
        let Contents {
            way,
            mut segment,
            ck,
        } = *contents;
        if ck
            && self.masks
            && let Some(ts) = &mut segment.ts
        {
            ts.val = mask(ts.val);
        }
        match self.by_ends.get(&(way.from, way.to)) {
            Some(&socket) => {
                network.tally.delivered += 1;
                let it = &mut self.sockets[socket as usize];
                if let (Some(server), Purpose::Answering(answering)) =
                    (&self.server, &mut it.purpose)
                {
                    server.incoming(answering, &mut segment);
                }
                it.tcp.receive(network.now, &segment);
                self.advance(socket, network);
            }
            None if self.accepts(&way, &segment) => {
                network.tally.delivered += 1;
                let tcp =
                    Connection::accept(&self.config, self.rng.next() as u32, &segment, network.now);
                let socket = self.insert(
                    tcp,
                    way.to,
                    way.from,
                    Purpose::Answering(Answering::default()),
                );
                self.advance(socket, network);
            }
            None => {
                self.dropped.no_connection += 1;
                if let Some(reset) = segment.reset() {
                    self.resets.push_back((self.way(way.to, way.from), reset));
                    self.pump(network);
                }
            }
        }
    }

    fn accepts(&self, way: &Way, segment: &Segment) -> bool {
        let begins = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK);
        let server = self.server.as_ref();
        begins && server.is_some_and(|server| server.port == way.to.port())
    }

    fn way(&self, from: SocketAddr, to: SocketAddr) -> Way {
        Way {
            from_mac: self.mac,
            to_mac: self.gateway_mac,
            from,
            to,
        }
    }

    fn insert(
        &mut self,
        tcp: Connection,
        local: SocketAddr,
        remote: SocketAddr,
        purpose: Purpose,
    ) -> u32 {
        let way = self.way(local, remote);
        let socket = self.sockets.insert(Socket {
            tcp,
            way,
            timer: None,
            ready: false,
            purpose,
        }) as u32;
        self.by_ends.insert((remote, local), socket);
        socket
    }

    /// Something has happened to a connection: lets the application see it, and sends what there is.
    fn advance(&mut self, socket: u32, network: &mut Network) {
        let it = &mut self.sockets[socket as usize];
        match (&mut it.purpose, &mut self.server) {
            (Purpose::Asking(asking), _) => {
                let client = &mut self.client;
                client.advance(socket, asking, &mut it.tcp, &it.way, network);
            }
            (Purpose::Answering(answering), Some(server)) => {
                let socket = (self.number, socket);
                server.advance(socket, answering, &mut it.tcp, &it.way, network);
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
            if let Some((way, segment)) = self.resets.pop_front() {
                self.send(&way, &segment, false, 0, network);
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
        let Some(mut segment) = it.tcp.poll_transmit(network.now) else {
            it.ready = false;
            if it.tcp.is_closed() {
                self.remove(socket);
            }
            return;
        };
        let (ck, rank) = match (&self.server, &mut it.purpose) {
            (Some(server), Purpose::Answering(answering)) => {
                server.outgoing(answering, &mut segment)
            }
            _ => (false, 0),
        };
        it.plan_timer(self.number, socket, network);
        let way = it.way;
        self.ready.push_back(socket);
        self.send(&way, &segment, ck, rank, network);
    }

    fn remove(&mut self, socket: u32) {
        let Socket { way, purpose, .. } = self.sockets.remove(socket as usize);
        self.by_ends.remove(&(way.to, way.from));
        if let (Some(server), Purpose::Answering(mut answering)) = (&mut self.server, purpose) {
            server.closed(&mut answering);
        }
    }

    fn send(&self, way: &Way, segment: &Segment, ck: bool, rank: u8, network: &mut Network) {
        let mut bytes = network.buffer();
        frame::write(&mut bytes, way, segment, ck);
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

impl Socket {
    fn effort(&self) -> Effort {
        effort(&self.tcp)
    }

    fn plan_timer(&mut self, host: u32, connection: u32, network: &mut Network) {
        if let Some(at) = self.tcp.timeout()
            && self.timer.is_none_or(|planned| at < planned)
        {
            // A timer that was due while the interface was busy is due now.
            let at = at.max(network.now);
            self.timer = Some(at);
            network.agenda.plan(at, Event::Timer { host, connection });
        }
    }
}

fn effort(tcp: &Connection) -> Effort {
    let statistics = tcp.statistics();
    Effort {
        retransmitted: statistics.retransmitted,
        timeouts: statistics.timeouts,
    }
}
