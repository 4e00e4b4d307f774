// SPDX-License-Identifier: Apache-2.0
//! The IPv6 carrier: 64 bits in the interface id, and in a QUIC connection id (`crate::cid`).

use crate::quant::{IPV6, RPT_UNIT_US};
use crate::tcp::Signals;
use crate::{Secret, stream};

const VERSION: u64 = 1;
const VERSION_CID: u64 = 2;
const SEALED: u64 = (1 << 60) - 1;
const L_BITS: u32 = 32;
const R_BITS: u32 = 28;
const CHECK: u64 = (1 << 19) - 1;
const X: u64 = 1 << 19;
const SIGNALS: u64 = ((1 << 24) - 1) << 20;

/// The largest nonce of a connection id (24 bits).
pub const NONCE_MAX: u32 = (1 << 24) - 1;

/// The content of an interface id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie {
    /// Server id.
    pub sid: u16,
    /// The source address that the client expects: `false` the VIP, `true` the static cookie's address. Always
    /// `false` in the static form, which does not open otherwise.
    pub expects_cookie_address: bool,
    /// RPT, N_AF and N_FF in the dynamic form, `None` in the static form.
    pub signals: Option<Signals>,
}

impl Cookie {
    /// Return the 64 bits before sealing, for a key of this `epoch` (the lowest bit of its id).
    pub fn plain(&self, epoch: u32) -> u64 {
        let signals = self.signals.map_or(0, |s| {
            u64::from(IPV6.encode(s.rpt_us / RPT_UNIT_US)) << 36
                | u64::from(IPV6.encode(s.n_af)) << 28
                | u64::from(IPV6.encode(s.n_ff)) << 20
        });
        VERSION << 62
            | u64::from(self.signals.is_some()) << 61
            | u64::from(epoch & 1) << 60
            | u64::from(self.sid) << 44
            | signals
            | u64::from(self.expects_cookie_address) << 19
    }

    fn from_plain(bits: u64) -> Option<Self> {
        let dynamic = bits >> 61 & 1 == 1;
        let check = if dynamic { CHECK } else { CHECK | X | SIGNALS };
        if bits >> 62 != VERSION || bits & check != 0 {
            return None;
        }
        let field = |shift: u32| IPV6.decode((bits >> shift) as u32 & 0xff);
        let signals = || Signals {
            rpt_us: field(36) * RPT_UNIT_US,
            n_af: field(28),
            n_ff: field(20),
        };
        Some(Self {
            sid: (bits >> 44) as u16,
            expects_cookie_address: bits >> 19 & 1 == 1,
            signals: dynamic.then(signals),
        })
    }
}

/// A key of the IPv6 carrier, expanded to its 16 tables (16 KiB).
#[derive(Clone)]
pub struct Key {
    id: u32,
    tables: [[[u32; 256]; 4]; 4],
}

impl Key {
    /// Expand `secret`. `id` increases by one with each rotation.
    pub fn new(id: u32, secret: &Secret) -> Self {
        const WORDS: usize = stream::BLOCK / 4;
        let mut tables = [[[0; 256]; 4]; 4];
        let chunks = tables
            .as_flattened_mut()
            .as_flattened_mut()
            .chunks_exact_mut(WORDS);
        for (n, chunk) in (0..).zip(chunks) {
            let block = stream::block(secret, b"ip6", n);
            for (word, bytes) in chunk.iter_mut().zip(block.chunks_exact(4)) {
                *word = u32::from_be_bytes(bytes.try_into().expect("4 bytes"));
            }
        }
        Self { id, tables }
    }

    /// Return the id given to [`Key::new`].
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Return the tables `T[round][byte position]`.
    pub const fn tables(&self) -> &[[[u32; 256]; 4]; 4] {
        &self.tables
    }

    /// Return the interface id that carries `cookie`.
    pub fn seal(&self, cookie: &Cookie) -> u64 {
        self.rounds(cookie.plain(self.id), [0, 1, 2, 3])
    }

    /// Return the cookie in `interface_id`, if this key sealed it. A foreign id of this version and epoch passes with
    /// probability 2^-19 (dynamic form) or 2^-44 (static form).
    pub fn open(&self, interface_id: u64) -> Option<Cookie> {
        if interface_id >> 60 & 1 != u64::from(self.id & 1) {
            return None;
        }
        Cookie::from_plain(self.rounds(interface_id, [3, 2, 1, 0]))
    }

