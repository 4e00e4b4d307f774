// SPDX-License-Identifier: Apache-2.0
//! Two TCP endpoints and the path between them, in simulated time.

#![allow(dead_code, reason = "each test program uses a part")]

pub mod bottleneck;

use std::collections::{BTreeMap, BTreeSet};

use frontage_transport::tcp::{Config, Connection, Flags, Segment};
use frontage_transport::{MILLISECOND, Nanos};

/// Direction of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    ToServer,
    ToClient,
}

/// Delay of each copy of a segment; empty if the segment is lost.
pub type Fate = Vec<Nanos>;

/// Decides about a segment by its direction, its number in that direction (from 0) and its content. It may mark the segment.
pub trait Channel: FnMut(Direction, usize, &mut Segment) -> Fate {}
impl<T: FnMut(Direction, usize, &mut Segment) -> Fate> Channel for T {}

/// A segment as it was sent.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    pub at: Nanos,
    pub direction: Direction,
    pub segment: Segment,
}

pub struct Testbed<C> {
    pub now: Nanos,
    pub client: Connection,
    /// Absent until a SYN has arrived.
    pub server: Option<Connection>,
    pub log: Vec<Sent>,
    server_config: Config,
    server_writes: u64,
    server_isn: u32,
    client_isn: u32,
    channel: C,
    in_flight: BTreeSet<(Nanos, u64)>,
    segments: BTreeMap<u64, (Direction, Segment)>,
    counts: [usize; 2],
    next: u64,
    /// Stream offsets that have arrived: the end of the data without gaps, and the ranges beyond.
    arrived: [(u64, BTreeMap<u64, u64>); 2],
}

/// Creates a lossless path with a one-direction delay.
pub fn delay(delay: Nanos) -> impl Channel {
    move |_, _, _: &mut Segment| vec![delay]
}

impl<C: Channel> Testbed<C> {
    /// Creates a testbed. The client connects at time 0. The server writes `server_writes` bytes and finishes.
    pub fn new(client: &Config, server: &Config, server_writes: u64, channel: C) -> Self {
        Self::with_isns(client, server, server_writes, (1_000, 2_000_000), channel)
    }

    pub fn with_isns(
        client: &Config,
        server: &Config,
        server_writes: u64,
        isns: (u32, u32),
        channel: C,
    ) -> Self {
        let mut testbed = Self {
            now: 0,
            client: Connection::connect(client, isns.0, 0),
            server: None,
            log: Vec::new(),
            server_config: server.clone(),
            server_writes,
            server_isn: isns.1,
            client_isn: isns.0,
            channel,
            in_flight: BTreeSet::new(),
            segments: BTreeMap::new(),
            counts: [0; 2],
            next: 0,
            arrived: Default::default(),
        };
        testbed.pump();
        testbed
    }

    /// Returns the server, which must have received a SYN.
    pub fn server(&mut self) -> &mut Connection {
        self.server.as_mut().expect("the server has received a SYN")
    }

    /// Sends everything that both ends have to send.
    pub fn pump(&mut self) {
        while let Some(segment) = self.client.poll_transmit(self.now) {
            self.send(Direction::ToServer, segment);
        }
        while let Some(segment) = self
            .server
            .as_mut()
            .and_then(|server| server.poll_transmit(self.now))
        {
            self.send(Direction::ToClient, segment);
        }
    }

    fn send(&mut self, direction: Direction, mut segment: Segment) {
        self.log.push(Sent {
            at: self.now,
            direction,
            segment,
        });
        let count = &mut self.counts[direction as usize];
        for after in (self.channel)(direction, *count, &mut segment) {
            self.in_flight.insert((self.now + after, self.next));
            self.segments.insert(self.next, (direction, segment));
            self.next += 1;
        }
        *count += 1;
    }

