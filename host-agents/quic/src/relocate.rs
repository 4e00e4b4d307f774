// SPDX-License-Identifier: Apache-2.0
//! The client's side of moves: receive the addresses that a server announces, and validate the path to one of them
//! before the connection uses it (RFC 9000, sections 8.2 and 9.6).
//!
//! noq accepts packets from the address to which it connected, and validates no other. So a [`Relocator`], which
//! observes the connection's packets, sends the PATH_CHALLENGE itself, to the next connection id that noq will use. The
//! socket under noq sends every packet to that connection id to the new address ([`Relocator::is_probe`]).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use frontage_quic_wire::frames::{self, Frame};
use frontage_quic_wire::parameters::Parameters;
use frontage_quic_wire::server_addresses::{ALTERNATIVE_ADDRESS, Announcement, ServerAddresses};
use frontage_quic_wire::{Reader, parameters};
use noq::{Connection, PathId, SendDatagramError};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::announce::destination;
use crate::carrier::Carrier;
use crate::session::{Incoming, Negotiated, Nonce, Observer, Outgoing, Packet};

/// Bytes of the frames in a packet with a PATH_CHALLENGE. With a connection id of 8 bytes, its datagram has at least the
/// 1,200 bytes that RFC 9000, section 8.2.1, requires, and with one of 20 bytes at most [`MIN_MTU`].
const PROBE_LENGTH: usize = 1180;
/// Initial MTU, in bytes of UDP payload, that the client's transport configuration needs: IPv6's least MTU without
/// IP and UDP headers (RFC 8200, section 5).
pub const MIN_MTU: u16 = 1232;
/// How often a path is probed before it counts as unusable.
const MAX_PROBES: u32 = 4;
/// Least time to wait for a PATH_RESPONSE. The wait doubles with each probe.
const MIN_PROBE_TIMEOUT: Duration = Duration::from_millis(50);
/// How often a packet is tried for a probe. One with other frames, such as ACK, is not a probing packet.
const MAX_CARRIERS: u32 = 200;
/// Pause after a packet that was not a probing packet.
const CARRIER_PAUSE: Duration = Duration::from_millis(2);
/// Time within which noq sends a packet.
const SEND_TIMEOUT: Duration = Duration::from_millis(500);

/// The type of PATH_CHALLENGE and of PING.
const PATH_CHALLENGE: u8 = 0x1a;
const PING: u8 = 0x01;
/// The transport parameter preferred_address (RFC 9000, section 18.2), and the bytes before its connection id.
const PREFERRED_ADDRESS: u64 = 0x0d;
const ADDRESSES: usize = 4 + 2 + 16 + 2;

/// Most connection ids of the server that are remembered: more than the five that noq keeps, the current one included.
const MAX_IDS: usize = 16;

/// Why a path was not validated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValidationError {
    /// The server has issued no connection id for another path.
    #[error("the server has issued no connection id for another path")]
    NoConnectionId,
    /// The probe could not be sent.
    #[error(transparent)]
    NotSent(#[from] SendDatagramError),
    /// All packets had other frames, or noq sent none.
    #[error("the connection has sent no packet for the probe")]
    Busy,
    /// No response came.
    #[error("the server did not respond on the new path")]
    NoResponse,
}

/// Receives announced addresses and validates paths of one connection.
#[derive(Clone, Debug, Default)]
pub struct Relocator(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    carrier: Carrier,
    state: Mutex<State>,
    probe: watch::Sender<Progress>,
    moves: watch::Sender<Option<ServerAddresses>>,
    hand_overs: watch::Sender<Option<ServerAddresses>>,
}

#[derive(Debug, Default)]
struct State {
    /// Connection ids of the server that may be in use or are unused, by sequence number. The first one, from the
    /// handshake, is missing.
    ids: BTreeMap<u64, Vec<u8>>,
    /// Data of the current PATH_CHALLENGE.
    challenge: Option<[u8; 8]>,
    /// Connection id to which the probe was sent.
    probe_id: Option<Vec<u8>>,
}

/// How far the current probe is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Progress {
    #[default]
    Waiting,
    NotProbing,
    NoConnectionId,
    Sent,
    Validated,
}

impl Relocator {
    /// Return the transport parameters with which a client says that it follows announcements.
    pub fn parameters() -> Parameters {
        [Announcement::Move, Announcement::HandOver]
            .map(|announcement| (announcement.parameter(), Bytes::new()))
            .into()
    }

    /// Return the latest addresses to which the connection should migrate.
    pub fn moves(&self) -> watch::Receiver<Option<ServerAddresses>> {
        self.0.moves.subscribe()
    }

