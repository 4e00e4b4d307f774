// SPDX-License-Identifier: Apache-2.0
//! Packet processing: from a packet that arrives through a tunnel to the packets to send. It uses no sockets and no clock.

use std::hash::BuildHasher as _;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU8;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use foldhash::quality::RandomState;
use frontage_first_flight::answer::{self, Refusal};
use frontage_first_flight::hello::{self, Hello};
use frontage_first_flight::packet::{Invariants, Kind};
use frontage_first_flight::{Crypto, Fault, MIN_DATAGRAM, Reader};
use frontage_tunnel::{Encapsulation, Flow, Head, Tunnelled, decode};

use crate::config::Limits;
use crate::outbox::Outbox;
use crate::outcome::{Counters, Outcome, add};
use crate::pending::PendingFlights;
use crate::selection::{flight_hash, select_targets};
use crate::target_cache::TargetCache;
use crate::targets::Targets;
use crate::view::View;

/// The packet processor of one worker, with its own state of flights.
#[derive(Debug)]
pub struct Engine {
    reader: Reader,
    /// CRYPTO stream of a new flight, which often ends with its first packet.
    fresh: Crypto,
    pending: PendingFlights,
    cache: TargetCache,
    key_hasher: RandomState,
    counters: Arc<Counters>,
    answer: [u8; answer::MAX],
}

/// How a datagram arrived.
#[derive(Clone, Copy)]
struct Arrival {
    peer: IpAddr,
    origin: NonZeroU8,
    flow: Flow,
}

/// The targets of a flight, or the outcome and answer if it cannot be forwarded.
type Decision = Result<Targets, (Outcome, Option<Refusal>)>;

impl Engine {
    /// Creates an engine with memory for `limits`, which is allocated at once.
    pub fn new(limits: &Limits, counters: Arc<Counters>) -> Self {
        Self {
            reader: Reader::default(),
            fresh: Crypto::default(),
            pending: PendingFlights::new(limits.unfinished),
            cache: TargetCache::new(limits.recent),
            key_hasher: RandomState::default(),
            counters,
            answer: [0; answer::MAX],
        }
    }

    /// Processes a tunnel packet from `peer`, and adds the packets to send to `out`.
    #[inline]
    pub fn process(&mut self, view: Option<&View>, peer: IpAddr, packet: &[u8], out: &mut Outbox) {
        let before = out.entries().len();
        let outcome = match view {
            Some(view) if view.is_peer(peer) => self.handle(view, peer, packet, out),
            Some(_) => Outcome::UnknownPeer,
            None => Outcome::NoTable,
        };
        self.counters.count(outcome);
        add(&self.counters.sent, (out.entries().len() - before) as u64);
        self.counters
            .unfinished
            .store(self.pending.len() as u64, Relaxed);
    }

    #[inline]
    fn handle(&mut self, view: &View, peer: IpAddr, packet: &[u8], out: &mut Outbox) -> Outcome {
        let Tunnelled { origin, inner } = match decode(Encapsulation::Vxlan, packet) {
            Ok(tunnelled) => tunnelled,
            Err(error) => return Outcome::Tunnel(error),
        };
        let arrival = Arrival {
            peer,
            origin,
            flow: inner.flow,
        };
        let client = inner.flow.source;
        if !is_valid_source(client) {
            return Outcome::InvalidSource;
        }
        let first = match Reader::inspect(inner.payload) {
            Ok(first) => first,
            Err(Fault::UnknownVersion) => return self.negotiate(arrival, inner.payload, out),
            Err(fault) => return Outcome::FirstFlight(fault),
        };
        let key = self.flight_key(client, first.dcid);
        if let Some(targets) = self.cache.get(key)
            && view.has_endpoints(&targets)
        {
            forward(&targets, packet, out);
            return Outcome::Forwarded;
        }
        let pending = self.pending.crypto(key);
        let is_new = pending.is_none();
        let crypto = pending.unwrap_or_else(|| {
            self.fresh.clear();
            &mut self.fresh
        });
        let read = self.reader.read(inner.payload, crypto);
        let decision = match read.and_then(|()| hello::read(crypto.prefix())) {
            Ok(Some(hello)) => {
                if hello.ech {
                    add(&self.counters.ech, 1);
                }
                decide(view, &arrival, first.dcid, hello)
            }
            Ok(None) => return self.hold(key, is_new, first.kind, packet),
            Err(fault) => {
                let refusal = match fault {
                    Fault::BadHello => Refusal::Hello,
                    Fault::CryptoTooLong => Refusal::TooLong,
                    // Anyone can send an undecryptable packet, so it must not end the flight of another client.
                    _ => return Outcome::FirstFlight(fault),
                };
                Err((Outcome::FirstFlight(fault), Some(refusal)))
            }
        };
        let outcome = match decision {
            Ok(targets) => {
                for held in self.pending.held(key) {
                    forward(&targets, held, out);
                }
                forward(&targets, packet, out);
                self.cache.insert(key, targets);
                Outcome::Forwarded
            }
            Err((outcome, refusal)) => {
                if let Some(refusal) = refusal {
                    let n = answer::close(&self.reader, &first, refusal, &mut self.answer);
                    self.answer(arrival, n, out);
                }
                outcome
            }
        };
        if !is_new {
            self.pending.remove(key);
        }
        outcome
    }

