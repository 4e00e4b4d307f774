//! The first flights that a server may answer with a Retry.

use std::collections::VecDeque;

use frontage_first_flight::packet::Packet;
use frontage_first_flight::{Fault, Initial, MIN_DATAGRAM, Reader, Retry};

/// Most packets that are kept: a ClientHello takes one or two, and several connections may begin at once.
const KEPT: usize = 16;

/// The Initial packets of a flow that no server has answered yet.
#[derive(Debug, Default)]
pub struct Flights {
    waiting: VecDeque<Initial>,
    /// The clients' connection ids that were answered: what comes of them later is no first flight.
    answered: VecDeque<Vec<u8>>,
}

/// What to do about a server's datagram besides forwarding it.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing: it is no Retry.
    Nothing,
    /// Send these; it is a Retry. They are all that was waiting for it.
    Again(Vec<Vec<u8>>),
    /// Nothing: the answer would be too large.
    TooLarge,
    /// Nothing: it is a Retry to no first flight.
    Unknown,
}

impl Flights {
    /// Keeps the client's `datagram` if it is of a first flight; says what is wrong with it otherwise.
    pub fn sent(&mut self, reader: &Reader, datagram: &[u8]) -> Result<(), Fault> {
        let initial = reader.open(datagram)?;
        if self.answered.contains(&initial.scid) {
            return Ok(());
        }
        if self.waiting.len() == KEPT {
            self.waiting.pop_front();
        }
        self.waiting.push_back(initial);
        Ok(())
    }

    /// Whether one might come in `datagram`.
    pub fn may_begin(datagram: &[u8]) -> bool {
        datagram.len() >= MIN_DATAGRAM && datagram[0] & 0x80 != 0
    }

    /// Looks at a server's datagram.
    pub fn received(&mut self, reader: &Reader, datagram: &[u8]) -> Answer {
        let Some(retry) = Retry::read(datagram) else {
            if !self.waiting.is_empty()
                && let Ok((packet, _)) = Packet::parse(datagram)
            {
                // No connection has more than one connection id of the client's before its handshake is complete.
                self.answer(packet.dcid);
            }
            return Answer::Nothing;
        };
        let (mine, others): (VecDeque<_>, _) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|initial| retry.answers(initial));
        self.waiting = others;
        if mine.is_empty() {
            return Answer::Unknown;
        }
        let again: Vec<_> = mine
            .iter()
            .filter_map(|initial| initial.again(reader, &retry))
            .collect();
        self.answer(retry.dcid);
        // A part of a ClientHello alone would only make the server wait.
        if again.len() < mine.len() {
            return Answer::TooLarge;
        }
        Answer::Again(again)
    }

    fn answer(&mut self, cid: &[u8]) {
        self.waiting.retain(|initial| initial.scid != cid);
        // An empty one is many connections'.
        if !cid.is_empty() {
            if self.answered.len() == KEPT {
                self.answered.pop_front();
            }
            self.answered.push_back(cid.into());
        }
    }
}
