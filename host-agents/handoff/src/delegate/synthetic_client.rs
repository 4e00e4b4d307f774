// SPDX-License-Identifier: Apache-2.0
//! A synthetic client: turns the balancer's feedback about the real client into packets for the local QUIC stack.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use bytes::{BufMut, Bytes};
use frontage_quic_wire::{parameters, write_varint};
use noq::ConnectionId;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc::UnboundedSender;

use super::Error;
use super::keys::SAMPLE_LEN;
use crate::grant::Grant;

/// A datagram for noq, and its source address.
pub type Datagram = (SocketAddr, Bytes);

/// Minimum length of a client's first datagram in octets (RFC 9000, section 14.1).
const MIN_INITIAL_LEN: usize = 1200;
/// Maximum length of the frames in a packet in octets, below what noq reads at once.
pub const MAX_FRAMES: usize = 1400;
/// First octets: form, fixed bit, type and a packet number of four octets (RFC 9000, section 17).
const INITIAL: u8 = 0xc3;
const HANDSHAKE: u8 = 0xe3;
const SHORT: u8 = 0x43;
const PHASE: u8 = 0x04;
/// Frame types (RFC 9000, section 19).
const PING: u8 = 0x01;
const CRYPTO: u8 = 0x06;
const STREAM: u8 = 0x0e;
const MAX_STREAM_DATA: u8 = 0x11;

/// The synthetic client of one delegated connection.
pub struct SyntheticClient {
    /// noq's connection id.
    id: Arc<OnceLock<ConnectionId>>,
    inbox: UnboundedSender<Datagram>,
    state: Mutex<State>,
}

struct State {
    /// The address by which noq knows the client.
    address: SocketAddr,
    /// Number of the next packet.
    next: u32,
}

impl SyntheticClient {
    /// Create a client at `address`. `id` is set once noq has accepted the connection.
    pub fn new(
        address: SocketAddr,
        id: Arc<OnceLock<ConnectionId>>,
        inbox: UnboundedSender<Datagram>,
    ) -> Self {
        Self {
            id,
            inbox,
            state: Mutex::new(State { address, next: 0 }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Migrate to `address`. noq validates the address, and resets congestion control, RTT estimate and MTU (RFC 9000,
    /// sections 9.3 and 9.4).
    pub fn migrate(&self, address: SocketAddr, phase: bool) -> Result<(), Error> {
        self.state().address = address;
        // noq may send three times as much as it has received, and its PATH_CHALLENGE needs a datagram of 1200 octets
        // (RFC 9000, section 8.2.1).
        let mut frames = vec![0; MIN_INITIAL_LEN];
        frames[0] = PING;
        self.send(&frames, phase)
    }

    /// Send the client's part of the handshake in one datagram, from connection id `source`. `destination` must be unique
    /// among the handshakes in progress.
    pub fn start_handshake(&self, source: &ConnectionId, destination: u64) {
        let mut datagram = Vec::with_capacity(MIN_INITIAL_LEN);
        let destination = destination.to_be_bytes();
        put_long_packet(&mut datagram, INITIAL, &destination, source, 0);
        let length = MIN_INITIAL_LEN - datagram.len();
        put_long_packet(&mut datagram, HANDSHAKE, &[], source, length);
        let _ = self.inbox.send((self.state().address, datagram.into()));
    }

    /// Send a 1-RTT packet with `frames`, in noq's key phase.
    pub fn send(&self, frames: &[u8], phase: bool) -> Result<(), Error> {
        let state = &mut *self.state();
        let id = self.id.get().map_or(&[][..], |id| id);
        let header_len = 1 + id.len() + 4;
        let mut packet = Vec::with_capacity(header_len + frames.len().max(SAMPLE_LEN));
        packet.put_u8(SHORT | if phase { PHASE } else { 0 });
        packet.put_slice(id);
        packet.put_u32(state.next);
        packet.put_slice(frames);
        pad(&mut packet, header_len + SAMPLE_LEN);
        state.next += 1;
        let sent = self.inbox.send((state.address, packet.into()));
        sent.map_err(|_| Error::Closed)
    }

    /// Send the request `data` with FIN on a stream, and MAX_STREAM_DATA if it differs from the transport parameter.
    pub fn request(
        &self,
        stream: u64,
        max_stream_data: Option<u64>,
        data: &[u8],
        phase: bool,
    ) -> Result<(), Error> {
        const MAX_FRAME_HEADER: usize = 1 + 3 * 8;
        let size = MAX_FRAMES - 2 * MAX_FRAME_HEADER;
        let mut chunks = data.chunks(size).peekable();
        let mut offset = 0;
        loop {
            let chunk = chunks.next().unwrap_or_default();
            let fin = chunks.peek().is_none();
            let mut frames = vec![STREAM | u8::from(fin)];
            for value in [stream, offset, chunk.len() as u64] {
                write_varint(&mut frames, value);
            }
            frames.extend(chunk);
            offset += chunk.len() as u64;
            if let Some(limit) = max_stream_data.filter(|_| fin) {
                frames.push(MAX_STREAM_DATA);
                write_varint(&mut frames, stream);
                write_varint(&mut frames, limit);
            }
            self.send(&frames, phase)?;
            if fin {
                return Ok(());
            }
        }
    }
}

/// Append a long header packet of at least `min_len` octets. It contains one octet of CRYPTO, which the session ignores.
fn put_long_packet(
    datagram: &mut Vec<u8>,
    kind: u8,
    destination: &[u8],
    source: &[u8],
    min_len: usize,
) {
    let start = datagram.len();
    datagram.put_u8(kind);
    datagram.put_u32(frontage_quic::session::VERSION);
    for id in [destination, source] {
        datagram.put_u8(id.len() as u8);
        datagram.put_slice(id);
    }
    if kind == INITIAL {
        // No token.
        datagram.put_u8(0);
    }
    let mut payload = vec![CRYPTO, 0, 1, 0];
    // The length takes two octets, the packet number four.
    let length = min_len.saturating_sub(datagram.len() - start + 2 + 4);
    pad(&mut payload, length.max(SAMPLE_LEN));
    datagram.put_u16(1 << 14 | (4 + payload.len()) as u16);
    datagram.put_u32(0);
    datagram.put_slice(&payload);
}

fn pad(packet: &mut Vec<u8>, length: usize) {
    packet.resize(packet.len().max(length), 0);
}

/// Transport parameters of the client that noq gets (RFC 9000, section 18.2): `max_udp_payload_size`,
/// `initial_max_stream_data_bidi_local`, `ack_delay_exponent`, `max_ack_delay`. The balancer handles timeouts, migration,
/// extensions and streams that the server opens.
const FORWARDED: [u64; 4] = [0x03, 0x05, 0x0a, 0x0b];
const INITIAL_MAX_DATA: u64 = 0x04;
pub const INITIAL_SOURCE_CONNECTION_ID: u64 = 0x0f;

/// Return the synthetic client's transport parameters, encoded.
pub fn parameters(grant: &Grant, source: &ConnectionId) -> Bytes {
    let mut parameters = parameters::read(&grant.client_parameters);
    parameters.retain(|(id, _)| FORWARDED.contains(id));
    parameters.push((INITIAL_MAX_DATA, parameters::encode_integer(grant.credit)));
    parameters.push((INITIAL_SOURCE_CONNECTION_ID, Bytes::copy_from_slice(source)));
    let mut wire = Vec::new();
    parameters::write(&parameters, &mut wire);
    wire.into()
}
