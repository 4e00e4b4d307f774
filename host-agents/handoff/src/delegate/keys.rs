// SPDX-License-Identifier: Apache-2.0
//! Protection of the server's 1-RTT packets by keys derived from a traffic secret (RFC 9001, section 5), with path ids in the
//! nonce (draft-ietf-quic-multipath, section 2.4).

use bytes::Bytes;
use ring::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{self, KeyType, Prk};

use super::Error;
use crate::grant::Keys;

/// Length of the authentication tag in octets, for all suites (RFC 9001, section 5.3).
pub const TAG_LEN: usize = 16;
/// Length of the ciphertext sample for header protection in octets (RFC 9001, section 5.4.2).
pub const SAMPLE_LEN: usize = 16;

/// A TLS 1.3 cipher suite for QUIC.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    aead: &'static aead::Algorithm,
    header: &'static aead::quic::Algorithm,
    hkdf: hkdf::Algorithm,
    /// Maximum number of packets that one key may seal (RFC 9001, section 6.6).
    pub confidentiality_limit: u64,
}

impl Suite {
    /// Return the suite with this TLS number, 0x1301 to 0x1303.
    pub fn of(number: u16) -> Result<Self, Error> {
        let (aead, header, hkdf, confidentiality_limit) = match number {
            0x1301 => (
                &aead::AES_128_GCM,
                &aead::quic::AES_128,
                hkdf::HKDF_SHA256,
                1 << 23,
            ),
            0x1302 => (
                &aead::AES_256_GCM,
                &aead::quic::AES_256,
                hkdf::HKDF_SHA384,
                1 << 23,
            ),
            0x1303 => (
                &aead::CHACHA20_POLY1305,
                &aead::quic::CHACHA20,
                hkdf::HKDF_SHA256,
                u64::MAX,
            ),
            _ => return Err(Error::Suite(number)),
        };
        Ok(Self {
            aead,
            header,
            hkdf,
            confidentiality_limit,
        })
    }

    /// Compute HKDF-Expand-Label(secret, label, "", length) (RFC 8446, section 7.1).
    fn expand(&self, secret: &[u8], label: &str, length: usize) -> Result<Vec<u8>, Error> {
        struct Length(usize);
        impl KeyType for Length {
            fn len(&self) -> usize {
                self.0
            }
        }
        if secret.len() != self.secret_len() {
            return Err(Error::Secret(secret.len()));
        }
        let name = [b"tls13 ", label.as_bytes()].concat();
        let sizes = (length as u16).to_be_bytes();
        let info = [&sizes[..], &[name.len() as u8], &name, &[0]];
        let mut out = vec![0; length];
        Prk::new_less_safe(self.hkdf, secret)
            .expand(&info, Length(length))
            .and_then(|okm| okm.fill(&mut out))
            .expect("below the maximum length of HKDF");
        Ok(out)
    }

    /// Return the length of a traffic secret in octets: that of the suite's hash.
    pub fn secret_len(&self) -> usize {
        self.hkdf.len()
    }

    /// Return the keys after one more key update (RFC 9001, section 6.1).
    pub fn update(&self, keys: &Keys) -> Result<Keys, Error> {
        Ok(Keys {
            generation: keys.generation + 1,
            secret: Bytes::from(self.expand(&keys.secret, "quic ku", self.secret_len())?),
        })
    }
}

/// Packet protection key of one generation.
pub struct PacketKey {
    key: LessSafeKey,
    iv: [u8; 12],
}

impl PacketKey {
    /// Derive the key from a traffic secret.
    pub fn new(suite: Suite, secret: &[u8]) -> Result<Self, Error> {
        let key = suite.expand(secret, "quic key", suite.aead.key_len())?;
        let iv = suite.expand(secret, "quic iv", 12)?;
        Ok(Self {
            key: LessSafeKey::new(UnboundKey::new(suite.aead, &key).expect("valid length")),
            iv: iv.try_into().expect("valid length"),
        })
    }

    /// Combine the IV with the path id and the packet number. On path 0 this is the nonce of RFC 9001.
    fn nonce(&self, path: u32, number: u64) -> Nonce {
        let mut nonce = self.iv;
        let input = u128::from(path) << 64 | u128::from(number);
        for (octet, mask) in nonce.iter_mut().zip(&input.to_be_bytes()[4..]) {
            *octet ^= mask;
        }
        Nonce::assume_unique_for_key(nonce)
    }