    /// Return the latest addresses at which the next connection should be opened.
    pub fn hand_overs(&self) -> watch::Receiver<Option<ServerAddresses>> {
        self.0.hand_overs.subscribe()
    }

    /// Return whether `datagram` is sent to the connection id of the path that is being validated.
    pub fn is_probe(&self, datagram: &[u8]) -> bool {
        let state = self.0.state.lock();
        state.probe_id.as_ref().is_some_and(|id| {
            datagram.first().is_some_and(|first| first & 0x80 == 0)
                && datagram.get(1..).is_some_and(|rest| rest.starts_with(id))
        })
    }

    /// Validate a new path of `connection`. During this call, the socket sends what [`Relocator::is_probe`] names along
    /// that path, and accepts packets from any address.
    ///
    /// # Errors
    /// Why the path is not validated.
    pub async fn validate(&self, connection: &Connection) -> Result<(), ValidationError> {
        let result = self.probe(connection).await;
        let mut state = self.0.state.lock();
        (state.challenge, state.probe_id) = (None, None);
        result
    }

    async fn probe(&self, connection: &Connection) -> Result<(), ValidationError> {
        let mut progress = self.0.probe.subscribe();
        for attempt in 0..MAX_PROBES {
            self.send_probe(connection).await?;
            let rtt = connection.rtt(PathId::ZERO).unwrap_or_default();
            let wait = MIN_PROBE_TIMEOUT.max(3 * rtt) * (1 << attempt);
            let validated = progress.wait_for(|progress| *progress == Progress::Validated);
            if timeout(wait, validated).await.is_ok() {
                return Ok(());
            }
        }
        Err(ValidationError::NoResponse)
    }

    /// Send a PATH_CHALLENGE with new data in a packet of its own.
    async fn send_probe(&self, connection: &Connection) -> Result<(), ValidationError> {
        let data: [u8; 8] = rand::random();
        let mut frames = vec![PATH_CHALLENGE];
        frames.extend(data);
        frames.resize(PROBE_LENGTH, 0);
        let frames = Bytes::from(frames);
        for _ in 0..MAX_CARRIERS {
            self.0.state.lock().challenge = Some(data);
            self.0.probe.send_replace(Progress::Waiting);
            let mut progress = self.0.probe.subscribe();
            self.0.carrier.send(connection, frames.clone())?;
            let sealed = progress.wait_for(|progress| *progress != Progress::Waiting);
            match timeout(SEND_TIMEOUT, sealed)
                .await
                .map(|sealed| sealed.map(|p| *p))
            {
                Ok(Ok(Progress::Sent | Progress::Validated)) => return Ok(()),
                Ok(Ok(Progress::NoConnectionId)) => return Err(ValidationError::NoConnectionId),
                Ok(Ok(_)) => sleep(CARRIER_PAUSE).await,
                Ok(Err(_)) | Err(_) => return Err(ValidationError::Busy),
            }
        }
        Err(ValidationError::Busy)
    }
}

impl State {
    /// Return the connection id that noq will use after `current`: that with the next sequence number.
    fn id_after(&self, current: &[u8]) -> Option<&[u8]> {
        let mut ids = self.ids.iter();
        let used = ids.find_map(|(sequence, id)| (id == current).then_some(*sequence));
        let mut later = self.ids.range(used.map_or(0, |used| used + 1)..);
        let (_, next) = later.next()?;
        (next.len() == current.len()).then_some(next)
    }

    fn insert(&mut self, sequence: u64, retire_prior_to: u64, id: &[u8]) {
        self.ids.insert(sequence, id.to_vec());
        self.ids = self.ids.split_off(&retire_prior_to);
        if self.ids.len() > MAX_IDS {
            self.ids.pop_first();
        }
    }
}

impl Shared {
    /// Turn the packet with the probe at `carried` into a probing packet, or remove the probe if there are other frames.
    fn seal_probe(&self, outgoing: &mut Outgoing<'_>, carried: std::ops::Range<usize>) {
        let mut state = self.state.lock();
        let is_probing = frames::read(outgoing.payload).all(|frame| {
            matches!(frame, Frame::Probing)
                || matches!(frame, Frame::PathChallenge { data } if Some(data) == state.challenge)
        });
        let current = destination(outgoing.header);
        let outcome = match state.id_after(current).map(<[u8]>::to_vec) {
            Some(next) if is_probing => {
                outgoing.header[1..=next.len()].copy_from_slice(&next);
                state.probe_id = Some(next);
                Progress::Sent
            }
            Some(_) => Progress::NotProbing,
            None => Progress::NoConnectionId,
        };
        if outcome != Progress::Sent {
            // noq expects an acknowledgment.
            outgoing.payload[carried.clone()].fill(0);
            outgoing.payload[carried.start] = PING;
        }
        drop(state);
        self.probe.send_replace(outcome);
    }