    /// Returns the key of a flight: never 0, and keyed so that outsiders cannot cause collisions.
    #[inline]
    fn flight_key(&self, client: SocketAddr, dcid: &[u8]) -> u64 {
        self.key_hasher.hash_one((client, dcid)) | 1
    }

    fn hold(&mut self, key: u64, is_new: bool, kind: Kind, packet: &[u8]) -> Outcome {
        if is_new {
            // Early data may arrive before its Initial. An Initial without CRYPTO data belongs to a flight that was answered
            // long ago.
            if kind == Kind::Initial && self.fresh.is_empty() {
                return Outcome::NoCryptoData;
            }
            if self.pending.insert(key, &self.fresh) {
                add(&self.counters.evicted, 1);
            }
        }
        if self.pending.hold(key, packet) {
            Outcome::Held
        } else {
            Outcome::HoldLimit
        }
    }

    /// Answers an unknown version with Version Negotiation, if the datagram has the minimum length for a first flight.
    fn negotiate(&mut self, arrival: Arrival, datagram: &[u8], out: &mut Outbox) -> Outcome {
        if datagram.len() < MIN_DATAGRAM {
            return Outcome::FirstFlight(Fault::SmallDatagram);
        }
        let invariants = match Invariants::parse(datagram) {
            Ok(invariants) => invariants,
            Err(fault) => return Outcome::FirstFlight(fault),
        };
        let random = self.key_hasher.hash_one(invariants.scid) as u8;
        let n = answer::version_negotiation(&invariants, random & 0x3f, &mut self.answer);
        self.answer(arrival, n, out);
        Outcome::FirstFlight(Fault::UnknownVersion)
    }

    /// Sends the first `n` bytes of the answer back through the tunnel of the datagram.
    fn answer(&self, arrival: Arrival, n: usize, out: &mut Outbox) {
        let payload = &self.answer[..n];
        let head = Head::new(
            Encapsulation::Vxlan,
            arrival.origin,
            arrival.flow.reversed(),
            0,
            payload,
        );
        let head = head.expect("the flow was decapsulated, and answers are short");
        out.push(arrival.peer, &head, payload);
    }
}

#[inline]
fn forward(targets: &Targets, packet: &[u8], out: &mut Outbox) {
    for endpoint in targets.iter() {
        out.push(endpoint, packet, &[]);
    }
}

/// Returns true if an answer could reach this source.
#[inline]
fn is_valid_source(source: SocketAddr) -> bool {
    let ip = source.ip();
    let broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    source.port() != 0
        && !(ip.is_unspecified() || ip.is_multicast() || ip.is_loopback() || broadcast)
}

#[inline]
fn decide(view: &View, arrival: &Arrival, dcid: &[u8], hello: Hello<'_>) -> Decision {
    let Some(name) = hello.name else {
        return Err((Outcome::MissingName, Some(Refusal::Name)));
    };
    let Some(service) = view.table.service(name) else {
        return Err((Outcome::UnknownName, Some(Refusal::Name)));
    };
    if !hello
        .alpn
        .is_some_and(|alpn| alpn.iter().any(|protocol| service.supports(protocol)))
    {
        return Err((Outcome::Alpn, Some(Refusal::Alpn)));
    }
    let client = arrival.flow.source;
    let hash = flight_hash(client, dcid);
    let targets = select_targets(view, service, arrival.origin, client.ip(), hash);
    if !targets.is_empty() {
        return Ok(targets);
    }
    if arrival.origin != view.table.site && service.redundancy > 1 {
        // A close would end the connection that another site's replica may have accepted.
        return Err((Outcome::NoServerForCopy, None));
    }
    Err((Outcome::NoServer, Some(Refusal::NoServer)))
}
