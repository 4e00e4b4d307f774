// SPDX-License-Identifier: Apache-2.0
//! A minimal balancer: a frontage-quic server whose session intercepts the packets of one path.

use std::sync::{Arc, Mutex};

use bytes::BytesMut;
use frontage_quic_wire::{read_varint, write_varint};
use noq::crypto::{
    self, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey,
    UnsupportedVersion,
};
use noq::{ConnectionId, PathId, Side};
use noq_proto::TransportError;
use noq_proto::transport_parameters::TransportParameters;
use tokio::sync::mpsc;

/// Update for the owner of the delegated path.
pub enum Update {
    /// Frames about the path.
    Feedback(Vec<u8>),
    /// The server's keys were updated to this generation.
    Keys(u32),
}

/// The intercepted path.
pub struct Interception {
    pub path: u32,
    pub state: Mutex<State>,
    updates: mpsc::UnboundedSender<Update>,
}

#[derive(Default)]
pub struct State {
    /// The client's connection id on the path, once a packet was sent there.
    pub connection_id: Option<ConnectionId>,
    /// The first number that the balancer has not used.
    pub next: u64,
    pub granted: bool,
    generation: u32,
}

impl Interception {
    pub fn new(path: u32) -> (Arc<Self>, mpsc::UnboundedReceiver<Update>) {
        let (updates, received) = mpsc::unbounded_channel();
        let state = Mutex::default();
        (
            Arc::new(Self {
                path,
                state,
                updates,
            }),
            received,
        )
    }
}

pub struct Config<C> {
    pub inner: C,
    pub interception: Arc<Interception>,
}

impl<C: crypto::ServerConfig> crypto::ServerConfig for Config<C> {
    fn initial_keys(&self, version: u32, id: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.inner.initial_keys(version, id)
    }

    fn retry_tag(&self, version: u32, id: ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.inner.retry_tag(version, id, packet)
    }

    fn start_session(&self, version: u32, own: &TransportParameters) -> Box<dyn crypto::Session> {
        Box::new(Session {
            inner: self.inner.start_session(version, own),
            interception: self.interception.clone(),
            sets: 0,
            generation: 0,
        })
    }
}

struct Session {
    inner: Box<dyn crypto::Session>,
    interception: Arc<Interception>,
    sets: u32,
    generation: u32,
}

impl Session {
    fn wrap(&self, keys: KeyPair<Box<dyn PacketKey>>) -> KeyPair<Box<dyn PacketKey>> {
        let wrap = |inner| {
            Box::new(Key {
                inner,
                interception: self.interception.clone(),
                generation: self.generation,
            })
        };
        KeyPair {
            local: wrap(keys.local),
            remote: wrap(keys.remote),
        }
    }
}

