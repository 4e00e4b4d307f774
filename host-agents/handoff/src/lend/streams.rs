//! The streams that real servers send, and what becomes of noq's idle half of each.
//!
//! noq receives such a stream, and takes its other half for one that is not begun. Once the real server is through, the owner has noq end that half
//! (`finish` or `reset`), so that noq forgets the stream when the client acknowledges this; but what noq says of it, an end without bytes, the client
//! never sees.

use std::collections::hash_map::Entry;

use frontage_quic::session::Nonce;
use frontage_quic_wire::frames::Ack;
use rustc_hash::FxHashMap;

use super::Error;

/// Streams of which the client took more before they were lent, at most.
const EARLY: usize = 1024;

/// How a lent stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The client acknowledged all of its bytes, and that they are all.
    Whole { final_size: u64 },
    /// The client is to hear that there will be no more. Of a real server that does not answer, nobody knows how much it sent: the final size then is the
    /// most it can have sent.
    Reset { code: u64, final_size: Option<u64> },
}

impl End {
    pub(super) fn final_size(self) -> Option<u64> {
        match self {
            Self::Whole { final_size } => Some(final_size),
            Self::Reset { final_size, .. } => final_size,
        }
    }

    pub(super) fn of_size(self, size: u64) -> Self {
        match self {
            Self::Whole { .. } => self,
            Self::Reset { code, .. } => Self::Reset {
                code,
                final_size: Some(size),
            },
        }
    }
}

/// One that is or was a real server's.
#[derive(Debug)]
pub(super) struct Stream {
    /// By which the real server sends it.
    pub(super) path: u32,
    /// Bytes that the client takes of it.
    pub(super) limit: u64,
    /// How it ended.
    pub(super) end: Option<End>,
    /// noq's packets that said so.
    said: Vec<Nonce>,
}

/// Of a connection.
#[derive(Debug, Default)]
pub(super) struct Streams {
    lent: FxHashMap<u64, Stream>,
    /// Of those, which noq has ended.
    said: Vec<u64>,
    /// Limits of others that the client raised.
    early: FxHashMap<u64, u64>,
    /// Some are not known.
    forgot: bool,
}

impl Streams {
    pub(super) fn none(&self) -> bool {
        self.lent.is_empty()
    }

    pub(super) fn get(&mut self, stream: u64) -> Option<&mut Stream> {
        self.lent.get_mut(&stream)
    }

    /// Lends it; what the client takes of it, if it raised that. `None` if that is not known.
    pub(super) fn lend(&mut self, stream: u64, path: u32, limit: u64) -> Option<Option<u64>> {
        let raised = self.early.remove(&stream);
        if raised.is_none() && self.forgot {
            return None;
        }
        let lent = Stream {
            path,
            limit: limit.max(raised.unwrap_or(0)),
            end: None,
            said: Vec::new(),
        };
        self.lent.insert(stream, lent);
        Some(raised)
    }

    /// One of which nothing was sent is not lent any more; the path that it was lent with.
    pub(super) fn keep(&mut self, stream: u64) -> Result<u32, Error> {
        match self.lent.entry(stream) {
            Entry::Occupied(lent) if lent.get().end.is_none() => Ok(lent.remove().path),
            Entry::Occupied(_) => Err(Error::Ended(stream)),
            Entry::Vacant(_) => Err(Error::Stream(stream)),
        }
    }

    /// The client takes more of a stream that is not lent.
    pub(super) fn raise(&mut self, stream: u64, limit: u64) {
        if self.early.len() < EARLY || self.early.contains_key(&stream) {
            let known = self.early.entry(stream).or_default();
            *known = limit.max(*known);
        } else {
            self.forgot = true;
        }
    }

    /// noq has sent all of one that is not lent.
    pub(super) fn done(&mut self, stream: u64) {
        self.early.remove(&stream);
    }

    /// Those of a path that have not ended.
    pub(super) fn open(&self, path: u32) -> bool {
        let mut all = self.lent.values();
        all.any(|stream| stream.path == path && stream.end.is_none())
    }

    /// noq says in this packet how a stream ended.
    pub(super) fn say(&mut self, stream: u64, packet: Nonce) {
        if let Some(lent) = self.lent.get_mut(&stream)
            && lent.end.is_some()
        {
            if lent.said.is_empty() {
                self.said.push(stream);
            }
            lent.said.push(packet);
        }
    }

    /// noq forgets those whose end is acknowledged, and so does this.
    pub(super) fn acked(&mut self, ack: &Ack<'_>) {
        if self.said.is_empty() {
            return;
        }
        self.said.retain(|id| {
            let packets = self.lent.get(id).map(|stream| &stream.said);
            let heard = packets.is_none_or(|packets| {
                packets.iter().any(|packet| {
                    packet.path == ack.path
                        && ack.ranges().any(|range| range.contains(&packet.number))
                })
            });
            if heard {
                self.lent.remove(id);
            }
            !heard
        });
    }
}
