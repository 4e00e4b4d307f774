// SPDX-License-Identifier: Apache-2.0
//! A minimal real server: it builds packets by hand, retransmits lost ones, and has no congestion control.

use std::collections::{BTreeMap, VecDeque};
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use frontage_handoff::delegate::NumberRequest;
use frontage_handoff::delegator::{Event, Events};
use frontage_handoff::grant::{Grant, Keys};
use frontage_quic::session::Nonce;
use frontage_quic_wire::frames::{Frame, read};
use frontage_quic_wire::write_varint;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use ring::aead::quic::{AES_128, AES_256, CHACHA20, HeaderProtectionKey};
use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, UnboundKey};
use ring::hkdf::{Algorithm, HKDF_SHA256, HKDF_SHA384, KeyType, Prk};

use super::NonceRecorder;

/// HKDF-Expand-Label (RFC 8446, section 7.1).
fn expand(hash: Algorithm, secret: &[u8], label: &str, length: usize) -> Vec<u8> {
    struct Length(usize);
    impl KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }
    let label = format!("tls13 {label}");
    let head = [0, length as u8, label.len() as u8];
    let info = [&head[..], label.as_bytes(), &[0]];
    let mut out = vec![0; length];
    let secret = Prk::new_less_safe(hash, secret);
    secret
        .expand(&info, Length(length))
        .unwrap()
        .fill(&mut out)
        .unwrap();
    out
}

pub struct RealServer {
    pub grant: Grant,
    pub events: Events,
    /// The first unused number.
    pub next: u64,
    /// Id of the delegation, if the client has a single path.
    pub delegation: Option<u32>,
    /// Allocated numbers that are unused.
    numbers: VecDeque<u64>,
    /// Frames by packet number.
    unacked: BTreeMap<u64, Vec<u8>>,
    /// Frames to be sent.
    queue: VecDeque<Vec<u8>>,
    /// Streams and values of MAX_STREAM_DATA and STOP_SENDING frames.
    pub stream_frames: Vec<(u64, u64)>,
    pub credit: u64,
    used: u64,
    /// Number of feedback messages.
    pub messages: usize,
    /// Number of acknowledged datagrams.
    pub acked: usize,
    socket: UdpSocket,
    observer: Arc<NonceRecorder>,
    server: noq::Connection,
    /// Percentage of packets that are lost.
    pub loss_percent: u32,
    random: SmallRng,
}

impl RealServer {
    pub fn new(grant: Grant, events: Events, testbed: &super::Testbed) -> Self {
        Self {
            next: grant.first,
            delegation: None,
            numbers: VecDeque::new(),
            credit: grant.credit,
            used: 0,
            grant,
            events,
            unacked: BTreeMap::new(),
            queue: VecDeque::new(),
            stream_frames: Vec::new(),
            messages: 0,
            acked: 0,
            socket: testbed.socket.try_clone().unwrap(),
            observer: testbed.observer.clone(),
            server: testbed.server.clone(),
            loss_percent: 0,
            random: SmallRng::seed_from_u64(7),
        }
    }

    /// Queue data of a stream.
    pub fn write(&mut self, stream: u64, content: &[u8], fin: bool) {
        let parts = content.chunks(1000);
        let last = parts.len() - 1;
        for (i, part) in parts.enumerate() {
            let mut frame = vec![0x0e | u8::from(fin && i == last)];
            for value in [stream, 1000 * i as u64, part.len() as u64] {
                write_varint(&mut frame, value);
            }
            frame.extend(part);
            self.queue.push_back(frame);
        }
    }

    /// Send everything, and wait until the client has acknowledged it.
    pub async fn deliver(&mut self) {
        while !self.queue.is_empty() || !self.unacked.is_empty() {
            while self.unacked.len() < 20
                && let Some(frames) = self.queue.pop_front()
            {
                self.send(frames);
            }
            match tokio::time::timeout(Duration::from_millis(300), self.events.recv()).await {
                Ok(event) => self.take(event.expect("still delegated")),
                // Packets were lost.
                Err(_) => self
                    .queue
                    .extend(std::mem::take(&mut self.unacked).into_values()),
            }
        }
    }

    /// Return the unused credit in bytes.
    pub fn free(&self) -> u64 {
        self.credit - self.used
    }

    /// Send as many parts of 1000 bytes as the credit permits. Returns how many bytes were sent in total, including `sent`
    /// before.
    pub async fn deliver_within(&mut self, sent: usize) -> usize {
        let free = self.free() / 1000;
        let later = self.queue.split_off(self.queue.len().min(free as usize));
        let now = 1000 * self.queue.len();
        self.used += now as u64;
        self.deliver().await;
        self.queue = later;
        if now == 0 {
            let event = self.events.recv().await;
            self.take(event.expect("still delegated"));
        }
        sent + now
    }

