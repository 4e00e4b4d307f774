//! Lending to real servers where the client has no paths but one: all senders share its packet numbers (QDSR, appendix A).
//!
//! ```text
//!   on the wire   0 .......... 40 41 42 43 44 45 ...        the ledger: whose each is
//!                 noq's        |---1---| n  |-2-
//!   noq's own     0 .......... .......... 40 .....          the table
//! ```
//!
//! The first grant begins that; before it, noq's numbers are those on the wire, and so they stay for whoever never lends. Each loan has a name that
//! stands where otherwise a path's id does: the client has no path of that id.
//!
//! # Limits
//!
//! - A client takes what comes late for sent again: noq's does once a number is 128 below the highest that came. Real servers therefore ask for numbers as
//!   they need them, and get few at once.
//! - The client's counts of ECN are of all senders' packets, so nobody hears of them.
//! - noq's packets become [`MAX_HEADER_GROWTH`]. What the client takes of a datagram is told to noq as less; of the path's MTU the endpoint's
//!   `MtuDiscoveryConfig` must leave as much.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

use frontage_quic::session::{MAX_HEADER_GROWTH, Nonce, Outgoing};
use frontage_quic_wire::frames::Ack;
use noq::PathId;

use super::feedback::Feedback;
use super::split::Scratch;
use super::state::State;
use super::{Error, Events, Lender};
use crate::grant::{Grant, Keys};
use crate::numbers::{Ledger, Table};

/// Numbers that a real server gets at once, half of what clients tell from what is sent again: they are for packets that are there, in the order in which servers asked, so
/// that what others get meanwhile is above them by little more.
const AT_ONCE: u64 = 64;

/// The name of noq, among those of loans.
const BALANCER: u32 = 0;

/// Octets that every client takes of a datagram (RFC 9000, section 18.2).
const LEAST_PAYLOAD: u64 = 1200;

/// What noq may send to a client that takes datagrams of `size` octets.
pub(super) fn payload_size(size: u64) -> u64 {
    size.saturating_sub(MAX_HEADER_GROWTH as u64)
        .max(LEAST_PAYLOAD)
}

/// The numbers of a connection, from its first grant on.
#[derive(Debug)]
pub(super) struct Shared {
    ledger: Ledger<u32>,
    /// noq's.
    table: Table,
    /// Names that were given.
    loans: u32,
    /// Parts of an acknowledgement; kept, so that none allocates.
    acked: Vec<Range<u64>>,
    parts: Vec<(u32, Range<u64>)>,
    own: Vec<Range<u64>>,
}

impl Shared {
    /// noq's next number is `next`.
    pub(super) fn new(next: u64) -> Self {
        Self {
            ledger: Ledger::new(next, BALANCER),
            table: Table::new(next),
            loans: 0,
            acked: Vec::new(),
            parts: Vec::new(),
            own: Vec::new(),
        }
    }

    /// noq's packet gets its number on the wire.
    pub(super) fn seal(&mut self, outgoing: &mut Outgoing<'_>) -> Nonce {
        let number = self.ledger.take(BALANCER, 1).start;
        self.table.sent(outgoing.number, number);
        outgoing.needs_long_number = true;
        Nonce { path: 0, number }
    }
}

impl State {
    /// Whether `path` is a loan's name.
    pub(super) fn is_name(&self, path: u32) -> bool {
        self.shared.is_some() && path != BALANCER
    }

    /// A loan's name, what it may send at first, its first number at the earliest, and where its news go.
    pub(super) fn lend_numbers(&mut self) -> Option<(u32, u64, u64, Arc<Feedback>)> {
        if self.several || !self.ready() || self.paths.full() {
            return None;
        }
        let next = self.paths.get(0)?.numbers.next();
        let shared = self.shared.get_or_insert_with(|| Shared::new(next));
        shared.loans = shared.loans.checked_add(1)?;
        let (name, first) = (shared.loans, shared.ledger.next());
        let credit = self.credit.lend_first();
        let (_, feedback) = self.paths.get_or_new(name)?.lend(credit)?;
        Some((name, credit, first, feedback))
    }

    /// What [`Lender::more_numbers`] says.
    pub(super) fn more_numbers(
        &mut self,
        name: u32,
        wanted: u64,
    ) -> Result<(Option<Keys>, Range<u64>), Error> {
        let lent = self.paths.get(name).and_then(|path| path.loan());
        let (Some(loan), Some(shared)) = (lent, &mut self.shared) else {
            return Err(Error::Path(name));
        };
        let keys = loan.feedback.take_keys();
        let numbers = shared.ledger.take(name, wanted.min(AT_ONCE));
        self.elsewhere += numbers.end - numbers.start;
        Ok((keys, numbers))
    }

    /// Says to each real server which of its packets the client has, and to noq which of its own. Whether that is all that noq is to hear: a lie is left for noq to
    /// refuse, which has sent fewer packets than there are numbers.
    pub(super) fn acked_of_shared(&mut self, ack: &Ack<'_>, scratch: &mut Scratch) -> bool {
        let Some(shared) = &mut self.shared else {
            return false;
        };
        let Shared {
            ledger,
            table,
            acked,
            parts,
            own,
            ..
        } = shared;
        acked.clear();
        acked.extend(ack.ranges().map(|range| *range.start()..range.end() + 1));
        parts.clear();
        own.clear();
        let split = ledger.split(acked, |name, part| match name {
            BALANCER => own.push(part),
            _ => parts.push((name, part)),
        });
        if ack.path != 0 || split.is_err() {
            return false;
        }
        let Scratch {
            frames,
            own: noqs,
            lent,
        } = scratch;
        noqs.clear();
        for range in table.own(own) {
            noqs.insert(range.start..=range.end - 1);
        }
        noqs.write_ack(None, ack.delay, None, frames);
        for path in self.paths.iter() {
            lent.clear();
            for (_, part) in parts.iter().filter(|(name, _)| *name == path.id) {
                lent.insert(part.start..=part.end - 1);
            }
            if let Some(largest) = lent.largest() {
                path.acked(largest, None);
                if let Some(loan) = path.loan() {
                    loan.feedback.acked(lent, ack, None);
                }
            }
        }
        true
    }
}

impl<O> Lender<O> {
    /// Lends to one more real server, where the client has one path alone. Besides the grant, of path 0, there is the loan's name, which stands for a path in
    /// all other calls. The real server sends by no number that it did not get by [`Lender::more_numbers`].
    pub fn lend_numbers(
        &self,
        connection: &noq::Connection,
        server: SocketAddr,
    ) -> Option<(u32, Grant, Events)> {
        // noq's lock is held by whoever sends, and this one's taken within: never the other way round.
        let client = connection.path(PathId::ZERO)?.remote_address().ok()?;
        let rtt = connection.rtt(PathId::ZERO)?;
        let state = &mut *self.state();
        let grant = state.grant(0, [client, server], rtt)?;
        let (name, credit, first, feedback) = state.lend_numbers()?;
        let grant = Grant {
            first,
            credit,
            ..grant
        };
        let events = Events::new(feedback, connection, 0, (client, client), server);
        Some((name, grant, events))
    }

    /// The next numbers for the real server of loan `name`, up to `wanted`, for packets that it sends at once; and, if it was not told yet by an event, the keys
    /// that it is to have before. No packet may be sealed by older keys than one of a lower number (RFC 9001, section 6.4).
    pub fn more_numbers(
        &self,
        name: u32,
        wanted: u64,
    ) -> Result<(Option<Keys>, Range<u64>), Error> {
        self.state().more_numbers(name, wanted)
    }
}

#[cfg(test)]
mod tests;
