//! A real server of a few lines: it makes packets by hand, sends again what is not acknowledged, and knows no congestion.

use std::collections::{BTreeMap, VecDeque};
use std::net::UdpSocket;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use frontage_handoff::grant::{Grant, Keys};
use frontage_handoff::lend::{Event, Events};
use frontage_quic::session::Nonce;
use frontage_quic_wire::frames::{Frame, read};
use frontage_quic_wire::write_varint;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use ring::aead::quic::{AES_128, AES_256, CHACHA20, HeaderProtectionKey};
use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, UnboundKey};
use ring::hkdf::{Algorithm, HKDF_SHA256, HKDF_SHA384, KeyType, Prk};

use super::Remembering;

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
    /// Never used.
    pub next: u64,
    /// The loan's name, if its numbers come one by one, and those that came.
    pub loan: Option<u32>,
    numbers: Range<u64>,
    /// Frames by the numbers of their packets.
    unacked: BTreeMap<u64, Vec<u8>>,
    /// Frames to be sent.
    queue: VecDeque<Vec<u8>>,
    /// What it was told of streams.
    pub told: Vec<(u64, u64)>,
    pub credit: u64,
    used: u64,
    /// Messages, and datagrams that were acknowledged in them.
    pub messages: usize,
    pub acked: usize,
    socket: UdpSocket,
    observer: Arc<Remembering>,
    server: noq::Connection,
    /// Of a hundred packets.
    pub lost: u32,
    random: SmallRng,
}

impl RealServer {
    pub fn new(grant: Grant, events: Events, world: &super::World) -> Self {
        Self {
            next: grant.first,
            loan: None,
            numbers: 0..0,
            credit: grant.credit,
            used: 0,
            grant,
            events,
            unacked: BTreeMap::new(),
            queue: VecDeque::new(),
            told: Vec::new(),
            messages: 0,
            acked: 0,
            socket: world.socket.try_clone().unwrap(),
            observer: world.observer.clone(),
            server: world.server.clone(),
            lost: 0,
            random: SmallRng::seed_from_u64(7),
        }
    }

    /// Takes up bytes of a stream.
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

    /// Sends all there is, until the client has it.
    pub async fn deliver(&mut self) {
        while !self.queue.is_empty() || !self.unacked.is_empty() {
            while self.unacked.len() < 20
                && let Some(frames) = self.queue.pop_front()
            {
                self.send(frames);
            }
            match tokio::time::timeout(Duration::from_millis(300), self.events.recv()).await {
                Ok(event) => self.take(event.expect("the path is still lent")),
                // Lost.
                Err(_) => self
                    .queue
                    .extend(std::mem::take(&mut self.unacked).into_values()),
            }
        }
    }

    /// Bytes that it may send yet.
    pub fn free(&self) -> u64 {
        self.credit - self.used
    }

    /// Sends of the 1000-byte parts what its credit allows, `sent` of all before; how much it is then.
    pub async fn deliver_within(&mut self, sent: usize) -> usize {
        let free = self.free() / 1000;
        let later = self.queue.split_off(self.queue.len().min(free as usize));
        let now = 1000 * self.queue.len();
        self.used += now as u64;
        self.deliver().await;
        self.queue = later;
        if now == 0 {
            let event = self.events.recv().await;
            self.take(event.expect("the path is still lent"));
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
                        Frame::MaxStreamData { id, limit } => self.told.push((id, limit)),
                        Frame::StopSending { id, code } => self.told.push((id, code)),
                        frame => panic!("{frame:?}"),
                    }
                }
            }
            Event::Keys(keys) => self.rekey(keys),
            Event::ConnectionId(id) => self.grant.connection_id = id,
            event => panic!("{event:?}: {:?}", self.server.close_reason()),
        }
    }

    /// Numbers that came before are not used by newer keys (RFC 9001, section 6.4).
    fn rekey(&mut self, keys: Keys) {
        self.grant.keys = keys;
        self.numbers = 0..0;
    }

    /// Of the next packet.
    fn number(&mut self) -> u64 {
        let number = match self.loan {
            None => self.next,
            Some(name) => self.numbers.next().unwrap_or_else(|| {
                let more = self.observer.lender.more_numbers(name, 10);
                let (keys, numbers) = more.unwrap();
                if let Some(keys) = keys {
                    self.rekey(keys);
                }
                self.numbers = numbers;
                self.numbers.next().unwrap()
            }),
        };
        self.next = number + 1;
        number
    }

    /// Seals a packet.
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
        self.observer.remember(*generation, nonce);
        let mut packet = vec![0x43 | (*generation as u8 & 1) << 2];
        packet.extend(&connection_id[..]);
        packet.extend((number as u32).to_be_bytes());
        let (aad, at) = (packet.clone(), 1 + connection_id.len());
        let mut iv: [u8; 12] = expand(hash, secret, "quic iv", 12).try_into().unwrap();
        let place = [&path.to_be_bytes()[..], &number.to_be_bytes()].concat();
        iv.iter_mut()
            .zip(place)
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
        if self.random.random_range(0..100) >= self.lost {
            self.socket.send_to(&packet, self.grant.client).unwrap();
        }
        self.unacked.insert(self.next - 1, frames);
    }
}