    pub fn take(&mut self, event: Event) {
        match event {
            Event::Feedback(frames) => {
                self.messages += 1;
                for frame in read(&frames) {
                    match frame {
                        Frame::Ack(ack) => {
                            assert!(ack.largest < self.next, "{ack:?}");
                            for number in ack.ranges().flatten() {
                                assert!(number >= self.grant.first, "{ack:?}");
                                self.acked += usize::from(self.unacked.remove(&number).is_some());
                            }
                        }
                        Frame::MaxData { limit } => self.credit = limit,
                        Frame::MaxStreamData { id, limit } => self.stream_frames.push((id, limit)),
                        Frame::StopSending { id, code } => self.stream_frames.push((id, code)),
                        frame => panic!("{frame:?}"),
                    }
                }
            }
            Event::Keys(keys) => self.set_keys(keys),
            Event::NumbersExpired(below) => self.numbers.retain(|number| *number >= below),
            Event::ConnectionId(id) => self.grant.connection_id = id,
            event => panic!("{event:?}: {:?}", self.server.close_reason()),
        }
    }

    /// Install new keys. Unused numbers must not be used with newer keys (RFC 9001, section 6.4).
    fn set_keys(&mut self, keys: Keys) {
        self.grant.keys = keys;
        self.numbers.clear();
    }

    /// Return the number of the next packet.
    fn number(&mut self) -> u64 {
        let number = match self.delegation {
            None => self.next,
            Some(id) => self.numbers.pop_front().unwrap_or_else(|| {
                let request = NumberRequest {
                    count: 10,
                    ahead: 0,
                };
                let more = self.observer.delegator.allocate_numbers(id, request);
                let (keys, numbers) = more.unwrap();
                if let Some(keys) = keys {
                    self.set_keys(keys);
                }
                self.numbers = numbers.into_iter().flatten().collect();
                self.numbers.pop_front().unwrap()
            }),
        };
        self.next = number + 1;
        number
    }

    /// Seal a packet.
    pub fn seal(&mut self, frames: &[u8]) -> Vec<u8> {
        let number = self.number();
        let Grant {
            path,
            connection_id,
            suite,
            header_secret,
            keys: Keys { generation, secret },
            ..
        } = &self.grant;
        let (hash, aead, header) = match suite {
            0x1301 => (HKDF_SHA256, &AES_128_GCM, &AES_128),
            0x1302 => (HKDF_SHA384, &AES_256_GCM, &AES_256),
            _ => (HKDF_SHA256, &CHACHA20_POLY1305, &CHACHA20),
        };
        let nonce = Nonce {
            path: *path,
            number,
        };
        self.observer.record(*generation, nonce);
        let mut packet = vec![0x43 | (*generation as u8 & 1) << 2];
        packet.extend(&connection_id[..]);
        packet.extend((number as u32).to_be_bytes());
        let (aad, at) = (packet.clone(), 1 + connection_id.len());
        let mut iv: [u8; 12] = expand(hash, secret, "quic iv", 12).try_into().unwrap();
        let input = [&path.to_be_bytes()[..], &number.to_be_bytes()].concat();
        iv.iter_mut()
            .zip(input)
            .for_each(|(octet, own)| *octet ^= own);
        let key = expand(hash, secret, "quic key", aead.key_len());
        let key = LessSafeKey::new(UnboundKey::new(aead, &key).unwrap());
        let mut sealed = frames.to_vec();
        let iv = ring::aead::Nonce::assume_unique_for_key(iv);
        key.seal_in_place_append_tag(iv, Aad::from(aad), &mut sealed)
            .unwrap();
        packet.extend(sealed);
        let key = expand(hash, header_secret, "quic hp", header.key_len());
        let key = HeaderProtectionKey::new(header, &key).unwrap();
        let [first, mask @ ..] = key.new_mask(&packet[at + 4..at + 20]).unwrap();
        packet[0] ^= first & 0x1f;
        packet[at..at + 4]
            .iter_mut()
            .zip(mask)
            .for_each(|(octet, mask)| *octet ^= mask);
        packet
    }

    pub fn send(&mut self, frames: Vec<u8>) {
        let packet = self.seal(&frames);
        if self.random.random_range(0..100) >= self.loss_percent {
            self.socket.send_to(&packet, self.grant.client).unwrap();
        }
        self.unacked.insert(self.next - 1, frames);
    }
}
