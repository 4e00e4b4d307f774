//! Packet numbers longer than noq writes them. noq abridges a number by how many of its own are not acknowledged; where others send packets of the
//! same numbers (QDSR, appendix A), its number on the wire is farther from those that the client has.
//!
//! noq's packet cannot grow where it is. So its header stays behind, and the longer one, by which the packet is sealed, waits on this thread
//! for the socket: noq makes its packets and hands them to the connection's sender in one go, as in [`crate::meter`].

use std::cell::{Cell, RefCell};

use noq::crypto::HeaderKey;
use noq::udp::Transmit;
use rustls::quic::{HeaderProtectionKey, PacketKey};

use super::Nonce;

/// Octets by which such a packet is longer than noq's, at most. Numbers of one octet get three, those of two get four: 2^22 numbers may be on their way at
/// least, and the datagrams of a batch stay as long as each other.
pub const LONGER: usize = 2;

/// Octets of a number at most, and what the first octet says of them (RFC 9000, section 17.3.1).
const NUMBER: usize = 4;
const LENGTH: u8 = 0x03;

/// Octets of a header at most: the first, a connection id, a number.
const HEADER: usize = 1 + 20 + NUMBER;

/// Octets of ciphertext of which the header's mask is made (RFC 9001, section 5.4.2).
const SAMPLE: usize = 16;

/// The header of one packet.
#[derive(Clone, Copy, Debug)]
struct Header {
    octets: [u8; HEADER],
    length: usize,
    /// Octets of its number.
    number: usize,
    /// Octets of noq's header.
    replaced: usize,
    /// What noq's packet has behind that: by this it is known.
    sealed: [u8; SAMPLE],
}

impl Header {
    /// `noqs` with `number` in more octets.
    fn new(noqs: &[u8], number: u64) -> Self {
        let short = usize::from(noqs[0] & LENGTH) + 1;
        let long = NUMBER.min(short + LONGER);
        let at = noqs.len() - short;
        let mut header = Self {
            octets: [0; HEADER],
            length: at + long,
            number: long,
            replaced: noqs.len(),
            sealed: [0; SAMPLE],
        };
        header.octets[..at].copy_from_slice(&noqs[..at]);
        header.octets[0] = noqs[0] & !LENGTH | (long - 1) as u8;
        header.octets[at..at + long].copy_from_slice(&number.to_be_bytes()[8 - long..]);
        header
    }

    fn octets(&self) -> &[u8] {
        &self.octets[..self.length]
    }

    fn protect(&mut self, key: &dyn HeaderProtectionKey, packet: &[u8]) {
        let behind = &packet[self.replaced..];
        self.sealed.copy_from_slice(&behind[..SAMPLE]);
        let sample = &behind[NUMBER - self.number..][..SAMPLE];
        let (first, rest) = self.octets.split_at_mut(1);
        let number = &mut rest[self.length - self.number - 1..self.length - 1];
        key.encrypt_in_place(sample, &mut first[0], number)
            .expect("a sample and a number of their lengths");
    }

    fn is_of(&self, datagram: &[u8]) -> bool {
        datagram
            .get(self.replaced..)
            .is_some_and(|behind| behind.starts_with(&self.sealed))
    }
}

thread_local! {
    /// Of the packet that was sealed last, until that is protected.
    static UNPROTECTED: Cell<Option<Header>> = const { Cell::new(None) };
    /// Of the batch that is being made.
    static HEADERS: RefCell<Vec<Header>> = const { RefCell::new(Vec::new()) };
}

/// Seals noq's packet by the longer header. Its own is of no use any more.
pub(super) fn seal(key: &dyn PacketKey, nonce: Nonce, packet: &mut [u8], header_len: usize) {
    let (noqs, rest) = packet.split_at_mut(header_len);
    let header = Header::new(noqs, nonce.number);
    let (payload, tag) = rest.split_at_mut(rest.len() - key.tag_len());
    let sealed = key
        .encrypt_in_place_for_path(nonce.path, nonce.number, header.octets(), payload)
        .expect("shorter than a datagram");
    tag.copy_from_slice(sealed.as_ref());
    UNPROTECTED.set(Some(header));
}

/// Protects noq's headers, and those that are in the place of noq's.
pub(super) struct Protecting(pub(super) Box<dyn HeaderProtectionKey>);

impl HeaderKey for Protecting {
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

/// A batch with its longer headers, until all of it is sent.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    octets: Vec<u8>,
    /// Octets of datagrams that may leave together, and of each but the last of them.
    runs: Vec<(usize, usize)>,
    /// Runs, and their octets, that are sent.
    sent: (usize, usize),
}

impl Batch {
    /// The batch that was just made, if some of its packets have longer headers. It is no other thread's.
    pub(crate) fn make(&mut self, transmit: &Transmit<'_>) {
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
            let before = self.octets.len();
            match headers.iter().position(|header| header.is_of(datagram)) {
                Some(at) => {
                    let header = &headers[at];
                    headers = &headers[at + 1..];
                    self.octets.extend(header.octets());
                    self.octets.extend(&datagram[header.replaced..]);
                }
                None => self.octets.extend(datagram),
            }
            self.add(self.octets.len() - before);
        }
    }

    /// The kernel cuts datagrams of one size; only the last may be shorter.
    fn add(&mut self, datagram: usize) {
        match self.runs.last_mut() {
            Some((run, size)) if *run % *size == 0 && datagram <= *size => *run += datagram,
            _ => self.runs.push((datagram, datagram)),
        }
    }

    /// What of it is to be sent next.
    pub(crate) fn next<'a>(&'a self, transmit: &Transmit<'a>) -> Option<Transmit<'a>> {
        let (run, from) = self.sent;
        let (octets, size) = *self.runs.get(run)?;
        Some(Transmit {
            contents: &self.octets[from..from + octets],
            segment_size: Some(size).filter(|size| *size < octets),
            ..transmit.clone()
        })
    }

    /// That is sent.
    pub(crate) fn advance(&mut self) {
        let (run, from) = self.sent;
        self.sent = (run + 1, from + self.runs[run].0);
        if self.sent.0 == self.runs.len() {
            self.clear();
        }
    }

    pub(crate) fn clear(&mut self) {
        self.octets.clear();
        self.runs.clear();
        self.sent = (0, 0);
    }

    /// Nothing is left of it.
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}

#[cfg(test)]
mod tests;
