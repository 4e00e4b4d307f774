// SPDX-License-Identifier: Apache-2.0
//! How often noq acknowledges packets of the client.
//!
//! noq acknowledges each second packet, as RFC 9000, section 13.2.2, recommends. While a client downloads, it sends only short
//! packets, for example with MAX_DATA, and waits for none of these acknowledgments. Each of them is a packet of its own, because
//! noq sends it before the application has used the new credit. noq has no setting for this, but it obeys ACK_FREQUENCY
//! (draft-ietf-quic-ack-frequency). So the session adds such a frame to a received packet before noq reads it.
//!
//! A rare acknowledgment must not delay a client. So packets count as short only if as many as may remain unacknowledged fit
//! into the smallest congestion window. Gaps between packet numbers are still acknowledged at once, and the other packets
//! within the delay that the server announced, so clients detect losses as soon as before.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use bytes::BytesMut;
use frontage_quic_wire::parameters::Parameters;
use frontage_quic_wire::write_varint;

/// Frame type of ACK_FREQUENCY.
const ACK_FREQUENCY: u64 = 0xaf;
/// Transport parameter `min_ack_delay`. Clients that send it may send ACK_FREQUENCY themselves.
const MIN_ACK_DELAY: u64 = 0xff04_de1b;
/// Packets that may arrive without an acknowledgment, as noq does it.
const DEFAULT_THRESHOLD: u64 = 1;
/// The same, while the client sends only short packets.
const RARE_THRESHOLD: u64 = 9;
/// Longest time until an acknowledgment in microseconds, the default of `max_ack_delay` (RFC 9000, section 18.2).
const MAX_ACK_DELAY_US: u64 = 25_000;
/// Packets by which one may be out of order without an immediate acknowledgment, as noq does it.
const REORDERING_THRESHOLD: u64 = 1;
/// Smallest congestion window of a client in bytes: two packets of 1200 bytes (RFC 9002, section 7.2).
const MIN_WINDOW: usize = 2 * 1200;
/// Most bytes of a packet without its frames: first byte, connection id, packet number and tag of the AEAD.
const OVERHEAD: usize = 1 + 20 + 4 + 16;
/// Least bytes of the frames in a long packet. Ten shorter packets fit into any congestion window, and the tenth is
/// acknowledged at once, so the window does not stop a client that sends only shorter ones.
const LONG: usize = MIN_WINDOW / (RARE_THRESHOLD as usize + 1) - OVERHEAD;
/// Short packets in a row after which acknowledgments become rare.
const SHORT_RUN: u32 = 8;
/// Most bytes of the frame.
const MAX_FRAME: usize = 20;

/// Acknowledges short packets rarely. noq decrypts the packets of a connection one at a time.
#[derive(Debug, Default)]
pub(super) struct AckPolicy {
    /// Short packets since the latest long one.
    short: AtomicU32,
    /// Number of the frames so far. Every second one restores the default.
    frames: AtomicU64,
}

impl AckPolicy {
    /// Return a policy for a client with these transport parameters, or `None` if the client decides itself.
    pub(super) fn new(client: &Parameters) -> Option<Self> {
        let decides = client.iter().any(|(id, _)| *id == MIN_ACK_DELAY);
        (!decides).then(Self::default)
    }

    /// Add a frame to the `payload` of a received packet if the policy changes with this packet.
    #[inline]
    pub(super) fn apply(&self, payload: &mut BytesMut) {
        let is_long = payload.len() >= LONG;
        let short = match is_long {
            true => 0,
            false => self.short.load(Relaxed).saturating_add(1),
        };
        self.short.store(short, Relaxed);
        let frames = self.frames.load(Relaxed);
        let is_rare = !frames.is_multiple_of(2);
        if (is_long && is_rare) || (short >= SHORT_RUN && !is_rare) {
            self.frames.store(frames + 1, Relaxed);
            prepend(frames, is_long, payload);
        }
    }
}

#[inline(never)]
fn prepend(sequence: u64, is_long: bool, payload: &mut BytesMut) {
    let threshold = if is_long {
        DEFAULT_THRESHOLD
    } else {
        RARE_THRESHOLD
    };
    let mut longer = BytesMut::with_capacity(MAX_FRAME + payload.len());
    for field in [
        ACK_FREQUENCY,
        sequence,
        threshold,
        MAX_ACK_DELAY_US,
        REORDERING_THRESHOLD,
    ] {
        write_varint(&mut longer, field);
    }
    longer.extend_from_slice(payload);
    *payload = longer;
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use frontage_quic_wire::Reader;
    use frontage_quic_wire::frames::{self, Frame};

    use super::*;

    const PING: u8 = 0x01;

    /// Receive a packet with so many PING frames. Return sequence number and threshold of the frame that was added, if one was.
    fn receive(policy: &AckPolicy, length: usize) -> Option<(u64, u64)> {
        let mut payload = BytesMut::from(&vec![PING; length][..]);
        policy.apply(&mut payload);
        let mut seen = frames::read(&payload);
        let added = payload.len() > length;
        assert!(!added || seen.next() == Some(Frame::Other));
        assert!(seen.eq(std::iter::repeat_n(Frame::Ping, length)));
        let mut reader = Reader(&payload);
        added.then(|| {
            assert_eq!(reader.varint(), Some(ACK_FREQUENCY));
            (reader.varint().unwrap(), reader.varint().unwrap())
        })
    }

    #[test]
    fn short_packets_are_acknowledged_rarely_until_a_long_one_arrives() {
        let policy = AckPolicy::new(&vec![(1, Bytes::new())]).expect("a policy");
        for sequence in [0, 2] {
            for _ in 1..SHORT_RUN {
                assert_eq!(receive(&policy, 30), None);
            }
            assert_eq!(receive(&policy, 30), Some((sequence, RARE_THRESHOLD)));
            assert_eq!(receive(&policy, 30), None);
            let restored = Some((sequence + 1, DEFAULT_THRESHOLD));
            assert_eq!(receive(&policy, 1300), restored);
            assert_eq!(receive(&policy, 1300), None);
        }
    }

    #[test]
    fn smallest_window_never_waits_for_delayed_acknowledgment() {
        for length in 1..=1350 {
            let policy = AckPolicy::default();
            let thresholds = (0..100).filter_map(|_| receive(&policy, length));
            let unacknowledged = thresholds
                .last()
                .map_or(DEFAULT_THRESHOLD, |(_, last)| last);
            let packet = (length + OVERHEAD) as u64;
            // noq acknowledges the packet that exceeds the threshold.
            let window = packet * (unacknowledged + 1);
            assert!(window <= (MIN_WINDOW as u64).max(2 * packet), "{length}");
        }
    }

    #[test]
    fn client_that_uploads_is_acknowledged_as_by_default() {
        let policy = AckPolicy::default();
        for number in 0..100 {
            let length = if number % 4 == 0 { 300 } else { 30 };
            assert_eq!(receive(&policy, length), None);
        }
    }

    #[test]
    fn client_that_may_send_ack_frequency_decides_itself() {
        assert!(AckPolicy::new(&vec![(MIN_ACK_DELAY, Bytes::new())]).is_none());
    }
}