impl crypto::Session for Session {
    fn initial_keys(&self, id: ConnectionId, side: Side) -> Keys {
        self.inner.initial_keys(id, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn std::any::Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn std::any::Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.inner.early_crypto()
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, data: &[u8]) -> Result<bool, TransportError> {
        self.inner.read_handshake(data)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }

    fn write_handshake(&mut self, data: &mut Vec<u8>) -> Option<Keys> {
        let mut keys = self.inner.write_handshake(data)?;
        self.sets += 1;
        // The second key set is for 1-RTT packets.
        if self.sets == 2 {
            keys.packet = self.wrap(keys.packet);
        }
        Some(keys)
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.inner.next_1rtt_keys()?;
        self.generation += 1;
        Some(self.wrap(keys))
    }

    fn is_valid_retry(&self, id: ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(id, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}

struct Key {
    inner: Box<dyn PacketKey>,
    interception: Arc<Interception>,
    generation: u32,
}

impl PacketKey for Key {
    fn encrypt(&self, path: PathId, number: u64, packet: &mut [u8], header_len: usize) {
        let state = &mut *self.interception.state.lock().unwrap();
        if self.generation > state.generation {
            state.generation = self.generation;
            let _ = self
                .interception
                .updates
                .send(Update::Keys(self.generation));
        }
        let mut path = path;
        if path == PathId::from(self.interception.path) {
            if state.granted {
                // The client cannot open a packet of this path.
                path = PathId::MAX;
            } else {
                let number_len = usize::from(packet[0] & 3) + 1;
                let id = &packet[1..header_len - number_len];
                state.connection_id = Some(ConnectionId::new(id));
                state.next = number + 1;
            }
        }
        self.inner.encrypt(path, number, packet, header_len);
    }

    fn decrypt(
        &self,
        path: PathId,
        number: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        self.inner.decrypt(path, number, header, payload)?;
        let state = self.interception.state.lock().unwrap();
        if state.granted {
            let feedback = extract(payload, u64::from(self.interception.path), state.next);
            if !feedback.is_empty() {
                let _ = self.interception.updates.send(Update::Feedback(feedback));
            }
        }
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.inner.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}

/// Extract the path's PATH_ACK frames from a client's packet, as ACK frames of numbers from `first` on, and copy limits.
fn extract(payload: &mut [u8], path: u64, first: u64) -> Vec<u8> {
    let mut feedback = Vec::new();
    let mut start = 0;
    while start < payload.len() {
        let mut rest = &payload[start..];
        let values = read(&mut rest);
        let end = payload.len() - rest.len();
        match values[..] {
            [0x3e | 0x3f, of, largest, delay, _, range, ref others @ ..] if of == path => {
                acknowledge(first, largest, delay, range, others, &mut feedback);
                payload[start..end].fill(0);
            }
            [0x05 | 0x10 | 0x11, ..] => feedback.extend(&payload[start..end]),
            _ => {}
        }
        start = end;
    }
    feedback
}

fn acknowledge(
    first: u64,
    largest: u64,
    delay: u64,
    range: u64,
    others: &[u64],
    feedback: &mut Vec<u8>,
) {
    let mut ranges = vec![(largest - range, largest)];
    for pair in others.chunks_exact(2) {
        let end = ranges.last().unwrap().0 - pair[0] - 2;
        ranges.push((end - pair[1], end));
    }
    ranges.retain_mut(|(start, end)| {
        *start = first.max(*start);
        *start <= *end
    });
    let Some((start, end)) = ranges.first().copied() else {
        return;
    };
    let more = ranges.len() as u64 - 1;
    let mut values = vec![0x02, end, delay, more, end - start];
    for two in ranges.windows(2) {
        values.extend([two[0].0 - two[1].1 - 2, two[1].1 - two[1].0]);
    }
    values
        .iter()
        .for_each(|value| write_varint(feedback, *value));
}

/// Read a frame. Returns its type and the integers that follow it; for ACK, without the ECN counts.
fn read(rest: &mut &[u8]) -> Vec<u64> {
    let mut values = Vec::new();
    let mut skip = 0;
    let mut take = |rest: &mut &[u8], n: u64| {
        for _ in 0..n {
            values.push(read_varint(rest).expect("complete frame"));
        }
        *values.last().unwrap()
    };
    let kind = take(rest, 1);
    match kind {
        0x00 | 0x01 | 0x1e | 0x1f => {}
        0x02 | 0x03 | 0x3e | 0x3f => {
            take(rest, if kind < 0x3e { 2 } else { 3 });
            let ranges = take(rest, 1);
            take(rest, 1 + 2 * ranges);
        }
        0x04 | 0x3e76 | 0x3e77 | 0x3e79 | 0x3e7c => {
            _ = take(rest, if kind == 0x04 { 3 } else { 2 })
        }
        0x05 | 0x11 | 0x15 => _ = take(rest, 2),
        0x10 | 0x12 | 0x13 | 0x14 | 0x16 | 0x17 | 0x19 | 0x3e7a | 0x3e7b => _ = take(rest, 1),
        0xaf => _ = take(rest, 4),
        0x06 => {
            take(rest, 1);
            skip = take(rest, 1);
        }
        0x08..=0x0f => {
            take(rest, if kind & 4 == 0 { 1 } else { 2 });
            skip = if kind & 2 == 0 {
                rest.len() as u64
            } else {
                take(rest, 1)
            };
        }
        0x18 | 0x3e78 => {
            take(rest, if kind == 0x18 { 2 } else { 3 });
            skip = u64::from(rest[0]) + 1 + 16;
        }
        0x1a | 0x1b => skip = 8,
        0x1c | 0x1d | 0x3e75 => {
            take(rest, if kind == 0x1d { 1 } else { 2 });
            skip = if kind == 0x3e75 { 0 } else { take(rest, 1) };
        }
        kind => panic!("unexpected frame type {kind:#x}"),
    }
    if kind & 1 == 1 && matches!(kind, 0x03 | 0x3f) {
        for _ in 0..3 {
            read_varint(rest).expect("complete frame");
        }
    }
    *rest = &rest[skip as usize..];
    values
}
