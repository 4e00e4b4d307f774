// SPDX-License-Identifier: Apache-2.0
//! DATAGRAM frames (RFC 9221) that carry frames which noq does not know.
//!
//! noq sends a DATAGRAM frame whose data are other frames. Before the packet is sealed, PADDING replaces the type and
//! the length of the DATAGRAM frame, so that the peer sees PADDING and the frames in it. The packet keeps its length.
//! noq does not send a lost DATAGRAM frame again, so the sender repeats what it must.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bytes::Bytes;
use frontage_quic_wire::frames::{self, Frame};
use noq::{Connection, SendDatagramError};
use parking_lot::Mutex;

/// Most carriers that wait to be sent. noq may discard a DATAGRAM frame before it sends it.
const MAX_WAITING: usize = 4;

/// Frames on their way to one connection's packets.
#[derive(Debug, Default)]
pub(crate) struct Carrier {
    waiting: Mutex<Vec<Bytes>>,
    /// True if `waiting` has any, so that most packets need not lock it.
    has_waiting: AtomicBool,
}

impl Carrier {
    /// Send `frames` with the next packet of `connection` that has room for them.
    ///
    /// # Errors
    /// If the peer does not receive DATAGRAM frames, or `frames` are longer than a packet.
    pub(crate) fn send(
        &self,
        connection: &Connection,
        frames: Bytes,
    ) -> Result<(), SendDatagramError> {
        self.expect(frames.clone());
        connection.send_datagram(frames)
    }

    /// Unpack a DATAGRAM frame with `frames`.
    pub(crate) fn expect(&self, frames: Bytes) {
        let mut waiting = self.waiting.lock();
        if waiting.len() == MAX_WAITING {
            waiting.remove(0);
        }
        waiting.push(frames);
        self.has_waiting.store(true, Relaxed);
    }

    /// Unpack the carrier in the `payload` of a packet that is about to be sealed. Return the range of the frames that it
    /// carried.
    #[inline]
    pub(crate) fn unpack(&self, payload: &mut [u8]) -> Option<Range<usize>> {
        if self.has_waiting.load(Relaxed) {
            self.unpack_waiting(payload)
        } else {
            None
        }
    }

    #[inline(never)]
    fn unpack_waiting(&self, payload: &mut [u8]) -> Option<Range<usize>> {
        let mut waiting = self.waiting.lock();
        let (span, index, length) =
            frames::read_with_spans(payload).find_map(|(span, frame)| {
                let Frame::Datagram { data } = frame else {
                    return None;
                };
                let index = waiting.iter().position(|frames| *frames == data)?;
                Some((span, index, data.len()))
            })?;
        waiting.remove(index);
        self.has_waiting.store(!waiting.is_empty(), Relaxed);
        let carried = span.end - length..span.end;
        payload[span.start..carried.start].fill(0);
        Some(carried)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(frames: &'static [u8]) -> Carrier {
        let carrier = Carrier::default();
        carrier.expect(Bytes::from_static(frames));
        carrier
    }

    #[test]
    fn carrier_becomes_padding_and_the_frames_in_it() {
        let carrier = waiting(&[0x1e, 0x01]);
        let mut payload = vec![0x01, 0x31, 0x40, 2, 0x1e, 0x01, 0x10, 5];
        assert_eq!(carrier.unpack(&mut payload), Some(4..6));
        assert_eq!(payload, [0x01, 0, 0, 0, 0x1e, 0x01, 0x10, 5]);
        assert_eq!(carrier.unpack(&mut payload), None);
    }

    #[test]
    fn other_datagrams_are_unchanged() {
        let carrier = waiting(&[0x1e, 0x01]);
        let mut payload = vec![0x31, 2, 0x1e, 0x1e, 0x30, 0x01];
        assert_eq!(carrier.unpack(&mut payload), None);
        assert_eq!(payload, [0x31, 2, 0x1e, 0x1e, 0x30, 0x01]);
        let mut payload = vec![0x30, 0x1e, 0x01];
        assert_eq!(carrier.unpack(&mut payload), Some(1..3));
        assert_eq!(payload, [0, 0x1e, 0x01]);
    }
}
