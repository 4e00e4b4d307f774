//! What became of every datagram: one outcome each, named and counted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use frontage_first_flight::Fault;
use frontage_tunnel::Error;

/// What became of a datagram that came out of a tunnel, or did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It went on.
    Forwarded,
    /// It is held until its flight names a service.
    Held,
    /// The client was told that there is no service of the name.
    UnknownName,
    /// The client was told that it must name a service.
    MissingName,
    /// The client was told that the service has none of its protocols.
    Alpn,
    /// The client was told that no server accepts it.
    NoServer,
    /// No server accepts it, but another site has a copy that may fare better.
    NoServerForCopy,
    /// The controller has not told of any service yet.
    NoTable,
    /// The tunnel is not of a configured peer.
    Peer,
    /// No client can have this source address or port.
    Source,
    /// A flight's first packet that says nothing.
    NothingSaid,
    /// More packets than are held of one flight.
    NoRoom,
    /// It did not come out of the tunnel.
    Tunnel(Error),
    /// It is no first flight that can be read. Unknown versions were answered by ours, and what is wrong with a ClientHello
    /// by a close.
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
        Self::Peer,
        Self::Source,
        Self::NothingSaid,
        Self::NoRoom,
    ];

    /// All of them.
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
            Self::Peer => 8,
            Self::Source => 9,
            Self::NothingSaid => 10,
            Self::NoRoom => 11,
            Self::Tunnel(error) => OWN + error as usize,
            Self::FirstFlight(fault) => OWN + Error::ALL.len() + fault as usize,
        }
    }

    /// What was done with the datagram, and why.
    pub const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Forwarded => ("forwarded", ""),
            Self::Held => ("held", ""),
            Self::UnknownName => ("refused", "unknown_name"),
            Self::MissingName => ("refused", "missing_name"),
            Self::Alpn => ("refused", "alpn"),
            Self::NoServer => ("refused", "no_server"),
            Self::NoServerForCopy => ("dropped", "no_server_for_copy"),
            Self::NoTable => ("dropped", "no_table"),
            Self::Peer => ("dropped", "peer"),
            Self::Source => ("dropped", "source"),
            Self::NothingSaid => ("dropped", "nothing_said"),
            Self::NoRoom => ("dropped", "no_room"),
            Self::Tunnel(error) => ("dropped", error.name()),
            Self::FirstFlight(fault @ Fault::UnknownVersion) => ("negotiated", fault.name()),
            Self::FirstFlight(fault @ (Fault::BadHello | Fault::CryptoTooLong)) => {
                ("refused", fault.name())
            }
            Self::FirstFlight(fault) => ("dropped", fault.name()),
        }
    }
}

/// Counters of one worker, which alone writes them.
#[derive(Debug)]
pub struct Counts {
    outcomes: [AtomicU64; ALL],
    /// Packets that went into tunnels: copies, answers and what was held, too.
    pub sent: AtomicU64,
    /// Packets that the system did not take.
    pub unsent: AtomicU64,
    /// Unfinished flights that gave way to others.
    pub evicted: AtomicU64,
    /// Flights with what looks like an encrypted ClientHello: their outer name decided.
    pub ech: AtomicU64,
    /// Unfinished flights at present.
    pub unfinished: AtomicU64,
}

impl Default for Counts {
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

/// Adds to a counter that no other thread writes.
#[inline]
pub fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed) + n, Relaxed);
}

impl Counts {
    /// A datagram's outcome is known.
    #[inline]
    pub fn count(&self, outcome: Outcome) {
        add(&self.outcomes[outcome.index()], 1);
    }

    /// How many datagrams had this outcome.
    pub fn of(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome.index()].load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_has_its_counter_and_name() {
        let indices: Vec<_> = Outcome::all().map(Outcome::index).collect();
        assert_eq!(indices, (0..ALL).collect::<Vec<_>>());
        let mut names: Vec<_> = Outcome::all().map(Outcome::names).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL);
    }
}
