// SPDX-License-Identifier: Apache-2.0
//! Packets that are longer than noq's.
//!
//! - Packet numbers in more bytes than noq uses. noq truncates a packet number according to its own unacknowledged
//!   packets. Where other hosts send packets in the same number space (QDSR, appendix A), the number on the wire is
//!   farther from those that the client has received.
//! - Longer payloads: a stream that noq takes over from a real server has higher offsets than noq knows.
//!
//! noq's packet cannot grow in place. So it is sealed with another header or payload, which waits in a thread-local list
//! until the socket puts it in the place of noq's. As in [`crate::meter`], noq builds a batch and hands it to the
//! connection's sender without leaving the thread.

use std::cell::{Cell, RefCell};

use noq::crypto::HeaderKey;
use noq::udp::Transmit;
use rustls::quic::{HeaderProtectionKey, PacketKey};

use super::Nonce;

/// Most bytes by which such a packet is longer than noq's. Numbers of one byte get three, those of two bytes get
/// four. So at least 2^22 packets may be in flight, and the datagrams of a batch keep equal sizes.
pub const MAX_HEADER_GROWTH: usize = 2;

/// Most bytes of a packet number (RFC 9000, section 17.3.1).
const MAX_NUMBER: usize = 4;
/// The bits of the first byte that hold the length of the packet number, minus 1.
const NUMBER_LENGTH_BITS: u8 = 0x03;

/// Most bytes of a short header: first byte, connection id, packet number.
const MAX_HEADER: usize = 1 + 20 + MAX_NUMBER;

/// Bytes of ciphertext from which the header protection mask is derived (RFC 9001, section 5.4.2).
const SAMPLE: usize = 16;

/// The longer header or payload of one packet.
#[derive(Debug)]
struct Header {
    bytes: [u8; MAX_HEADER],
    length: usize,
    /// Bytes of the packet number.
    number_length: usize,
    /// Bytes of noq's header, which this one replaces.
    replaced: usize,
    /// The first bytes after noq's header, which identify the packet.
    sealed: [u8; SAMPLE],
    /// Sealed payload and tag in place of noq's, if they are longer.
    payload: Option<Vec<u8>>,
}

impl Header {
    /// Return noq's `header` with `number` in up to `growth` more bytes.
    fn new(header: &[u8], number: u64, growth: usize) -> Self {
        let short = usize::from(header[0] & NUMBER_LENGTH_BITS) + 1;
        let long = MAX_NUMBER.min(short + growth);
        let at = header.len() - short;
        let mut longer = Self {
            bytes: [0; MAX_HEADER],
            length: at + long,
            number_length: long,
            replaced: header.len(),
            sealed: [0; SAMPLE],
            payload: None,
        };
        longer.bytes[..at].copy_from_slice(&header[..at]);
        longer.bytes[0] = header[0] & !NUMBER_LENGTH_BITS | (long - 1) as u8;
        longer.bytes[at..at + long].copy_from_slice(&number.to_be_bytes()[8 - long..]);
        longer
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn protect(&mut self, key: &dyn HeaderProtectionKey, packet: &mut [u8]) {
        let own = &mut packet[self.replaced..];
        if let Some(longer) = &self.payload {
            own[..SAMPLE].copy_from_slice(&longer[..SAMPLE]);
        }
        self.sealed.copy_from_slice(&own[..SAMPLE]);
        let payload = self.payload.as_deref().unwrap_or(own);
        // The sample begins 4 bytes after the start of the packet number, whatever the number's length.
        let sample = &payload[MAX_NUMBER - self.number_length..][..SAMPLE];
        let (first, rest) = self.bytes.split_at_mut(1);
        let number = &mut rest[self.length - self.number_length - 1..self.length - 1];
        key.encrypt_in_place(sample, &mut first[0], number)
            .expect("sample and number have valid lengths");
    }

    fn is_of(&self, datagram: &[u8]) -> bool {
        datagram
            .get(self.replaced..)
            .is_some_and(|payload| payload.starts_with(&self.sealed))
    }
}

thread_local! {
    /// Header of the packet that was sealed last, until its header protection is applied.
    static UNPROTECTED: Cell<Option<Header>> = const { Cell::new(None) };
    /// Headers of the batch under construction.
    static HEADERS: RefCell<Vec<Header>> = const { RefCell::new(Vec::new()) };
}

/// Parts that are longer than in noq's packet.
pub(super) struct Longer {
    /// True if the packet number is longer.
    pub(super) number: bool,
    /// The frames, if they are longer.
    pub(super) payload: Option<Vec<u8>>,
}

impl Longer {
    /// Return whether anything is longer.
    pub(super) fn is_needed(&self) -> bool {
        self.number || self.payload.is_some()
    }

