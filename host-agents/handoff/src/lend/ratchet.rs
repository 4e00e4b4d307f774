//! The keys of the packets that the server side sends, from one key update to the next (RFC 9001, section 6.1).

use bytes::Bytes;

use crate::borrow::keys::Suite;
use crate::grant::Keys;

/// One traffic secret makes the next, and none the one before.
pub(super) struct Ratchet {
    /// TLS' number of the cipher suite.
    pub(super) suite: u16,
    /// The first secret, by which headers are protected all the time.
    pub(super) header: Bytes,
    /// The newest.
    pub(super) keys: Keys,
    by: Suite,
}

impl Ratchet {
    /// From the first secret; `None` if the suite is unknown.
    pub(super) fn new(suite: u16, secret: Vec<u8>) -> Option<Self> {
        let by = Suite::of(suite).ok()?;
        let secret = Bytes::from(secret);
        Some(Self {
            suite,
            header: secret.clone(),
            keys: Keys {
                generation: 0,
                secret,
            },
            by,
        })
    }

    /// A packet is of `generation`; the keys if they are new.
    pub(super) fn advance(&mut self, generation: u32) -> Option<&Keys> {
        if generation <= self.keys.generation {
            return None;
        }
        while self.keys.generation < generation {
            let next = self.by.update(&self.keys);
            self.keys = next.expect("a secret is as long as the hash");
        }
        Some(&self.keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9001, appendix A.5.
    #[test]
    fn the_secret_after_an_update() {
        let secret = [
            0x9a, 0xc3, 0x12, 0xa7, 0xf8, 0x77, 0x46, 0x8e, 0xbe, 0x69, 0x42, 0x27, 0x48, 0xad,
            0x00, 0xa1, 0x54, 0x43, 0xf1, 0x82, 0x03, 0xa0, 0x7d, 0x60, 0x60, 0xf6, 0x88, 0xf3,
            0x0f, 0x21, 0x63, 0x2b,
        ];
        let next = [
            0x12, 0x23, 0x50, 0x47, 0x55, 0x03, 0x6d, 0x55, 0x63, 0x42, 0xee, 0x93, 0x61, 0xd2,
            0x53, 0x42, 0x1a, 0x82, 0x6c, 0x9e, 0xcd, 0xf3, 0xc7, 0x14, 0x86, 0x84, 0xb3, 0x6b,
            0x71, 0x48, 0x81, 0xf9,
        ];
        let mut ratchet = Ratchet::new(0x1303, secret.to_vec()).expect("a suite of TLS 1.3");
        assert_eq!(ratchet.advance(0), None);
        let keys = ratchet.advance(1).expect("they are new").clone();
        assert_eq!((keys.generation, &keys.secret[..]), (1, &next[..]));
        assert_eq!(ratchet.advance(1), None);
        assert_eq!(ratchet.header[..], secret);
        assert!(Ratchet::new(0x1304, secret.to_vec()).is_none());
    }
}
