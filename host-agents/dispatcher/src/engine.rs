//! From a packet out of a tunnel to the packets that go into others: no sockets, no clock.

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

use crate::choice::{Targets, choose, flight_hash};
use crate::config::Limits;
use crate::counts::{Counts, Outcome, add};
use crate::flights::Flights;
use crate::outbox::Outbox;
use crate::recent::Recent;
use crate::view::View;

/// One worker's: what it knows of flights is its own.
#[derive(Debug)]
pub struct Engine {
    reader: Reader,
    /// The CRYPTO stream of a flight that may well be over with its first packet.
    fresh: Crypto,
    flights: Flights,
    recent: Recent,
    keys: RandomState,
    counts: Arc<Counts>,
    answer: [u8; answer::MAX],
}

/// Where a flight's datagram came from.
#[derive(Clone, Copy)]
struct Arrival {
    peer: IpAddr,
    origin: NonZeroU8,
    flow: Flow,
}

/// What a flight's service says of it: where to, or why not.
type Decision = Result<Targets, (Outcome, Option<Refusal>)>;

impl Engine {
    /// One that counts in `counts`, within `limits`.
    pub fn new(limits: &Limits, counts: Arc<Counts>) -> Self {
        Self {
            reader: Reader::default(),
            fresh: Crypto::default(),
            flights: Flights::new(limits.unfinished),
            recent: Recent::new(limits.recent),
            keys: RandomState::default(),
            counts,
            answer: [0; answer::MAX],
        }
    }

    /// Takes what `peer` sent through a tunnel; what goes out because of it is in `out` then.
    #[inline]
    pub fn take(&mut self, view: Option<&View>, peer: IpAddr, packet: &[u8], out: &mut Outbox) {
        let before = out.entries().len();
        let outcome = match view {
            Some(view) if view.is_peer(peer) => self.handle(view, peer, packet, out),
            Some(_) => Outcome::Peer,
            None => Outcome::NoTable,
        };
        self.counts.count(outcome);
        add(&self.counts.sent, (out.entries().len() - before) as u64);
        self.counts
            .unfinished
            .store(self.flights.len() as u64, Relaxed);
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
        if !is_client(client) {
            return Outcome::Source;
        }
        let first = match Reader::inspect(inner.payload) {
            Ok(first) => first,
            Err(Fault::UnknownVersion) => return self.negotiate(arrival, inner.payload, out),
            Err(fault) => return Outcome::FirstFlight(fault),
        };
        let key = self.key(client, first.dcid);
        if let Some(targets) = self.recent.get(key)
            && view.are_live(&targets)
        {
            forward(&targets, packet, out);
            return Outcome::Forwarded;
        }
        let known = self.flights.crypto(key);
        let is_new = known.is_none();
        let crypto = known.unwrap_or_else(|| {
            self.fresh.clear();
            &mut self.fresh
        });
        let read = self.reader.read(inner.payload, crypto);
        let decision = match read.and_then(|()| hello::read(crypto.prefix())) {
            Ok(Some(hello)) => {
                if hello.ech {
                    add(&self.counts.ech, 1);
                }
                decide(view, &arrival, first.dcid, hello)
            }
            Ok(None) => return self.hold(key, is_new, first.kind, packet),
            Err(fault) => {
                let refusal = match fault {
                    Fault::BadHello => Refusal::Hello,
                    Fault::CryptoTooLong => Refusal::TooLong,
                    // Anybody can send what does not open, so it does not end the flight of somebody else.
                    _ => return Outcome::FirstFlight(fault),
                };
                Err((Outcome::FirstFlight(fault), Some(refusal)))
            }
        };
        let outcome = match decision {
            Ok(targets) => {
                for held in self.flights.held(key) {
                    forward(&targets, held, out);
                }
                forward(&targets, packet, out);
                self.recent.put(key, targets);
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
            self.flights.remove(key);
        }
        outcome
    }

    /// A number for the flight, which nobody outside can make another's: never 0.
    #[inline]
    fn key(&self, client: SocketAddr, dcid: &[u8]) -> u64 {
        self.keys.hash_one((client, dcid)) | 1
    }

    fn hold(&mut self, key: u64, is_new: bool, kind: Kind, packet: &[u8]) -> Outcome {
        if is_new {
            // Early data may come before its Initial; an Initial without CRYPTO is of a flight that was answered long ago.
            if kind == Kind::Initial && self.fresh.is_empty() {
                return Outcome::NothingSaid;
            }
            if self.flights.begin(key, &self.fresh) {
                add(&self.counts.evicted, 1);
            }
        }
        if self.flights.hold(key, packet) {
            Outcome::Held
        } else {
            Outcome::NoRoom
        }
    }

    /// Answers an unknown version by those that are known, if the client paid for the answer.
    fn negotiate(&mut self, arrival: Arrival, datagram: &[u8], out: &mut Outbox) -> Outcome {
        if datagram.len() < MIN_DATAGRAM {
            return Outcome::FirstFlight(Fault::SmallDatagram);
        }
        let invariants = match Invariants::parse(datagram) {
            Ok(invariants) => invariants,
            Err(fault) => return Outcome::FirstFlight(fault),
        };
        let random = self.keys.hash_one(invariants.scid) as u8;
        let n = answer::version_negotiation(&invariants, random & 0x3f, &mut self.answer);
        self.answer(arrival, n, out);
        Outcome::FirstFlight(Fault::UnknownVersion)
    }

    /// Sends the first `n` bytes of the answer back by the way that the datagram came.
    fn answer(&self, arrival: Arrival, n: usize, out: &mut Outbox) {
        let payload = &self.answer[..n];
        let head = Head::new(
            Encapsulation::Vxlan,
            arrival.origin,
            arrival.flow.reversed(),
            0,
            payload,
        );
        let head = head.expect("the flow came out of a tunnel, and answers are short");
        out.push(arrival.peer, &head, payload);
    }
}

#[inline]
fn forward(targets: &Targets, packet: &[u8], out: &mut Outbox) {
    for end in targets.iter() {
        out.push(end, packet, &[]);
    }
}

/// Whether an answer could reach this source at all.
#[inline]
fn is_client(source: SocketAddr) -> bool {
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
        .is_some_and(|alpn| alpn.iter().any(|protocol| service.speaks(protocol)))
    {
        return Err((Outcome::Alpn, Some(Refusal::Alpn)));
    }
    let client = arrival.flow.source;
    let hash = flight_hash(client, dcid);
    let targets = choose(view, service, arrival.origin, client.ip(), hash);
    if !targets.is_empty() {
        return Ok(targets);
    }
    if arrival.origin != view.table.site && service.redundancy > 1 {
        // A close would end what another site's replica may have begun.
        return Err((Outcome::NoServerForCopy, None));
    }
    Err((Outcome::NoServer, Some(Refusal::NoServer)))
}