    /// Seal `payload` in place. Returns the tag.
    pub fn seal(&self, path: u32, number: u64, header: &[u8], payload: &mut [u8]) -> [u8; TAG_LEN] {
        let nonce = self.nonce(path, number);
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce, Aad::from(header), payload)
            .expect("shorter than a datagram");
        tag.as_ref().try_into().expect("valid length")
    }

    /// Open a sealed payload, tag included, in place. Returns the plaintext; `None` if it is not authentic.
    pub fn open<'a>(
        &self,
        path: u32,
        number: u64,
        header: &[u8],
        sealed: &'a mut [u8],
    ) -> Option<&'a [u8]> {
        let nonce = self.nonce(path, number);
        let opened = self.key.open_in_place(nonce, Aad::from(header), sealed);
        opened.ok().map(|payload| &*payload)
    }
}

/// Header protection key, the same for all generations.
pub struct HeaderKey(aead::quic::HeaderProtectionKey);

impl HeaderKey {
    /// Derive the key from the first traffic secret.
    pub fn new(suite: Suite, secret: &[u8]) -> Result<Self, Error> {
        let key = suite.expand(secret, "quic hp", suite.header.key_len())?;
        let key = aead::quic::HeaderProtectionKey::new(suite.header, &key);
        Ok(Self(key.expect("valid length")))
    }

    /// Mask the short header of `packet`, whose number of `length` octets begins at `at`. The packet must have at least
    /// four octets from there, and [`SAMPLE_LEN`] more.
    pub fn protect(&self, packet: &mut [u8], at: usize, length: usize) {
        let sample = &packet[at + 4..at + 4 + SAMPLE_LEN];
        let [first, number @ ..] = self.0.new_mask(sample).expect("valid length");
        packet[0] ^= first & 0x1f;
        for (octet, mask) in packet[at..at + length].iter_mut().zip(number) {
            *octet ^= mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(digits: &str) -> Vec<u8> {
        let octet = |i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap();
        (0..digits.len()).step_by(2).map(octet).collect()
    }

    /// RFC 9001, appendix A.5.
    #[test]
    fn short_header_packet_matches_rfc_9001() {
        let suite = Suite::of(0x1303).unwrap();
        let secret = hex("9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b");
        let key = PacketKey::new(suite, &secret).unwrap();
        let mut packet = hex("4200bff401");
        let (header, payload) = packet.split_at_mut(4);
        let tag = key.seal(0, 654_360_564, header, payload);
        packet.extend(tag);
        HeaderKey::new(suite, &secret)
            .unwrap()
            .protect(&mut packet, 1, 3);
        assert_eq!(packet, hex("4cfe4189655e5cd55c41f69080575d7999c25a5bfb"));
        let keys = Keys {
            generation: 0,
            secret: secret.into(),
        };
        let next = suite.update(&keys).unwrap();
        let expected = hex("1223504755036d556342ee9361d253421a826c9ecdf3c7148684b36b714881f9");
        assert_eq!((next.generation, &next.secret[..]), (1, &expected[..]));
    }

    #[test]
    fn packet_opens_only_on_the_path_where_it_was_sealed() {
        for number in 0x1301..=0x1303 {
            let suite = Suite::of(number).unwrap();
            let key = PacketKey::new(suite, &vec![7; suite.secret_len()]).unwrap();
            let mut sealed = b"payload".to_vec();
            let tag = key.seal(3, 1 << 40, b"header", &mut sealed);
            sealed.extend(tag);
            for (path, number) in [(0, 1 << 40), (3, 1 << 41)] {
                let opened = key
                    .open(path, number, b"header", &mut sealed.clone())
                    .is_some();
                assert!(!opened);
            }
            let opened = key.open(3, 1 << 40, b"header", &mut sealed);
            assert_eq!(opened, Some(&b"payload"[..]));
        }
    }

    #[test]
    fn unknown_suites_and_invalid_lengths_are_rejected() {
        assert_eq!(Suite::of(0x1304).unwrap_err(), Error::Suite(0x1304));
        let suite = Suite::of(0x1302).unwrap();
        assert_eq!(
            PacketKey::new(suite, &[0; 32]).err(),
            Some(Error::Secret(32))
        );
    }
}