    /// Seal noq's packet with a longer header or payload. The packet itself is invalid from then on.
    pub(super) fn seal(
        self,
        key: &dyn PacketKey,
        nonce: Nonce,
        packet: &mut [u8],
        header_len: usize,
    ) {
        let (header, rest) = packet.split_at_mut(header_len);
        let growth = if self.number { MAX_HEADER_GROWTH } else { 0 };
        let mut header = Header::new(header, nonce.number, growth);
        let seal = |payload: &mut [u8]| {
            key.encrypt_in_place_for_path(nonce.path, nonce.number, header.bytes(), payload)
                .expect("the payload fits a datagram")
        };
        if let Some(mut payload) = self.payload {
            let tag = seal(&mut payload);
            payload.extend_from_slice(tag.as_ref());
            header.payload = Some(payload);
        } else {
            let (payload, tag) = rest.split_at_mut(rest.len() - key.tag_len());
            tag.copy_from_slice(seal(payload).as_ref());
        }
        UNPROTECTED.set(Some(header));
    }
}

/// Applies header protection to noq's headers and to those that replace them.
pub(super) struct HeaderProtector(pub(super) Box<dyn HeaderProtectionKey>);

impl HeaderKey for HeaderProtector {
    fn decrypt(&self, pn_offset: usize, packet: &mut [u8]) {
        HeaderKey::decrypt(&self.0, pn_offset, packet);
    }

    fn encrypt(&self, pn_offset: usize, packet: &mut [u8]) {
        let Some(mut header) = UNPROTECTED.take() else {
            return HeaderKey::encrypt(&self.0, pn_offset, packet);
        };
        header.protect(&*self.0, packet);
        HEADERS.with_borrow_mut(|headers| headers.push(header));
    }

    fn sample_size(&self) -> usize {
        HeaderKey::sample_size(&self.0)
    }
}

/// A batch of packets that are longer than noq's, until all of it is sent.
#[derive(Debug, Default)]
pub(crate) struct LongHeaderBatch {
    bytes: Vec<u8>,
    /// Runs of datagrams that can be sent together: bytes of the run, and of each datagram but the last.
    runs: Vec<(usize, usize)>,
    /// Number of runs, and of their bytes, that are sent.
    sent: (usize, usize),
}

impl LongHeaderBatch {
    /// Take over noq's batch `transmit`, which was built on this thread, if any of its packets needs a longer header.
    pub(crate) fn fill(&mut self, transmit: &Transmit<'_>) {
        HEADERS.with_borrow_mut(|headers| {
            if !headers.is_empty() {
                self.replace(transmit, headers);
                headers.clear();
            }
        });
    }

    fn replace(&mut self, transmit: &Transmit<'_>, headers: &[Header]) {
        self.clear();
        let size = transmit.segment_size.unwrap_or(transmit.contents.len());
        let mut headers = headers;
        for datagram in transmit.contents.chunks(size) {
            let before = self.bytes.len();
            match headers.iter().position(|header| header.is_of(datagram)) {
                Some(at) => {
                    let header = &headers[at];
                    headers = &headers[at + 1..];
                    self.bytes.extend(header.bytes());
                    let own = &datagram[header.replaced..];
                    self.bytes.extend(header.payload.as_deref().unwrap_or(own));
                }
                None => self.bytes.extend(datagram),
            }
            self.add(self.bytes.len() - before);
        }
    }

    /// Add a datagram of this size to the last run, or begin a new run: the kernel cuts datagrams of one size, of
    /// which only the last may be shorter.
    fn add(&mut self, datagram: usize) {
        match self.runs.last_mut() {
            Some((run, size)) if *run % *size == 0 && datagram <= *size => *run += datagram,
            _ => self.runs.push((datagram, datagram)),
        }
    }

    /// Return the next run to send.
    pub(crate) fn next<'a>(&'a self, transmit: &Transmit<'a>) -> Option<Transmit<'a>> {
        let (run, from) = self.sent;
        let (length, size) = *self.runs.get(run)?;
        Some(Transmit {
            contents: &self.bytes[from..from + length],
            segment_size: Some(size).filter(|size| *size < length),
            ..transmit.clone()
        })
    }

    /// Record that this run is sent.
    pub(crate) fn advance(&mut self) {
        let (run, from) = self.sent;
        self.sent = (run + 1, from + self.runs[run].0);
        if self.sent.0 == self.runs.len() {
            self.clear();
        }
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.runs.clear();
        self.sent = (0, 0);
    }

    /// Return whether nothing is left to send.
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}

#[cfg(test)]
mod tests;
