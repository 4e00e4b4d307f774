// SPDX-License-Identifier: Apache-2.0
//! Connection ids that name their server for any QUIC-LB load balancer (draft-ietf-quic-load-balancers-21, section
//! 5). They have a first octet, a server id and a nonce. Server id and nonce are in the clear or encrypted with
//! AES-128.

use std::fmt;

use aes::Aes128;
use aes::cipher::{BlockDecrypt as _, BlockEncrypt as _, KeyInit as _};

/// Configuration id (the first three bits) of unroutable connection ids, which no configuration may use.
pub const UNROUTABLE: u8 = 7;
/// Block size of AES in octets.
const BLOCK: usize = 16;
/// Most octets of server id and nonce together: a connection id of QUIC version 1 has at most 20 (RFC 9000, section
/// 17.2).
const MAX_LENGTH: usize = 19;
const MIN_NONCE: usize = 4;

/// The configuration that servers and load balancers share.
#[derive(Clone)]
pub struct Config {
    rotation: u8,
    sid_len: usize,
    nonce_len: usize,
    cipher: Option<Aes128>,
}

/// Why a [`Config`] is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The configuration id is above 6.
    Rotation(u8),
    /// Octets of server id and nonce; they must be at least 1 and 4, and at most 19 together.
    Lengths(usize, usize),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rotation(id) => write!(
                f,
                "invalid QUIC-LB configuration id {id}: use 0 to {}",
                UNROUTABLE - 1
            ),
            Self::Lengths(sid, nonce) => write!(
                f,
                "{sid} octets of server id and {nonce} of nonce: QUIC-LB needs at least 1 and {MIN_NONCE}, and at most {MAX_LENGTH} together"
            ),
        }
    }
}

impl std::error::Error for Error {}

impl Config {
    /// Create a configuration with this id (0 to 6) and these lengths in octets, encrypted if there is a `key`.
    ///
    /// # Errors
    /// If the id or a length is out of range.
    pub fn new(
        rotation: u8,
        sid_len: usize,
        nonce_len: usize,
        key: Option<&[u8; 16]>,
    ) -> Result<Self, Error> {
        if rotation >= UNROUTABLE {
            return Err(Error::Rotation(rotation));
        }
        if sid_len == 0 || nonce_len < MIN_NONCE || sid_len + nonce_len > MAX_LENGTH {
            return Err(Error::Lengths(sid_len, nonce_len));
        }
        let cipher = key.map(|key| Aes128::new(key.into()));
        Ok(Self {
            rotation,
            sid_len,
            nonce_len,
            cipher,
        })
    }

    /// Return the number of octets of a connection id.
    pub const fn cid_len(&self) -> usize {
        1 + self.sid_len + self.nonce_len
    }

    /// Return the number of octets of a server id.
    pub const fn sid_len(&self) -> usize {
        self.sid_len
    }

    /// Return the number of octets of a nonce.
    pub const fn nonce_len(&self) -> usize {
        self.nonce_len
    }

    /// Return a connection id of server `sid`. Its first octet holds its length. Without a key the nonce must look
    /// random; with a key it must only be unique.
    ///
    /// # Panics
    /// If `sid` or `nonce` does not have the configured length.
    pub fn encode(&self, sid: &[u8], nonce: &[u8]) -> Vec<u8> {
        assert_eq!(
            (sid.len(), nonce.len()),
            (self.sid_len, self.nonce_len),
            "server id and nonce have the configured lengths"
        );
        let length = (self.cid_len() - 1) as u8;
        let mut cid = vec![self.rotation << 5 | length];
        cid.extend(sid);
        cid.extend(nonce);
        match &self.cipher {
            Some(cipher) if cid.len() == 1 + BLOCK => cipher.encrypt_block((&mut cid[1..]).into()),
            Some(cipher) => self.four_passes(cipher, &mut cid[1..], [1, 2, 3, 4]),
            None => {}
        }
        cid
    }

    /// Return the server id and nonce in a connection id, or `None` if it has another configuration or is too short.
    /// Octets after the nonce are the server's own.
    pub fn decode(&self, cid: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let first = *cid.first()?;
        let mut text = cid.get(1..self.cid_len())?.to_vec();
        if first >> 5 != self.rotation {
            return None;
        }
        match &self.cipher {
            Some(cipher) if text.len() == BLOCK => cipher.decrypt_block((&mut text[..]).into()),
            Some(cipher) => self.four_passes(cipher, &mut text, [4, 3, 2, 1]),
            None => {}
        }
        let nonce = text.split_off(self.sid_len);
        Some((text, nonce))
    }