    /// Return the 64 bits of a connection id that names server `sid` (`crate::cid`).
    ///
    /// # Panics
    /// Unless `nonce` is between 1 and [`NONCE_MAX`]: with a nonce of 0, the bits would be those of a static
    /// cookie.
    pub fn seal_cid(&self, sid: u16, nonce: u32) -> u64 {
        assert!(
            (1..=NONCE_MAX).contains(&nonce),
            "nonce {nonce:#x} is not between 1 and {NONCE_MAX:#x}"
        );
        let plain = VERSION_CID << 62
            | u64::from(self.id & 1) << 60
            | u64::from(sid) << 44
            | u64::from(nonce) << 20;
        self.rounds(plain, [0, 1, 2, 3])
    }

    /// Return server id and nonce in the 64 bits of a connection id, if this key sealed them. Foreign bits of this
    /// version and epoch pass with probability 2^-20.
    pub fn open_cid(&self, bits: u64) -> Option<(u16, u32)> {
        let head = VERSION_CID << 2 | u64::from(self.id & 1);
        let plain = self.rounds(bits, [3, 2, 1, 0]);
        let nonce = (plain >> 20) as u32 & NONCE_MAX;
        (plain >> 60 == head && plain & (X | CHECK) == 0 && nonce != 0)
            .then_some(((plain >> 44) as u16, nonce))
    }

    fn rounds(&self, bits: u64, order: [usize; 4]) -> u64 {
        let mut l = ((bits & SEALED) >> R_BITS) as u32;
        let mut r = bits as u32 & ((1 << R_BITS) - 1);
        for i in order {
            if i % 2 == 0 {
                l ^= self.round(i, r);
            } else {
                r ^= self.round(i, l) & ((1 << R_BITS) - 1);
            }
        }
        (bits & !SEALED) | u64::from(l) << (60 - L_BITS) | u64::from(r)
    }

    fn round(&self, i: usize, y: u32) -> u32 {
        let bytes = y.to_be_bytes();
        (0..4).fold(0, |f, j| f ^ self.tables[i][j][usize::from(bytes[j])])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sealed_cookie_opens(sid: u16, x: bool, dynamic: bool, n in 0u64..16, id in 0u32..4) {
            let key = Key::new(id, &Secret::new(&[9; 16]).unwrap());
            let signals = dynamic.then_some(Signals { rpt_us: n * 8, n_af: n, n_ff: n / 2 });
            let cookie = Cookie { sid, expects_cookie_address: x && dynamic, signals };
            prop_assert_eq!(key.open(key.seal(&cookie)), Some(cookie));
        }

        #[test]
        fn random_bits_do_not_open(bits: u64) {
            let key = Key::new(1, &Secret::new(&[9; 16]).unwrap());
            // An id of the dynamic form opens by chance with probability 2^-19; one of the static form must not.
            prop_assert!(key.open(bits & !(1 << 61)).is_none());
        }

        #[test]
        fn connection_id_opens_but_not_as_a_cookie(sid: u16, nonce in 1..=NONCE_MAX, id in 0u32..4) {
            let key = Key::new(id, &Secret::new(&[9; 16]).unwrap());
            let bits = key.seal_cid(sid, nonce);
            prop_assert_eq!(key.open_cid(bits), Some((sid, nonce)));
            prop_assert_eq!(key.open_cid(bits ^ 1 << 60), None);
            let as_cookie = bits & SEALED | (VERSION << 62 | u64::from(id & 1) << 60);
            prop_assert_eq!(key.open(as_cookie), None);
        }

        #[test]
        fn cookie_does_not_open_as_a_connection_id(sid: u16, id in 0u32..4) {
            let key = Key::new(id, &Secret::new(&[9; 16]).unwrap());
            let bits = key.seal(&Cookie { sid, expects_cookie_address: false, signals: None });
            prop_assert_eq!(key.open_cid(bits), None);
            prop_assert_eq!(key.open_cid(bits ^ (VERSION ^ VERSION_CID) << 62), None);
        }
    }
}
