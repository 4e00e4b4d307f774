// SPDX-License-Identifier: Apache-2.0
//! Initial keys, which are derived from the client's connection id (RFC 9001, 5.2; RFC 9369, 3.3).

use ring::aead::{self, AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey, quic};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};

use crate::{Fault, Version, packet};

/// Bytes of the AEAD tag.
pub const TAG: usize = 16;
/// Offset of the header protection sample from the packet number, whose length counts as four bytes (RFC 9001,
/// 5.4.2).
const SAMPLE_AT: usize = 4;
const SAMPLE: usize = 16;

/// The side whose packets the keys protect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

/// `HkdfLabel`s of TLS 1.3 (RFC 8446, 7.1) without a context, in wire format.
struct Labels {
    salt: [u8; 20],
    key: &'static [u8],
    iv: &'static [u8],
    hp: &'static [u8],
}

const CLIENT: &[u8] = b"\x00\x20\x0ftls13 client in\x00";
const SERVER: &[u8] = b"\x00\x20\x0ftls13 server in\x00";

const V1: Labels = Labels {
    salt: [
        0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c,
        0xad, 0xcc, 0xbb, 0x7f, 0x0a,
    ],
    key: b"\x00\x10\x0etls13 quic key\x00",
    iv: b"\x00\x0c\x0dtls13 quic iv\x00",
    hp: b"\x00\x10\x0dtls13 quic hp\x00",
};

const V2: Labels = Labels {
    salt: [
        0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d,
        0xcb, 0xf9, 0xbd, 0x2e, 0xd9,
    ],
    key: b"\x00\x10\x10tls13 quicv2 key\x00",
    iv: b"\x00\x0c\x0ftls13 quicv2 iv\x00",
    hp: b"\x00\x10\x0ftls13 quicv2 hp\x00",
};

const fn labels(version: Version) -> &'static Labels {
    match version {
        Version::V1 => &V1,
        Version::V2 => &V2,
    }
}

/// The precomputed salt of each version.
#[derive(Debug)]
pub struct Salts([Salt; 2]);

impl Default for Salts {
    fn default() -> Self {
        Self(Version::ALL.map(|version| Salt::new(HKDF_SHA256, &labels(version).salt)))
    }
}

impl Salts {
    /// Derive the keys of `side` for a connection whose client chose `dcid`.
    #[inline]
    pub fn keys(&self, version: Version, dcid: &[u8], side: Side) -> Keys {
        let salt = match version {
            Version::V1 => &self.0[0],
            Version::V2 => &self.0[1],
        };
        let label = match side {
            Side::Client => CLIENT,
            Side::Server => SERVER,
        };
        let secret = expand::<32>(&salt.extract(dcid), label);
        let secret = Prk::new_less_safe(HKDF_SHA256, &secret);
        let labels = labels(version);
        let fits = "the length matches the algorithm";
        let key = UnboundKey::new(&AES_128_GCM, &expand::<16>(&secret, labels.key)).expect(fits);
        let hp = expand::<16>(&secret, labels.hp);
        Keys {
            key: LessSafeKey::new(key),
            iv: expand(&secret, labels.iv),
            hp: quic::HeaderProtectionKey::new(&quic::AES_128, &hp).expect(fits),
        }
    }
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

#[inline]
fn expand<const N: usize>(secret: &Prk, label: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    let label = [label];
    let okm = secret.expand(&label, Length(N));
    okm.and_then(|okm| okm.fill(&mut out))
        .expect("short enough for SHA-256");
    out
}

/// The Initial keys of one side.
pub struct Keys {
    key: LessSafeKey,
    iv: [u8; aead::NONCE_LEN],
    hp: quic::HeaderProtectionKey,
}

impl Keys {
    #[inline]
    fn mask(&self, packet: &[u8], number_at: usize) -> Option<[u8; 5]> {
        let at = number_at + SAMPLE_AT;
        self.hp.new_mask(packet.get(at..at + SAMPLE)?).ok()
    }

    #[inline]
    fn nonce(&self, number: &[u8]) -> Nonce {
        let mut nonce = self.iv;
        for (byte, part) in nonce.iter_mut().rev().zip(number.iter().rev()) {
            *byte ^= part;
        }
        Nonce::assume_unique_for_key(nonce)
    }

    /// Remove the protection of `packet` in place. The truncated part of a first flight's packet number is 0, because
    /// nothing was acknowledged before (RFC 9000, A.3).
    ///
    /// # Errors
    /// [`Fault::Undecryptable`].
    #[inline]
    pub fn open<'a>(&self, packet: &'a mut [u8], number_at: usize) -> Result<Opened<'a>, Fault> {
        let mask = self.mask(packet, number_at).ok_or(Fault::Undecryptable)?;
        packet[0] ^= mask[0] & 0x0f;
        let payload_at = number_at + number_len(packet);
        for (byte, part) in packet[number_at..payload_at].iter_mut().zip(&mask[1..]) {
            *byte ^= part;
        }
        let (header, payload) = packet.split_at_mut(payload_at);
        let number = &header[number_at..];
        let frames = self
            .key
            .open_in_place(self.nonce(number), Aad::from(&*header), payload)
            .map_err(|_| Fault::Undecryptable)?;
        Ok(Opened { number, frames })
    }

    /// Protect `packet` in place. Its packet number begins at `number_at`, and its last [`TAG`] bytes are room for
    /// the tag.
    pub fn seal(&self, packet: &mut [u8], number_at: usize) {
        let payload_at = number_at + number_len(packet);
        let (header, rest) = packet.split_at_mut(payload_at);
        let (payload, tag) = rest.split_at_mut(rest.len() - TAG);
        let nonce = self.nonce(&header[number_at..]);
        let sealed = self
            .key
            .seal_in_place_separate_tag(nonce, Aad::from(&*header), payload)
            .expect("shorter than the AEAD's limit");
        tag.copy_from_slice(sealed.as_ref());
        let mask = self
            .mask(packet, number_at)
            .expect("the packet is long enough for the sample");
        packet[0] ^= mask[0] & 0x0f;
        for (byte, part) in packet[number_at..payload_at].iter_mut().zip(&mask[1..]) {
            *byte ^= part;
        }
    }
}

