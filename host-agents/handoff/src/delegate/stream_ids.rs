// SPDX-License-Identifier: Apache-2.0
//! Stream ids in noq. noq treats a stream as opened together with all streams of lower ids, most of which are not delegated.
//! The delegated streams therefore get consecutive ids.

use std::ops::{Range, RangeInclusive};

use rustc_hash::FxHashMap;

use super::Error;
use super::acknowledged::{Acknowledged, InFlight};

/// Bounds at which stream ids take more octets. noq's id must take at least as many octets as the client's, because the frame
/// filter writes one over the other (RFC 9000, section 16).
const ID_BOUNDS: [u64; 3] = [1 << 6, 1 << 14, 1 << 30];

/// Delegated streams of one connection, all bidirectional and opened by the client.
#[derive(Debug, Default)]
pub struct StreamIds {
    /// noq's next id.
    next: u64,
    /// Streams by noq's id.
    delegated: FxHashMap<u64, DelegatedStream>,
    /// noq's ids by the client's.
    own: FxHashMap<u64, u64>,
    /// Bytes sent on all streams, including those that were released.
    sent: u64,
    in_flight: InFlight,
    /// noq's ids of streams for which a progress report is due.
    advanced: Vec<u64>,
}

#[derive(Debug)]
struct DelegatedStream {
    /// The client's id.
    id: u64,
    /// Bytes sent.
    sent: u64,
    acknowledged: Acknowledged,
}

impl StreamIds {
    /// Add the client's stream `id`. Returns noq's id.
    pub fn add(&mut self, id: u64) -> Result<u64, Error> {
        let is_client_bidirectional = id & 0b11 == 0;
        let size = ID_BOUNDS.iter().position(|bound| id < *bound);
        let (Some(size), true, None) = (size, is_client_bidirectional, self.own(id)) else {
            return Err(Error::Stream(id));
        };
        let own = match size {
            0 => self.next,
            _ => self.next.max(ID_BOUNDS[size - 1]),
        };
        self.next = own + 4;
        let stream = DelegatedStream {
            id,
            sent: 0,
            acknowledged: Acknowledged::default(),
        };
        self.delegated.insert(own, stream);
        self.own.insert(id, own);
        Ok(own)
    }

    /// Return the client's id for noq's id `own`.
    pub fn delegated(&self, own: u64) -> Option<u64> {
        self.delegated.get(&own).map(|stream| stream.id)
    }

    /// Record that noq's packet `number` contains these bytes of noq's stream `own`. Returns the client's id.
    pub fn on_sent(&mut self, number: u64, own: u64, bytes: Range<u64>) -> Option<u64> {
        let stream = self.delegated.get_mut(&own)?;
        self.sent += bytes.end.saturating_sub(stream.sent);
        stream.sent = stream.sent.max(bytes.end);
        self.in_flight.on_sent(number, own, bytes);
        Some(stream.id)
    }

    /// Record that the client has acknowledged noq's packets with these numbers.
    pub fn on_acknowledged(&mut self, numbers: RangeInclusive<u64>) {
        let (delegated, advanced) = (&mut self.delegated, &mut self.advanced);
        self.in_flight.on_acknowledged(numbers, |own, bytes| {
            if let Some(stream) = delegated.get_mut(&own)
                && stream.acknowledged.add(bytes)
            {
                advanced.push(own);
            }
        });
    }

    /// Return the client's ids of the streams that have made progress, and the length of the acknowledged prefix of
    /// each, in bytes.
    pub fn take_progress(&mut self) -> Vec<(u64, u64)> {
        let advanced = std::mem::take(&mut self.advanced);
        let progress = advanced.into_iter().filter_map(|own| {
            let stream = self.delegated.get_mut(&own)?;
            Some((stream.id, stream.acknowledged.report()))
        });
        progress.collect()
    }

    /// Return how many bytes were sent on the client's stream `id`.
    pub fn sent_on(&self, id: u64) -> Option<u64> {
        self.delegated.get(&self.own(id)?).map(|stream| stream.sent)
    }

    /// Return how many bytes were sent on all streams.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Return noq's id for the client's stream `id`.
    pub fn own(&self, id: u64) -> Option<u64> {
        self.own.get(&id).copied()
    }

    /// Forget the client's stream `id`.
    pub fn release(&mut self, id: u64) {
        if let Some(own) = self.own.remove(&id) {
            self.delegated.remove(&own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noq_ids_are_consecutive_and_not_shorter() {
        let mut ids = StreamIds::default();
        for (id, own) in [
            (40, 0),
            (0, 4),
            (64, 64),
            (400, 68),
            (4, 72),
            (1 << 20, 1 << 14),
        ] {
            assert_eq!(ids.add(id), Ok(own));
            assert_eq!(ids.delegated(own), Some(id));
            assert_eq!(ids.own(id), Some(own));
        }
        for refused in [40, 1, 2, 3, 1 << 30] {
            assert_eq!(ids.add(refused), Err(Error::Stream(refused)));
        }
        for (to, sent) in [(100, 100), (50, 100), (120, 120)] {
            assert_eq!(ids.on_sent(to, 0, 0..to), Some(40));
            assert_eq!(ids.sent_on(40), Some(sent));
        }
        ids.on_sent(7, 4, 0..7);
        ids.release(40);
        assert_eq!((ids.delegated(0), ids.own(40)), (None, None));
        assert_eq!((ids.on_sent(200, 0, 0..200), ids.sent_on(40)), (None, None));
        assert_eq!(ids.sent(), 127);
    }
}
