// SPDX-License-Identifier: Apache-2.0
//! Answering a server's Retry on behalf of the client.

use std::collections::VecDeque;

use frontage_first_flight::packet::Packet;
use frontage_first_flight::{Fault, Initial, MIN_DATAGRAM, Reader, Retry};

/// Maximum number of Initial packets to keep: a ClientHello takes one or two, and a client may open several connections at
/// once.
const MAX_INITIALS: usize = 16;

/// The Initial packets of a flow that may still be answered by a Retry.
#[derive(Debug, Default)]
pub struct RetryResponder {
    pending: VecDeque<Initial>,
    /// Client connection ids that the server has answered. Later Initials with such an id are not first flights.
    answered: VecDeque<Vec<u8>>,
}

/// The proxy's reaction to a server's datagram, besides forwarding it to the client.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// The datagram is not a Retry: nothing to do.
    None,
    /// The datagram is a Retry: send these datagrams, the complete first flight with the Retry's token, to the server.
    Resend(Vec<Vec<u8>>),
    /// The datagram is a Retry, but the first flight with its token would be too large. The client must answer.
    TooLarge,
    /// The datagram is a Retry that matches no first flight.
    Unknown,
}

impl RetryResponder {
    /// Keeps the client's `datagram` if it belongs to a first flight.
    ///
    /// # Errors
    /// Returns why the datagram is not a readable Initial.
    pub fn on_client_datagram(&mut self, reader: &Reader, datagram: &[u8]) -> Result<(), Fault> {
        let initial = reader.open(datagram)?;
        if self.answered.contains(&initial.scid) {
            return Ok(());
        }
        if self.pending.len() == MAX_INITIALS {
            self.pending.pop_front();
        }
        self.pending.push_back(initial);
        Ok(())
    }

    /// Returns true if `datagram` may start with an Initial, judging by its length and first byte.
    pub fn may_be_initial(datagram: &[u8]) -> bool {
        datagram.len() >= MIN_DATAGRAM && datagram[0] & 0x80 != 0
    }

    /// Processes a datagram from the server.
    pub fn on_server_datagram(&mut self, reader: &Reader, datagram: &[u8]) -> Action {
        let Some(retry) = Retry::read(datagram) else {
            if !self.pending.is_empty()
                && let Ok((packet, _)) = Packet::parse(datagram)
            {
                // A client uses a single connection id until its handshake is complete.
                self.mark_answered(packet.dcid);
            }
            return Action::None;
        };
        let (matching, others): (VecDeque<_>, _) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|initial| retry.answers(initial));
        self.pending = others;
        if matching.is_empty() {
            return Action::Unknown;
        }
        let resent: Vec<_> = matching
            .iter()
            .filter_map(|initial| initial.for_retry(reader, &retry))
            .collect();
        self.mark_answered(retry.dcid);
        // Part of a ClientHello would only make the server wait.
        if resent.len() < matching.len() {
            return Action::TooLarge;
        }
        Action::Resend(resent)
    }

    fn mark_answered(&mut self, cid: &[u8]) {
        self.pending.retain(|initial| initial.scid != cid);
        // Many connections may use the empty connection id.
        if !cid.is_empty() {
            if self.answered.len() == MAX_INITIALS {
                self.answered.pop_front();
            }
            self.answered.push_back(cid.into());
        }
    }
}
