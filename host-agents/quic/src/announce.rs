// SPDX-License-Identifier: Apache-2.0
//! The server's side of moves: announce addresses to the client of a connection, and notice that it has migrated.
//!
//! An [`Announcer`] sends ALTERNATIVE_ADDRESS and NEXT_SERVER frames (docs/moves.md), which noq does not know, and
//! repeats them until the client acknowledges them. [`Announced`] is the observer of the connection. It sees the
//! transport parameters, the packets that carry the frames, and their acknowledgments.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use frontage_quic_wire::frames::{self, Frame};
use frontage_quic_wire::parameters::Parameters;
use frontage_quic_wire::server_addresses::{Announcement, ServerAddresses};
use noq::{Connection, PathId, SendDatagramError};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::carrier::Carrier;
use crate::session::{Incoming, Negotiated, Nonce, Observer, Outgoing, Packet};

/// How often a frame is sent before it counts as lost.
const MAX_ATTEMPTS: u32 = 6;
/// Least time to wait for an acknowledgment. The wait doubles with each attempt.
const MIN_ACK_TIMEOUT: Duration = Duration::from_millis(50);

/// Why the client does not know the addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnnounceError {
    /// The client did not send the transport parameter.
    #[error("the client does not support the extension")]
    Unsupported,
    /// The client does not receive DATAGRAM frames, or the connection is closed.
    #[error(transparent)]
    NotSent(#[from] SendDatagramError),
    /// The client acknowledged no packet with the frame.
    #[error("the client did not acknowledge the addresses")]
    Unacknowledged,
}

/// Announces addresses to the client of one connection. Clones announce to the same client.
#[derive(Clone, Debug, Default)]
pub struct Announcer(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    carrier: Carrier,
    /// Bits of the announcements that the client understands.
    supported: AtomicU8,
    /// Sequence number of the latest addresses.
    sequence: AtomicU64,
    /// True while received packets matter.
    is_watching: AtomicBool,
    state: Mutex<State>,
    progress: watch::Sender<Progress>,
}

/// The client's actions since the latest announcement.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    is_acknowledged: bool,
    has_moved: bool,
}

#[derive(Debug, Default)]
struct State {
    /// Path and number of the packets that carried the latest addresses.
    carriers: Vec<(u32, u64)>,
    /// Connection id to which the client has sent a PATH_CHALLENGE.
    probed: Option<Vec<u8>>,
}

const fn bit(announcement: Announcement) -> u8 {
    match announcement {
        Announcement::Move => 1,
        Announcement::HandOver => 2,
    }
}

impl Announcer {
    /// Return whether the client understands `announcement`.
    pub fn is_supported(&self, announcement: Announcement) -> bool {
        self.0.supported.load(Relaxed) & bit(announcement) != 0
    }

    /// Announce `addresses`, the most preferred first, and return once the client has acknowledged them.
    ///
    /// # Errors
    /// If the client does not understand the announcement, or did not acknowledge it.
    pub async fn announce(
        &self,
        connection: &Connection,
        announcement: Announcement,
        addresses: &[SocketAddr],
    ) -> Result<(), AnnounceError> {
        if !self.is_supported(announcement) {
            return Err(AnnounceError::Unsupported);
        }
        let set = ServerAddresses {
            sequence: self.0.sequence.fetch_add(1, Relaxed) + 1,
            preferred: (0..).zip(addresses.iter().copied()).collect(),
            backup: Vec::new(),
        };
        let frame = Bytes::from(set.to_frame(announcement));
        *self.0.state.lock() = State::default();
        self.0.progress.send_replace(Progress::default());
        self.0.is_watching.store(true, Relaxed);
        let mut progress = self.0.progress.subscribe();
        for attempt in 0..MAX_ATTEMPTS {
            self.0.carrier.send(connection, frame.clone())?;
            let rtt = connection.rtt(PathId::ZERO).unwrap_or_default();
            let wait = MIN_ACK_TIMEOUT.max(3 * rtt) * (1 << attempt);
            let acknowledged = progress.wait_for(|progress| progress.is_acknowledged);
            if timeout(wait, acknowledged).await.is_ok() {
                return Ok(());
            }
        }
        Err(AnnounceError::Unacknowledged)
    }

    /// Wait until the client has migrated since the latest announcement (RFC 9000, sections 9.1 and 9.5). Its packets then
    /// use the connection id with which it has validated a path, and are not merely probes.
    pub async fn moved(&self) {
        let mut progress = self.0.progress.subscribe();
        let _ = progress.wait_for(|progress| progress.has_moved).await;
        self.stop_watching();
    }

    /// Ignore what the client does until the next announcement.
    pub fn stop_watching(&self) {
        self.0.is_watching.store(false, Relaxed);
    }
}

impl Shared {
    fn on_parameters(&self, peer: &Parameters) {
        for announcement in [Announcement::Move, Announcement::HandOver] {
            if peer.iter().any(|(id, _)| *id == announcement.parameter()) {
                self.supported.fetch_or(bit(announcement), Relaxed);
            }
        }
    }

    fn on_received(&self, packet: &Packet<'_>) {
        let id = destination(packet.header);
        let mut state = self.state.lock();
        let mut is_probe = true;
        for frame in frames::read(packet.payload) {
            match frame {
                Frame::PathChallenge { .. } => state.probed = Some(id.to_vec()),
                Frame::PathResponse { .. } | Frame::NewConnectionId { .. } | Frame::Probing => {}
                Frame::Ack(ack) => {
                    is_probe = false;
                    let mut carriers = state.carriers.iter();
                    let acknowledged = carriers.any(|(path, number)| {
                        *path == ack.path && ack.ranges().any(|range| range.contains(number))
                    });
                    if acknowledged {
                        state.carriers.clear();
                        self.progress
                            .send_modify(|progress| progress.is_acknowledged = true);
                    }
                }
                _ => is_probe = false,
            }
        }
        if !is_probe && state.probed.as_deref() == Some(id) {
            state.probed = None;
            self.progress
                .send_modify(|progress| progress.has_moved = true);
        }
    }
}