    fn on_opened(&self, payload: &mut [u8]) {
        let mut announced = Vec::new();
        for (span, frame) in frames::read_with_spans(payload) {
            match frame {
                Frame::NewConnectionId {
                    sequence,
                    retire_prior_to,
                    id,
                } => self.state.lock().insert(sequence, retire_prior_to, id),
                Frame::PathResponse { data } if self.state.lock().challenge == Some(data) => {
                    self.probe.send_replace(Progress::Validated);
                }
                Frame::ServerAddresses { announcement, body } => {
                    let set = ServerAddresses::read(&mut Reader(body));
                    announced.extend(set.map(|set| (span, announcement, set)));
                }
                _ => {}
            }
        }
        for (span, announcement, set) in announced {
            payload[span.clone()].fill(0);
            payload[span.start] = PING;
            let latest = match announcement {
                Announcement::Move => &self.moves,
                Announcement::HandOver => &self.hand_overs,
            };
            latest.send_if_modified(|latest| {
                let is_new = latest
                    .as_ref()
                    .is_none_or(|known| known.sequence < set.sequence);
                if is_new {
                    *latest = Some(set);
                }
                is_new
            });
        }
    }
}

impl Observer for Relocator {
    fn on_sent(&self, _: &Packet<'_>) {}

    fn on_received(&self, _: &Packet<'_>) {}

    fn on_handshake_complete(&self, agreed: &Negotiated<'_>) {
        let mut parameters = agreed.peer.iter();
        let preferred = parameters.find(|(id, _)| *id == PREFERRED_ADDRESS);
        // Its connection id has sequence number 1 (RFC 9000, section 5.1.1).
        if let Some((_, value)) = preferred
            && let Some((length, rest)) = value.get(ADDRESSES..).and_then(<[u8]>::split_first)
            && let Some(id) = rest.get(..usize::from(*length))
        {
            self.0.state.lock().insert(1, 0, id);
        }
    }

    /// Make noq close the connection with TRANSPORT_PARAMETER_ERROR if the server sends the clients' parameter, as section
    /// 3 of the draft requires: a max_udp_payload_size below 1,200 is invalid (RFC 9000, section 18.2).
    fn on_peer_parameters(&self, peer: &mut Parameters) -> bool {
        const MAX_UDP_PAYLOAD_SIZE: u64 = 0x03;
        let is_invalid = peer.iter().any(|(id, _)| *id == ALTERNATIVE_ADDRESS);
        if is_invalid {
            peer.retain(|(id, _)| *id != MAX_UDP_PAYLOAD_SIZE);
            peer.push((MAX_UDP_PAYLOAD_SIZE, parameters::encode_integer(0)));
        }
        is_invalid
    }

    fn seal(&self, outgoing: &mut Outgoing<'_>) -> Nonce {
        if let Some(carried) = self.0.carrier.unpack(outgoing.payload) {
            self.0.seal_probe(outgoing, carried);
        }
        Nonce {
            path: outgoing.path,
            number: outgoing.number,
        }
    }

    fn on_opened(&self, incoming: &mut Incoming<'_>) {
        self.0.on_opened(incoming.payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

    /// A header with the connection id `id` and a packet number of one byte.
    fn header(id: u8) -> [u8; 6] {
        [0x40, id, id, id, id, 9]
    }

    /// A NEW_CONNECTION_ID frame with the sequence number and the id `number`.
    fn new_id(number: u8, retire_prior_to: u8) -> Vec<u8> {
        let mut frame = vec![0x18, number, retire_prior_to, 4];
        frame.extend([number; 4]);
        frame.extend([0; 16]);
        frame
    }

    fn receive(relocator: &Relocator, payload: &[u8]) -> Vec<u8> {
        let mut payload = payload.to_vec();
        relocator.0.on_opened(&mut payload);
        payload
    }

    /// Seal a packet to `id` with a probe and, before it, `other` frames. Return header and payload.
    fn seal(relocator: &Relocator, id: u8, other: &[u8]) -> ([u8; 6], Vec<u8>) {
        let probe = [&[PATH_CHALLENGE], &DATA[..], &[0; 3]].concat();
        relocator.0.state.lock().challenge = Some(DATA);
        relocator.0.carrier.expect(probe.clone().into());
        let mut payload = [other, &[0x31, probe.len() as u8], &probe].concat();
        let mut header = header(id);
        relocator.seal(&mut Outgoing {
            path: 0,
            number: 0,
            generation: 0,
            header: &mut header,
            payload: &mut payload,
            needs_long_number: false,
            longer_payload: None,
        });
        (header, payload)
    }

    #[test]
    fn probe_goes_to_the_next_connection_id() {
        let relocator = Relocator::default();
        receive(&relocator, &[new_id(2, 0), new_id(1, 0)].concat());
        let (sealed, payload) = seal(&relocator, 77, &[]);
        assert_eq!(sealed, header(1));
        let probe = [&[0, 0, PATH_CHALLENGE], &DATA[..], &[0; 3]].concat();
        assert_eq!(payload, probe);
        assert_eq!(*relocator.0.probe.borrow(), Progress::Sent);
        assert!(relocator.is_probe(&header(1)) && !relocator.is_probe(&header(77)));
        let (sealed, _) = seal(&relocator, 1, &[]);
        assert_eq!(sealed, header(2));
        // All others are in use or retired.
        seal(&relocator, 2, &[]);
        assert_eq!(*relocator.0.probe.borrow(), Progress::NoConnectionId);
        receive(&relocator, &new_id(3, 3));
        assert_eq!(relocator.0.state.lock().ids.len(), 1);
    }

    #[test]
    fn packet_with_other_frames_carries_no_probe() {
        let relocator = Relocator::default();
        receive(&relocator, &new_id(1, 0));
        let ack = [0x02, 9, 0, 0, 0];
        let (sealed, payload) = seal(&relocator, 0, &ack);
        assert_eq!(sealed, header(0));
        assert_eq!(payload[..8], [0x02, 9, 0, 0, 0, 0, 0, PING]);
        assert!(payload[8..].iter().all(|byte| *byte == 0));
        assert_eq!(*relocator.0.probe.borrow(), Progress::NotProbing);
    }

    #[test]
    fn only_the_response_to_the_challenge_validates_the_path() {
        let relocator = Relocator::default();
        receive(&relocator, &new_id(1, 0));
        seal(&relocator, 0, &[]);
        receive(&relocator, &[0x1b, 8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(*relocator.0.probe.borrow(), Progress::Sent);
        receive(&relocator, &[&[0x1b], &DATA[..]].concat());
        assert_eq!(*relocator.0.probe.borrow(), Progress::Validated);
    }

    #[test]
    fn latest_addresses_are_announced_and_hidden_from_noq() {
        let relocator = Relocator::default();
        let moves = relocator.moves();
        let frame = |sequence| {
            let set = ServerAddresses {
                sequence,
                ..ServerAddresses::default()
            };
            set.to_frame(Announcement::Move)
        };
        for (sequence, latest) in [(2, 2), (1, 2), (2, 2), (3, 3)] {
            let payload = receive(&relocator, &[&frame(sequence)[..], &[0x1e]].concat());
            assert_eq!(payload, [PING, 0, 0, 0, 0, 0, 0, 0x1e]);
            assert_eq!(
                moves.borrow().as_ref().map(|set| set.sequence),
                Some(latest)
            );
        }
        assert!(relocator.hand_overs().borrow().is_none());
    }

    #[test]
    fn connection_id_of_the_preferred_address_comes_first() {
        let relocator = Relocator::default();
        receive(&relocator, &new_id(2, 0));
        let mut value = vec![0; ADDRESSES];
        value.extend([4, 1, 1, 1, 1]);
        value.extend([0; 16]);
        relocator.on_handshake_complete(&Negotiated {
            peer: &vec![(PREFERRED_ADDRESS, value.into())],
            suite: 0x1301,
            secrets: crate::session::TrafficSecrets {
                client: Vec::new(),
                server: Vec::new(),
            },
        });
        assert_eq!(seal(&relocator, 0, &[]).0, header(1));
    }

    #[test]
    fn server_that_sends_the_clients_parameter_is_rejected() {
        let relocator = Relocator::default();
        let mut peer = vec![(0x03, parameters::encode_integer(1472))];
        assert!(!relocator.on_peer_parameters(&mut peer));
        peer.push((ALTERNATIVE_ADDRESS, Bytes::new()));
        assert!(relocator.on_peer_parameters(&mut peer));
        assert!(peer.contains(&(0x03, parameters::encode_integer(0))));
        assert!(!peer.contains(&(0x03, parameters::encode_integer(1472))));
    }
}
