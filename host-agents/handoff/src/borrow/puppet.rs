//! The client that noq believes to have: what the balancer tells of the true one becomes packets of its.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use bytes::{BufMut, Bytes};
use frontage_quic_wire::{parameters, write_varint};
use noq::ConnectionId;
use tokio::sync::mpsc::UnboundedSender;

use super::Error;
use super::keys::SAMPLE;
use crate::grant::Grant;

/// A datagram for noq, and its sender.
pub type Datagram = (SocketAddr, Bytes);

/// Octets of a datagram that begins a connection (RFC 9000, section 14.1).
const FIRST: usize = 1200;
/// Most octets of frames in a packet, less than what noq reads at once.
pub const FRAMES: usize = 1400;
/// First octets: form, fixed bit, type and a packet number of four octets (RFC 9000, section 17).
const INITIAL: u8 = 0xc3;
const HANDSHAKE: u8 = 0xe3;
const SHORT: u8 = 0x43;
const PHASE: u8 = 0x04;
/// Types of frames (RFC 9000, section 19).
const PING: u8 = 0x01;
const CRYPTO: u8 = 0x06;
const STREAM: u8 = 0x0e;
const MAX_STREAM_DATA: u8 = 0x11;

/// Of one borrowed connection.
pub struct Puppet {
    /// noq's for the connection.
    id: Arc<OnceLock<ConnectionId>>,
    inbox: UnboundedSender<Datagram>,
    state: Mutex<State>,
}

struct State {
    /// By which noq knows it.
    address: SocketAddr,
    /// Its next packet's number.
    next: u32,
}

impl Puppet {
    /// At `address`. `id` has noq's connection id once noq has accepted the connection.
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
        self.state.lock().expect("nobody panics with it")
    }

    /// Goes to `address`, so that noq begins anew there: congestion control, round trip and MTU, and whether the client is there at all
    /// (RFC 9000, sections 9.3 and 9.4).
    pub fn moved(&self, address: SocketAddr, phase: bool) -> Result<(), Error> {
        self.state().address = address;
        // No smaller, or noq might not send the PATH_CHALLENGE in a datagram as long (RFC 9000, section 8.2.1) for a third of it.
        let mut frames = vec![0; FIRST];
        frames[0] = PING;
        self.send(&frames, phase)
    }

    /// The client's whole part of the handshake in one datagram, from connection id `source`. `destination`, at least eight octets, is of no other
    /// connection under way.
    pub fn greet(&self, source: &ConnectionId, destination: u64) {
        let mut datagram = Vec::with_capacity(FIRST);
        long(
            &mut datagram,
            INITIAL,
            &destination.to_be_bytes(),
            source,
            0,
        );
        let length = FIRST - datagram.len();
        long(&mut datagram, HANDSHAKE, &[], source, length);
        let _ = self.inbox.send((self.state().address, datagram.into()));
    }

    /// A packet of `frames`, in noq's key phase.
    pub fn send(&self, frames: &[u8], phase: bool) -> Result<(), Error> {
        let state = &mut *self.state();
        let id = self.id.get().map_or(&[][..], |id| id);
        let header_len = 1 + id.len() + 4;
        let mut packet = Vec::with_capacity(header_len + frames.len().max(SAMPLE));
        packet.put_u8(SHORT | if phase { PHASE } else { 0 });
        packet.put_slice(id);
        packet.put_u32(state.next);
        packet.put_slice(frames);
        pad(&mut packet, header_len + SAMPLE);
        state.next += 1;
        let sent = self.inbox.send((state.address, packet.into()));
        sent.map_err(|_| Error::Closed)
    }

    /// A whole stream, and how much may be sent on it if that is not what the parameters say.
    pub fn request(
        &self,
        stream: u64,
        max_stream_data: Option<u64>,
        data: &[u8],
        phase: bool,
    ) -> Result<(), Error> {
        const HEADER: usize = 1 + 3 * 8;
        let size = FRAMES - 2 * HEADER;
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

/// A packet of one octet of CRYPTO, whatever TLS makes of it, that takes `room` octets at least.
fn long(datagram: &mut Vec<u8>, kind: u8, destination: &[u8], source: &[u8], room: usize) {
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
    // The length takes two octets, the number four.
    let length = room.saturating_sub(datagram.len() - start + 2 + 4);
    pad(&mut payload, length.max(SAMPLE));
    datagram.put_u16(1 << 14 | (4 + payload.len()) as u16);
    datagram.put_u32(0);
    datagram.put_slice(&payload);
}

fn pad(packet: &mut Vec<u8>, length: usize) {
    packet.resize(packet.len().max(length), 0);
}

/// Transport parameters (RFC 9000, section 18.2) that noq is to know: `max_udp_payload_size`, `initial_max_stream_data_bidi_local`,
/// `ack_delay_exponent`, `max_ack_delay`. Time-outs, migration, extensions and streams of the server's are the balancer's business.
const KNOWN: [u64; 4] = [0x03, 0x05, 0x0a, 0x0b];
const INITIAL_MAX_DATA: u64 = 0x04;
pub const INITIAL_SOURCE_CONNECTION_ID: u64 = 0x0f;

/// The puppet's transport parameters.
pub fn parameters(grant: &Grant, source: &ConnectionId) -> Bytes {
    let mut parameters = parameters::read(&grant.client_parameters);
    parameters.retain(|(id, _)| KNOWN.contains(id));
    parameters.push((INITIAL_MAX_DATA, parameters::encode_integer(grant.credit)));
    parameters.push((INITIAL_SOURCE_CONNECTION_ID, Bytes::copy_from_slice(source)));
    let mut wire = Vec::new();
    parameters::write(&parameters, &mut wire);
    wire.into()
}