/// Return the destination connection id in the header of a 1-RTT packet (RFC 9000, section 17.3.1). It is between the
/// first byte, which has the length of the packet number, and the packet number.
pub(crate) fn destination(header: &[u8]) -> &[u8] {
    let number = header
        .first()
        .map_or(0, |first| usize::from(first & 0x03) + 1);
    header
        .get(1..header.len().saturating_sub(number))
        .unwrap_or_default()
}

/// The observer of a connection to whose client addresses can be announced. `inner` observes it, too.
#[derive(Debug)]
pub struct Announced<O> {
    /// The other observer.
    pub inner: Arc<O>,
    /// Announces addresses to the client.
    pub announcer: Announcer,
}

impl<O> Announced<O> {
    /// Wrap `inner`.
    pub fn new(inner: O) -> Self {
        Self {
            inner: Arc::new(inner),
            announcer: Announcer::default(),
        }
    }
}

impl<O: Observer> Observer for Announced<O> {
    #[inline]
    fn on_sent(&self, packet: &Packet<'_>) {
        self.inner.on_sent(packet);
    }

    #[inline]
    fn on_received(&self, packet: &Packet<'_>) {
        self.inner.on_received(packet);
    }

    fn on_one_rtt_keys(&self, agreed: &Negotiated<'_>) {
        self.inner.on_one_rtt_keys(agreed);
    }

    fn on_handshake_complete(&self, agreed: &Negotiated<'_>) {
        self.announcer.0.on_parameters(agreed.peer);
        self.inner.on_handshake_complete(agreed);
    }

    fn on_peer_parameters(&self, peer: &mut Parameters) -> bool {
        self.inner.on_peer_parameters(peer)
    }

    #[inline]
    fn seal(&self, outgoing: &mut Outgoing<'_>) -> Nonce {
        let shared = &self.announcer.0;
        if shared.carrier.unpack(outgoing.payload).is_some() {
            let mut state = shared.state.lock();
            state.carriers.push((outgoing.path, outgoing.number));
        }
        self.inner.seal(outgoing)
    }

    #[inline]
    fn sealed_remotely(&self, generation: u32) -> u64 {
        self.inner.sealed_remotely(generation)
    }

    #[inline]
    fn on_opened(&self, incoming: &mut Incoming<'_>) {
        // It may translate the packet numbers of acknowledgments into those that noq has chosen.
        self.inner.on_opened(incoming);
        if self.announcer.0.is_watching.load(Relaxed) {
            self.announcer.0.on_received(&incoming.packet());
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;

    /// A header with the connection id `id` and a packet number of two bytes.
    fn header(id: u8) -> [u8; 7] {
        [0x41, id, id, id, id, 0, 1]
    }

    struct Connection(Announced<()>);

    impl Connection {
        /// A connection to whose client an address is announced in packet `number`.
        fn announcing(number: u64) -> Self {
            let connection = Self(Announced::new(()));
            let shared = &connection.0.announcer.0;
            let frame = ServerAddresses::default().to_frame(Announcement::Move);
            shared.carrier.expect(frame.clone().into());
            shared.is_watching.store(true, Relaxed);
            let mut payload = [&[0x31, frame.len() as u8], &frame[..]].concat();
            connection.0.seal(&mut Outgoing {
                path: 0,
                number,
                generation: 0,
                header: &mut header(1),
                payload: &mut payload,
                needs_long_number: false,
                longer_payload: None,
            });
            assert_eq!(payload, [&[0, 0], &frame[..]].concat());
            connection
        }

        fn receive(&self, id: u8, payload: &[u8]) -> Progress {
            let mut payload = BytesMut::from(payload);
            self.0.on_opened(&mut Incoming {
                path: 0,
                number: 0,
                generation: 0,
                header: &header(id),
                payload: &mut payload,
                tag: None,
            });
            *self.0.announcer.0.progress.borrow()
        }
    }

    const CHALLENGE: &[u8] = &[0x1a, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0];
    const PING: &[u8] = &[0x01];

    /// An ACK frame of one packet.
    fn ack(number: u8) -> [u8; 5] {
        [0x02, number, 0, 0, 0]
    }

    #[test]
    fn only_the_acknowledgment_of_the_carrying_packet_counts() {
        let connection = Connection::announcing(9);
        assert!(!connection.receive(1, &ack(8)).is_acknowledged);
        assert!(connection.receive(1, &ack(9)).is_acknowledged);
    }

    #[test]
    fn client_has_moved_once_it_uses_the_validated_connection_id() {
        let connection = Connection::announcing(9);
        assert!(!connection.receive(1, PING).has_moved);
        assert!(!connection.receive(2, CHALLENGE).has_moved);
        assert!(!connection.receive(1, PING).has_moved);
        assert!(connection.receive(2, PING).has_moved);
    }

    #[test]
    fn only_clients_with_the_parameter_understand_an_announcement() {
        let announcer = Announcer::default();
        assert!(!announcer.is_supported(Announcement::Move));
        let parameters = vec![(Announcement::HandOver.parameter(), Bytes::new())];
        announcer.0.on_parameters(&parameters);
        assert!(!announcer.is_supported(Announcement::Move));
        assert!(announcer.is_supported(Announcement::HandOver));
    }
}