    /// Run the Feistel network of section 5.4.2 in place. The passes in reverse order decrypt. If the number of
    /// octets is odd, the halves share the middle octet: its upper four bits belong to the left half, its lower four
    /// to the right half.
    fn four_passes(&self, cipher: &Aes128, text: &mut [u8], passes: [u8; 4]) {
        let (n, half) = (text.len(), text.len().div_ceil(2));
        let odd = n % 2 == 1;
        let mut left = text[..half].to_vec();
        let mut right = text[n - half..].to_vec();
        let clear = |left: &mut [u8], right: &mut [u8]| {
            if odd {
                left[half - 1] &= 0xf0;
                right[0] &= 0x0f;
            }
        };
        clear(&mut left, &mut right);
        for pass in passes {
            let (from, to) = if pass % 2 == 1 {
                (&left, &mut right)
            } else {
                (&right, &mut left)
            };
            let mut block = [0; BLOCK];
            block[..half].copy_from_slice(from);
            block[BLOCK - 2] = n as u8;
            block[BLOCK - 1] = pass;
            cipher.encrypt_block((&mut block).into());
            to.iter_mut()
                .zip(block)
                .for_each(|(octet, mask)| *octet ^= mask);
            clear(&mut left, &mut right);
        }
        let middle = left[half - 1] | right[0];
        text[..half].copy_from_slice(&left);
        text[n - half..].copy_from_slice(&right);
        if odd {
            text[half - 1] = middle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits = text
            .as_bytes()
            .chunks(2)
            .map(|two| std::str::from_utf8(two).unwrap());
        digits
            .map(|two| u8::from_str_radix(two, 16).unwrap())
            .collect()
    }

    fn check(rotation: u8, key: Option<&str>, sid: &str, nonce: &str, cid: &str) {
        let (sid, nonce, cid) = (hex(sid), hex(nonce), hex(cid));
        let key: Option<[u8; 16]> = key.map(|key| hex(key).try_into().unwrap());
        let config = Config::new(rotation, sid.len(), nonce.len(), key.as_ref()).unwrap();
        assert_eq!(config.encode(&sid, &nonce), cid);
        assert_eq!(config.decode(&cid), Some((sid.clone(), nonce.clone())));
        let longer = [&cid[..], &[0xee]].concat();
        assert_eq!(config.decode(&longer), Some((sid, nonce)));
        assert_eq!(config.decode(&cid[..cid.len() - 1]), None);
        let other = Config::new(
            (rotation + 1) % 7,
            config.sid_len,
            config.nonce_len,
            key.as_ref(),
        )
        .unwrap();
        assert_eq!(other.decode(&cid), None);
    }

    /// Appendix B.1. The draft's second line lacks a zero of the nonce and splits the first octet (0x2a) in two.
    #[test]
    fn unencrypted_vectors() {
        check(0, None, "c4605e", "4504cc4f", "07c4605e4504cc4f");
        check(
            1,
            None,
            "350d28b420",
            "03487d970b",
            "2a350d28b42003487d970b",
        );
    }

    /// Appendix B.2. The draft's last line prints 0x12 for the first octet, which omits configuration id 3.
    #[test]
    fn encrypted_vectors() {
        let key = Some("8f95f09245765f80256934e50c66207f");
        check(0, key, "ed793a", "ee080dbf", "0720b1d07b359d3c");
        check(
            1,
            key,
            "ed793a51d49b8f5fab65",
            "ee080dbf48",
            "2fcc381bc74cb4fbad2823a3d1f8fed2",
        );
        check(
            2,
            key,
            "ed793a51d49b8f5f",
            "ee080dbf48c0d1e5",
            "504dd2d05a7b0de9b2b9907afb5ecf8cc3",
        );
        check(
            3,
            key,
            "ed793a51d49b8f5fab",
            "ee080dbf48c0d1e55d",
            "725779c9cc86beb3a3a4a3ca96fce4bfe0cdbc",
        );
    }

    #[test]
    fn config_with_id_or_length_out_of_range_is_rejected() {
        assert_eq!(Config::new(7, 2, 4, None).err(), Some(Error::Rotation(7)));
        for (sid, nonce) in [(0, 4), (1, 3), (10, 10)] {
            assert_eq!(
                Config::new(0, sid, nonce, None).err(),
                Some(Error::Lengths(sid, nonce))
            );
        }
    }
}