    /// Advances to the next arrival or timeout; returns false if nothing is pending.
    pub fn step(&mut self) -> bool {
        let arrival = self.in_flight.first().map(|(at, _)| *at);
        let client = self.client.timeout();
        let server = self.server.as_ref().and_then(Connection::timeout);
        let Some(at) = [arrival, client, server].into_iter().flatten().min() else {
            return false;
        };
        self.now = self.now.max(at);
        if arrival == Some(at) {
            let (_, id) = self.in_flight.pop_first().expect("there is an arrival");
            let (direction, segment) = self.segments.remove(&id).expect("there is an arrival");
            self.arrive(direction, &segment);
        } else if client == Some(at) {
            self.client.on_timeout(self.now);
        } else {
            let now = self.now;
            self.server().on_timeout(now);
        }
        self.pump();
        true
    }

    fn arrive(&mut self, direction: Direction, segment: &Segment) {
        let origin = match direction {
            Direction::ToServer => self.client_isn,
            Direction::ToClient => self.server_isn,
        };
        if segment.len > 0 {
            // The streams of the tests are shorter than 4 GiB, so their sequence numbers are unique.
            let start = u64::from(segment.seq.wrapping_sub(origin).wrapping_sub(1));
            let (prefix, beyond) = &mut self.arrived[direction as usize];
            let end = beyond.entry(start).or_default();
            *end = (*end).max(start + u64::from(segment.len));
            while let Some(first) = beyond.first_entry().filter(|first| first.key() <= prefix) {
                *prefix = (*prefix).max(first.remove());
            }
        }
        match (direction, &mut self.server) {
            (Direction::ToServer, None) if segment.flags.has(Flags::SYN) => {
                let mut server =
                    Connection::accept(&self.server_config, self.server_isn, segment, self.now);
                if self.server_writes > 0 {
                    server.write(self.server_writes);
                    server.finish();
                }
                self.server = Some(server);
            }
            (Direction::ToServer, None) => {}
            (Direction::ToServer, Some(server)) => {
                server.receive(self.now, segment);
                assert!(
                    server.readable() <= self.arrived[direction as usize].0,
                    "the server reads data that has not arrived"
                );
            }
            (Direction::ToClient, _) => {
                self.client.receive(self.now, segment);
                assert!(
                    self.client.readable() <= self.arrived_in_order(direction),
                    "the client reads data that has not arrived"
                );
            }
        }
    }

    /// Returns the bytes of a stream that have arrived without a gap, by the testbed's own count.
    pub fn arrived_in_order(&self, direction: Direction) -> u64 {
        self.arrived[direction as usize].0
    }

    /// Steps while `condition` holds, until `until` at the latest.
    pub fn run_while(&mut self, until: Nanos, condition: impl Fn(&Self) -> bool) {
        while condition(self) && self.now < until && self.step() {}
    }

    /// Steps until no event is left, until `until` at the latest.
    pub fn run(&mut self, until: Nanos) {
        self.run_while(until, |_| true);
    }

    /// Returns the segments with payload in one direction: time, stream offset, length.
    pub fn data(&self, direction: Direction) -> Vec<(Nanos, u64, u32)> {
        let origin = if direction == Direction::ToServer {
            self.client_isn
        } else {
            self.server_isn
        };
        let sent = self
            .log
            .iter()
            .filter(|sent| sent.direction == direction && sent.segment.len > 0);
        sent.map(|sent| {
            let offset = sent.segment.seq.wrapping_sub(origin).wrapping_sub(1);
            (sent.at, u64::from(offset), sent.segment.len)
        })
        .collect()
    }
}

/// Returns a configuration with round numbers, immediate acknowledgments, and receive windows that never limit.
pub fn plain() -> Config {
    Config {
        mss: 1000,
        congestion: frontage_transport::congestion::Congestion::NewReno,
        delayed_ack: None,
        timestamps: false,
        receive_window: 1 << 28,
        min_rto: 200 * MILLISECOND,
        ..Config::default()
    }
}
