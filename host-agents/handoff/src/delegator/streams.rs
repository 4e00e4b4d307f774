// SPDX-License-Identifier: Apache-2.0
//! Delegated streams, and the idle half of each at noq.
//!
//! noq receives such a stream and considers its own half as not begun. Once the real server has finished, the owner has
//! noq end that half (`finish` or `reset`), so that noq forgets the stream when the client acknowledges the end. The
//! client never sees noq's frame, which would end the stream without data.

use std::collections::hash_map::Entry;

use frontage_quic::session::Nonce;
use frontage_quic_wire::frames::Ack;
use rustc_hash::FxHashMap;

use super::Error;
use super::resumed::ResumedStream;

/// Maximum number of streams with a raised limit that are not delegated.
const MAX_RAISED: usize = 1024;

/// How a delegated stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// The client has acknowledged all bytes and the FIN.
    Complete { final_size: u64 },
    /// The stream must be reset towards the client. Without a final size, because the real server does not respond, the
    /// client gets the maximum that the real server can have sent.
    Reset { code: u64, final_size: Option<u64> },
}

impl StreamEnd {
    pub(super) fn final_size(self) -> Option<u64> {
        match self {
            Self::Complete { final_size } => Some(final_size),
            Self::Reset { final_size, .. } => final_size,
        }
    }

    pub(super) fn with_final_size(self, size: u64) -> Self {
        match self {
            Self::Complete { .. } => self,
            Self::Reset { code, .. } => Self::Reset {
                code,
                final_size: Some(size),
            },
        }
    }
}

/// A stream that is or was delegated.
#[derive(Debug)]
pub(super) struct Stream {
    path: u32,
    limit: u64,
    end: Option<StreamEnd>,
    /// Set if noq sends the rest of the stream.
    resumed: Option<ResumedStream>,
    /// Packets of noq that contained the end of its half.
    end_packets: Vec<Nonce>,
}

impl Stream {
    /// Return the path on which the real server sends the stream.
    pub(super) fn path(&self) -> u32 {
        self.path
    }

    /// Return the client's MAX_STREAM_DATA.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    pub(super) fn raise_limit(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
        if let Some(resumed) = &self.resumed {
            resumed.raise_limit(self.limit);
        }
    }

    /// Return whether a real server may still send on the stream.
    pub(super) fn is_remote(&self) -> bool {
        self.end.is_none() && self.resumed.is_none()
    }

    pub(super) fn resumed(&self) -> Option<&ResumedStream> {
        self.resumed.as_ref()
    }

    pub(super) fn end(&self) -> Option<StreamEnd> {
        self.end
    }

    pub(super) fn set_end(&mut self, end: StreamEnd) {
        self.end = Some(end);
    }
}

/// Streams of one connection.
#[derive(Debug, Default)]
pub(super) struct Streams {
    delegated: FxHashMap<u64, Stream>,
    /// Delegated streams that noq has ended.
    ended: Vec<u64>,
    /// Delegated streams that noq ends in the packet that is being sealed.
    ending: Vec<u64>,
    /// Resumed streams whose limits noq does not know yet.
    unannounced: Vec<u64>,
    /// Limits of other streams that the client raised.
    raised: FxHashMap<u64, u64>,
    /// True if a raised limit was dropped for lack of room.
    has_dropped: bool,
}

impl Streams {
    pub(super) fn is_empty(&self) -> bool {
        self.delegated.is_empty()
    }

    pub(super) fn get(&mut self, stream: u64) -> Option<&mut Stream> {
        self.delegated.get_mut(&stream)
    }

    /// Delegate a stream whose initial limit is `limit`. Returns the limit if the client has raised it.
    pub(super) fn delegate(
        &mut self,
        stream: u64,
        path: u32,
        limit: u64,
    ) -> Result<Option<u64>, Error> {
        let raised = self.raised.remove(&stream);
        if raised.is_none() && self.has_dropped {
            return Err(Error::UnknownLimit(stream));
        }
        let delegated = Stream {
            path,
            limit: limit.max(raised.unwrap_or(0)),
            end: None,
            resumed: None,
            end_packets: Vec::new(),
        };
        self.delegated.insert(stream, delegated);
        Ok(raised)
    }