/// An unprotected packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened<'a> {
    /// The truncated packet number, 1 to 4 bytes.
    pub number: &'a [u8],
    /// The frames.
    pub frames: &'a [u8],
}

/// Return the number of bytes of an unprotected packet's number (RFC 9000, 17.2).
#[inline]
fn number_len(packet: &[u8]) -> usize {
    usize::from(packet[0] & 3) + 1
}

const _: () =
    assert!(packet::initial(Version::V1, 4) == 0xc3 && packet::initial(Version::V2, 4) == 0xd3);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;

    fn hex(text: &str) -> Vec<u8> {
        let digit = |n| u8::from_str_radix(&text[2 * n..2 * n + 2], 16).unwrap();
        (0..text.len() / 2).map(digit).collect()
    }

    /// The client's connection id, and its CRYPTO frame (RFC 9001, A.2; the same in RFC 9369).
    const DCID: &str = "8394c8f03e515708";
    const FRAME: &str = "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e86804fe3a47f06a2b69484c\
        00000413011302010000c000000010000e00000b6578616d706c652e636f6dff01000100000a000800060\
        01d0017001800100007000504616c706e000500050100000000003300260024001d00209370b2c9caa47f\
        babaf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b0003020304000d0010000e040305030\
        6030203080408050806002d00020101001c00024001003900320408ffffffffffffffff05048000ffff07\
        048000ffff0801100104800075300901100f088394c8f03e51570806048000ffff";

    /// RFC 9001, A.2, and RFC 9369, A.2: header, protected header, first bytes of the payload, and last bytes with
    /// the tag.
    #[test]
    fn client_initials_match_the_rfcs() {
        for (version, header, protected, sample, tag) in [
            (
                Version::V1,
                "c300000001088394c8f03e5157080000449e00000002",
                "c000000001088394c8f03e5157080000449e7b9aec34",
                "d1b1c98dd7689fb8ec11d242b123dc9b",
                "e221af44860018ab0856972e194cd934",
            ),
            (
                Version::V2,
                "d36b3343cf088394c8f03e5157080000449e00000002",
                "d76b3343cf088394c8f03e5157080000449ea0c95e82",
                "ffe67b6abcdb4298b485dd04de806071",
                "a18b2faa745b6fe189cf772a9f84cbfc",
            ),
        ] {
            let mut plain = [hex(header), hex(FRAME)].concat();
            plain.resize(1200 - TAG, 0);
            let frames = plain[22..].to_vec();
            plain.resize(1200, 0);
            let keys = Salts::default().keys(version, &hex(DCID), Side::Client);
            keys.seal(&mut plain, 18);
            assert_eq!(plain[..22], hex(protected));
            assert_eq!(plain[22..38], hex(sample));
            assert_eq!(plain[1200 - TAG..], hex(tag));
            let sealed = plain.clone();
            let (packet, rest) = Packet::parse(&sealed).unwrap();
            assert_eq!((packet.version, packet.number_at), (version, 18));
            assert!(rest.is_empty());
            assert_eq!(keys.open(&mut plain, 18).unwrap().frames, frames);
        }
    }

    /// RFC 9001, A.3 and RFC 9369, A.3: packet numbers of two bytes.
    #[test]
    fn server_initials_match_the_rfcs() {
        let frames = "02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf73988cfc79825df566dc5430b\
            9a045a1200130100002e00330024001d00209d3c940d89690b84d08a60993c144eca684d1081287c834d\
            5311bcf32bb9da1a002b00020304";
        for (version, sealed) in [
            (
                Version::V1,
                "cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a5816b6394100f37a1c69\
                797554780bb38cc5a99f5ede4cf73c3ec2493a1839b3dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73\
                cc3f3bded74b562bfb19fb84022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456\
                cbc42158407dd074ee",
            ),
            (
                Version::V2,
                "dc6b3343cf0008f067a5502a4262b5004075d92faaf16f05d8a4398c47089698baeea26b91eb761d9b89\
                237bbf87263017915358230035f7fd3945d88965cf17f9af6e16886c61bfc703106fbaf3cb4cfa52382d\
                d16a393e42757507698075b2c984c707f0a0812d8cd5a6881eaf21ceda98f4bd23f6fe1a3e2c43edd9ce\
                7ca84bed8521e2e140",
            ),
        ] {
            let keys = Salts::default().keys(version, &hex(DCID), Side::Server);
            let mut sealed = hex(sealed);
            let copy = sealed.clone();
            let (packet, _) = Packet::parse(&copy).unwrap();
            let opened = keys.open(&mut sealed, packet.number_at).unwrap();
            assert_eq!(opened.number, [0, 1]);
            assert_eq!(opened.frames, hex(frames));
        }
    }
}
