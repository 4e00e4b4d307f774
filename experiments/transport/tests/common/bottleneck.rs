// SPDX-License-Identifier: Apache-2.0
//! Flows that share a link with a drop-tail queue, which may mark packets.

use std::collections::{BTreeMap, VecDeque};

use frontage_transport::tcp::{Config, Connection, Ecn, Segment};
use frontage_transport::{Nanos, SECOND};

/// The link from the clients, which send, to the servers. The reverse path has only the delay.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    /// Bits per second.
    pub rate: u64,
    /// One-way delay.
    pub delay: Nanos,
    /// Queue capacity in packets, without the one being sent.
    pub queue: usize,
    /// Queue length at which arriving ECT packets are marked.
    pub mark_at: Option<usize>,
}

pub struct Flow {
    pub client: Connection,
    pub server: Option<Connection>,
    config: Config,
}

enum Event {
    /// The link has finished sending a packet.
    Free,
    AtServer(usize, Segment),
    AtClient(usize, Segment),
    Start(usize),
}

pub struct Bottleneck {
    pub now: Nanos,
    pub flows: Vec<Flow>,
    pub drops: u64,
    /// Sum of the queue lengths at arrivals, and number of arrivals.
    pub depth: (u64, u64),
    link: Link,
    queue: VecDeque<(usize, Segment)>,
    busy: bool,
    events: BTreeMap<(Nanos, u64), Event>,
    next: u64,
}

impl Bottleneck {
    /// Creates infinite flows, each with its start time.
    pub fn new(link: Link, flows: &[(Config, Nanos)]) -> Self {
        let mut bottleneck = Self {
            now: 0,
            flows: Vec::new(),
            drops: 0,
            depth: (0, 0),
            link,
            queue: VecDeque::new(),
            busy: false,
            events: BTreeMap::new(),
            next: 0,
        };
        for (index, (config, start)) in flows.iter().enumerate() {
            let mut client = Connection::connect(config, 77 * index as u32, *start);
            client.write(1 << 40);
            bottleneck.flows.push(Flow {
                client,
                server: None,
                config: config.clone(),
            });
            bottleneck.schedule(*start, Event::Start(index));
        }
        bottleneck
    }

    fn schedule(&mut self, after: Nanos, event: Event) {
        self.events.insert((self.now + after, self.next), event);
        self.next += 1;
    }

    /// Advances by one event.
    pub fn step(&mut self) {
        let event = self.events.first_key_value().map(|((at, _), _)| *at);
        let mut timers: Option<(Nanos, usize)> = None;
        for (index, flow) in self.flows.iter().enumerate() {
            let server = flow.server.as_ref().and_then(Connection::timeout);
            for at in flow.client.timeout().into_iter().chain(server) {
                timers = Some(timers.map_or((at, index), |first| first.min((at, index))));
            }
        }
        match (event, timers) {
            (event, Some((at, index))) if event.is_none_or(|event| at < event) => {
                self.now = at;
                self.flows[index].client.on_timeout(at);
                if let Some(server) = &mut self.flows[index].server {
                    server.on_timeout(at);
                }
                self.pump(index);
            }
            _ => {
                let ((at, _), event) = self
                    .events
                    .pop_first()
                    .expect("infinite flows always have an event");
                self.now = at;
                self.handle(event);
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Free => {
                self.busy = false;
                self.serve();
            }
            Event::Start(index) => self.pump(index),
            Event::AtServer(index, segment) => {
                let flow = &mut self.flows[index];
                match &mut flow.server {
                    None => {
                        flow.server = Some(Connection::accept(&flow.config, 9, &segment, self.now))
                    }
                    Some(server) => server.receive(self.now, &segment),
                }
                self.pump(index);
            }
            Event::AtClient(index, segment) => {
                self.flows[index].client.receive(self.now, &segment);
                self.pump(index);
            }
        }
    }

    fn pump(&mut self, index: usize) {
        while let Some(segment) = self.flows[index].client.poll_transmit(self.now) {
            self.enqueue(index, segment);
        }
        let now = self.now;
        while let Some(segment) = self.flows[index]
            .server
            .as_mut()
            .and_then(|server| server.poll_transmit(now))
        {
            self.schedule(self.link.delay, Event::AtClient(index, segment));
        }
    }

    fn enqueue(&mut self, index: usize, mut segment: Segment) {
        self.depth = (self.depth.0 + self.queue.len() as u64, self.depth.1 + 1);
        if self
            .link
            .mark_at
            .is_some_and(|mark_at| self.queue.len() >= mark_at)
            && segment.ecn == Ecn::Ect0
        {
            segment.ecn = Ecn::Ce;
        }
        if self.queue.len() >= self.link.queue {
            self.drops += 1;
            return;
        }
        self.queue.push_back((index, segment));
        self.serve();
    }

    fn serve(&mut self) {
        if self.busy {
            return;
        }
        let Some((index, segment)) = self.queue.pop_front() else {
            return;
        };
        self.busy = true;
        let bits = 8 * u64::from(segment.len + segment.header_length() + 20);
        let time = bits * SECOND / self.link.rate;
        self.schedule(time, Event::Free);
        self.schedule(time + self.link.delay, Event::AtServer(index, segment));
    }

    pub fn run(&mut self, until: Nanos) {
        while self.now < until {
            self.step();
        }
    }

    /// Returns the bytes received in order by each flow.
    pub fn readable(&self) -> Vec<u64> {
        self.flows
            .iter()
            .map(|flow| flow.server.as_ref().map_or(0, Connection::readable))
            .collect()
    }
}