    /// Return a stream on which nothing was sent to noq. Returns the path that it was delegated to.
    pub(super) fn reject(&mut self, stream: u64) -> Result<u32, Error> {
        match self.delegated.entry(stream) {
            Entry::Occupied(entry) if entry.get().is_remote() => Ok(entry.remove().path),
            Entry::Occupied(_) => Err(Error::Ended(stream)),
            Entry::Vacant(_) => Err(Error::Stream(stream)),
        }
    }

    /// Let noq send the rest of a stream.
    pub(super) fn resume(&mut self, stream: u64, resumed: ResumedStream) {
        if let Some(entry) = self.delegated.get_mut(&stream) {
            entry.resumed = Some(resumed);
            self.unannounced.push(stream);
        }
    }

    /// Forget a resumed stream, which noq will not send again.
    pub(super) fn forget_resumed(&mut self, stream: u64) {
        if let Entry::Occupied(entry) = self.delegated.entry(stream)
            && entry.get().resumed.is_some()
        {
            entry.remove();
        }
    }

    /// Return the resumed streams whose limits noq does not know yet, with these limits in noq's offsets.
    pub(super) fn take_limits(&mut self) -> impl Iterator<Item = (u64, u64)> {
        let (delegated, unannounced) = (&self.delegated, &mut self.unannounced);
        unannounced.drain(..).filter_map(|id| {
            let stream = delegated.get(&id)?;
            Some((id, stream.resumed.as_ref()?.limit_of(stream.limit)))
        })
    }

    /// Handle MAX_STREAM_DATA for a stream that is not delegated.
    pub(super) fn on_max_stream_data(&mut self, stream: u64, limit: u64) {
        if self.raised.len() < MAX_RAISED || self.raised.contains_key(&stream) {
            let known = self.raised.entry(stream).or_default();
            *known = limit.max(*known);
        } else {
            self.has_dropped = true;
        }
    }

    /// noq has ended a stream that is not delegated.
    pub(super) fn forget_limit(&mut self, stream: u64) {
        self.raised.remove(&stream);
    }

    /// Return whether a path has streams that have not ended.
    pub(super) fn has_open(&self, path: u32) -> bool {
        let mut streams = self.delegated.values();
        streams.any(|stream| stream.path == path && stream.is_remote())
    }

    /// Return whether `path` has streams that have not ended, and no other path has.
    pub(super) fn is_sole(&self, path: u32) -> bool {
        let mut streams = self.delegated.values().filter(|stream| stream.is_remote());
        streams.next().is_some_and(|first| first.path == path)
            && streams.all(|stream| stream.path == path)
    }

    /// noq ends its half of a delegated stream in the packet that is being sealed.
    pub(super) fn on_end(&mut self, stream: u64) {
        self.ending.push(stream);
    }

    /// The packet that was being sealed leaves with this nonce.
    pub(super) fn on_sent(&mut self, packet: Nonce) {
        for id in self.ending.drain(..) {
            if let Some(stream) = self.delegated.get_mut(&id)
                && (stream.end.is_some() || stream.resumed.is_some())
            {
                if stream.end_packets.is_empty() {
                    self.ended.push(id);
                }
                stream.end_packets.push(packet);
            }
        }
    }

    /// Forget the streams whose end the client acknowledges, as noq does.
    pub(super) fn on_ack(&mut self, ack: &Ack<'_>) {
        if self.ended.is_empty() {
            return;
        }
        self.ended.retain(|id| {
            let packets = self.delegated.get(id).map(|stream| &stream.end_packets);
            let is_acked = packets.is_none_or(|packets| {
                packets.iter().any(|packet| {
                    packet.path == ack.path
                        && ack.ranges().any(|range| range.contains(&packet.number))
                })
            });
            if is_acked {
                self.delegated.remove(id);
            }
            !is_acked
        });
    }
}
