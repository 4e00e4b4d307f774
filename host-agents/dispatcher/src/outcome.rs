// SPDX-License-Identifier: Apache-2.0
//! Outcomes of datagrams: each datagram has exactly one, which is named and counted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use frontage_first_flight::Fault;
use frontage_tunnel::Error;

/// Outcome of a datagram that arrived on the tunnel socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Forwarded to its targets.
    Forwarded,
    /// Held until the service of its flight is known.
    Held,
    /// Refused: no service has the name in the ClientHello.
    UnknownName,
    /// Refused: the ClientHello has no name.
    MissingName,
    /// Refused: the service supports none of the client's application protocols.
    Alpn,
    /// Refused: no server accepts the flight.
    NoServer,
    /// Dropped: no server accepts the flight, but another site has a copy.
    NoServerForCopy,
    /// Dropped: the controller has not sent a table yet.
    NoTable,
    /// Dropped: the sender of the tunnel packet is not a peer.
    UnknownPeer,
    /// Dropped: the client's source address or port is invalid.
    InvalidSource,
    /// Dropped: the first packet of a flight contains no CRYPTO data.
    NoCryptoData,
    /// Dropped: the flight has reached its limit of held packets.
    HoldLimit,
    /// Dropped: the tunnel packet is malformed.
    Tunnel(Error),
    /// The packet is not a readable first flight. An unknown version is answered with Version Negotiation, and a faulty
    /// ClientHello is refused with a close.
    FirstFlight(Fault),
}

const OWN: usize = 12;
const ALL: usize = OWN + Error::ALL.len() + Fault::ALL.len();

impl Outcome {
    const OWN: [Self; OWN] = [
        Self::Forwarded,
        Self::Held,
        Self::UnknownName,
        Self::MissingName,
        Self::Alpn,
        Self::NoServer,
        Self::NoServerForCopy,
        Self::NoTable,
        Self::UnknownPeer,
        Self::InvalidSource,
        Self::NoCryptoData,
        Self::HoldLimit,
    ];

    /// Iterates over all outcomes.
    pub fn all() -> impl Iterator<Item = Self> {
        let tunnel = Error::ALL.into_iter().map(Self::Tunnel);
        let flight = Fault::ALL.into_iter().map(Self::FirstFlight);
        Self::OWN.into_iter().chain(tunnel).chain(flight)
    }

    const fn index(self) -> usize {
        match self {
            Self::Forwarded => 0,
            Self::Held => 1,
            Self::UnknownName => 2,
            Self::MissingName => 3,
            Self::Alpn => 4,
            Self::NoServer => 5,
            Self::NoServerForCopy => 6,
            Self::NoTable => 7,
            Self::UnknownPeer => 8,
            Self::InvalidSource => 9,
            Self::NoCryptoData => 10,
            Self::HoldLimit => 11,
            Self::Tunnel(error) => OWN + error as usize,
            Self::FirstFlight(fault) => OWN + Error::ALL.len() + fault as usize,
        }
    }

    /// Returns the values of the labels `outcome` and `reason` in the metrics.
    pub const fn labels(self) -> (&'static str, &'static str) {
        match self {
            Self::Forwarded => ("forwarded", ""),
            Self::Held => ("held", ""),
            Self::UnknownName => ("refused", "unknown_name"),
            Self::MissingName => ("refused", "missing_name"),
            Self::Alpn => ("refused", "alpn"),
            Self::NoServer => ("refused", "no_server"),
            Self::NoServerForCopy => ("dropped", "no_server_for_copy"),
            Self::NoTable => ("dropped", "no_table"),
            Self::UnknownPeer => ("dropped", "unknown_peer"),
            Self::InvalidSource => ("dropped", "invalid_source"),
            Self::NoCryptoData => ("dropped", "no_crypto_data"),
            Self::HoldLimit => ("dropped", "hold_limit"),
            Self::Tunnel(error) => ("dropped", error.name()),
            Self::FirstFlight(fault @ Fault::UnknownVersion) => ("negotiated", fault.name()),
            Self::FirstFlight(fault @ (Fault::BadHello | Fault::CryptoTooLong)) => {
                ("refused", fault.name())
            }
            Self::FirstFlight(fault) => ("dropped", fault.name()),
        }
    }
}

/// Counters of one worker, which is their only writer.
#[derive(Debug)]
pub struct Counters {
    outcomes: [AtomicU64; ALL],
    /// Packets sent into tunnels, including copies, answers and held packets.
    pub sent: AtomicU64,
    /// Packets that the system did not accept for sending.
    pub unsent: AtomicU64,
    /// Unfinished flights that were evicted for newer ones.
    pub evicted: AtomicU64,
    /// Flights that seem to contain an encrypted ClientHello, and were dispatched by their outer name.
    pub ech: AtomicU64,
    /// Gauge: unfinished flights.
    pub unfinished: AtomicU64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            outcomes: [const { AtomicU64::new(0) }; ALL],
            sent: AtomicU64::default(),
            unsent: AtomicU64::default(),
            evicted: AtomicU64::default(),
            ech: AtomicU64::default(),
            unfinished: AtomicU64::default(),
        }
    }
}

/// Adds `n` to a counter that no other thread writes.
#[inline]
pub fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed) + n, Relaxed);
}

impl Counters {
    /// Counts the outcome of a datagram.
    #[inline]
    pub fn count(&self, outcome: Outcome) {
        add(&self.outcomes[outcome.index()], 1);
    }

    /// Returns the number of datagrams with this outcome.
    pub fn get(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome.index()].load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_has_its_own_counter_and_labels() {
        let indices: Vec<_> = Outcome::all().map(Outcome::index).collect();
        assert_eq!(indices, (0..ALL).collect::<Vec<_>>());
        let mut labels: Vec<_> = Outcome::all().map(Outcome::labels).collect();
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), ALL);
    }
}
