// SPDX-License-Identifier: Apache-2.0
//! The TCP carrier: 16 bits under a coarse clock in the timestamp option's TSval.

use core::net::{Ipv4Addr, Ipv6Addr};

use crate::quant::{RPT_UNIT_US, TCP_COUNT, TCP_RPT};
use crate::{Error, Secret, stream};

/// Base-2 logarithm of the kernel timestamp's milliseconds in a tick of the coarse clock.
pub const COARSE_SHIFT: u32 = 10;
/// The bit in byte 12 of the TCP header that marks a dynamic cookie in TSval.
pub const CK: u8 = 0x08;

/// A server id that fits the TCP form: 12 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sid(u16);

impl Sid {
    /// The largest server id.
    pub const MAX: u16 = 0xfff;

    /// Create a server id.
    ///
    /// # Errors
    /// If `sid` is above [`Sid::MAX`].
    pub const fn new(sid: u16) -> Result<Self, Error> {
        if sid > Self::MAX {
            Err(Error::SidTooLarge(sid))
        } else {
            Ok(Self(sid))
        }
    }

    /// Return the number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// The signals that the dynamic form carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// Remaining processing time of the flow, in microseconds.
    pub rpt_us: u64,
    /// N_AF, the active flows of the server.
    pub n_af: u64,
    /// N_FF, the active flows with more than the look-ahead left.
    pub n_ff: u64,
}

/// Return the coarse clock of a kernel timestamp in milliseconds. A tick is 1.024 s.
pub const fn coarse_clock(ts: u32) -> u16 {
    (ts >> COARSE_SHIFT) as u16
}

/// Return TSval in the dynamic form, from the kernel's timestamp and the signals.
pub const fn encode_dynamic(ts: u32, signals: Signals) -> u32 {
    (coarse_clock(ts) as u32) << 16
        | TCP_RPT.encode(signals.rpt_us / RPT_UNIT_US) << 10
        | TCP_COUNT.encode(signals.n_af) << 5
        | TCP_COUNT.encode(signals.n_ff)
}

/// Return the coarse clock and the signals in a dynamic TSval. Each signal is the lower end of its interval.
pub const fn decode_dynamic(tsval: u32) -> (u16, Signals) {
    let signals = Signals {
        rpt_us: TCP_RPT.decode(tsval >> 10 & 0x3f) * RPT_UNIT_US,
        n_af: TCP_COUNT.decode(tsval >> 5 & 0x1f),
        n_ff: TCP_COUNT.decode(tsval & 0x1f),
    };
    ((tsval >> 16) as u16, signals)
}

/// The four-tuple of a connection as the client sees it. A code is bound to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuple {
    bytes: [u8; 36],
    len: usize,
}

impl Tuple {
    /// Create the tuple of a connection over IPv4.
    pub fn v4(client: Ipv4Addr, vip: Ipv4Addr, client_port: u16, vip_port: u16) -> Self {
        Self::of(&client.octets(), &vip.octets(), client_port, vip_port)
    }

    /// Create the tuple of a connection over IPv6.
    pub fn v6(client: Ipv6Addr, vip: Ipv6Addr, client_port: u16, vip_port: u16) -> Self {
        Self::of(&client.octets(), &vip.octets(), client_port, vip_port)
    }

    fn of(client: &[u8], vip: &[u8], client_port: u16, vip_port: u16) -> Self {
        let mut tuple = Self {
            bytes: [0; 36],
            len: 0,
        };
        for part in [
            client,
            vip,
            &client_port.to_be_bytes(),
            &vip_port.to_be_bytes(),
        ] {
            tuple.bytes[tuple.len..tuple.len + part.len()].copy_from_slice(part);
            tuple.len += part.len();
        }
        tuple
    }

    /// Return the cipher's tweak: CRC-32 over client address, VIP, client port and VIP port.
    pub fn tweak(&self) -> u32 {
        crc32fast::hash(&self.bytes[..self.len])
    }
}

const CHECK_BITS: u32 = 3;
const R_MASK: u8 = 0x7f;

/// A key of the static form, expanded to the tables that switches hold.
#[derive(Clone)]
pub struct Key {
    id: u32,
    tables: [[u8; 256]; 4],
}

impl Key {
    /// Expand `secret`. `id` increases by one with each rotation.
    pub fn new(id: u32, secret: &Secret) -> Self {
        let mut tables = [[0; 256]; 4];
        let chunks = tables
            .iter_mut()
            .flat_map(|t| t.chunks_exact_mut(stream::BLOCK));
        for (n, chunk) in (0..).zip(chunks) {
            chunk.copy_from_slice(&stream::block(secret, b"tcp", n));
        }
        Self { id, tables }
    }

    /// Return the id given to [`Key::new`].
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Return the round tables `S[0..3]`.
    pub const fn tables(&self) -> &[[u8; 256]; 4] {
        &self.tables
    }

    /// Return the 16-bit code of `sid` in the connection `tuple`.
    pub fn seal(&self, tuple: &Tuple, sid: Sid) -> u16 {
        let plain = sid.get() << CHECK_BITS;
        let (l, r) = ((plain >> 7) as u8, plain as u8 & R_MASK);
        let (l, r) = self.rounds(tuple, l, r, [0, 1, 2, 3]);
        (self.id as u16 & 1) << 15 | u16::from(l) << 7 | u16::from(r)
    }

    /// Return the server id in `code`, if this key sealed it for `tuple`. A random code passes with probability 1/8.
    pub fn open(&self, tuple: &Tuple, code: u16) -> Option<Sid> {
        if code >> 15 != self.id as u16 & 1 {
            return None;
        }
        let (l, r) = ((code >> 7) as u8, code as u8 & R_MASK);
        let (l, r) = self.rounds(tuple, l, r, [3, 2, 1, 0]);
        let plain = u16::from(l) << 7 | u16::from(r);
        (plain & ((1 << CHECK_BITS) - 1) == 0).then_some(Sid(plain >> CHECK_BITS))
    }

    /// Return TSval in the static form.
    pub fn encode_static(&self, tuple: &Tuple, sid: Sid, coarse_clock: u16) -> u32 {
        let clock = coarse_clock.wrapping_add(self.id as u16);
        u32::from(clock) << 16 | u32::from(self.seal(tuple, sid))
    }

    // A Feistel round is its own inverse, so opening runs the same rounds in reverse order.
    fn rounds(&self, tuple: &Tuple, mut l: u8, mut r: u8, order: [usize; 4]) -> (u8, u8) {
        let t = tuple.tweak().to_be_bytes();
        for i in order {
            if i % 2 == 0 {
                l ^= self.tables[i][usize::from(r ^ t[i])];
            } else {
                r ^= self.tables[i][usize::from(l ^ t[i])] & R_MASK;
            }
        }
        (l, r)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tuple() -> Tuple {
        Tuple::v4([192, 0, 2, 1].into(), [10, 9, 0, 1].into(), 40_000, 80)
    }

    #[test]
    fn every_sid_opens_and_one_code_in_eight_passes() {
        let key = Key::new(3, &Secret::new(&[5; 32]).unwrap());
        for sid in (0..=Sid::MAX).map(Sid) {
            assert_eq!(key.open(&tuple(), key.seal(&tuple(), sid)), Some(sid));
        }
        let opened = (0..=u16::MAX)
            .filter(|&c| key.open(&tuple(), c).is_some())
            .count();
        assert_eq!(opened, 4096);
    }

    #[test]
    fn static_tsval_never_decreases() {
        let keys = [4, 5].map(|id| Key::new(id, &Secret::new(&[id as u8; 16]).unwrap()));
        let sid = Sid(77);
        let mut last = keys[0].encode_static(&tuple(), sid, 0xffff);
        for (key, clock) in [(&keys[0], 0), (&keys[1], 0), (&keys[1], 0), (&keys[1], 1)] {
            let next = key.encode_static(&tuple(), sid, clock);
            assert!((next.wrapping_sub(last) as i32) >= 0);
            last = next;
        }
    }

    proptest! {
        #[test]
        fn dynamic_form_survives_a_round_trip(ts: u32, rpt_us in 0u64..64, n_af in 0u64..8, n_ff in 0u64..8) {
            let signals = Signals { rpt_us: rpt_us / 8 * 8, n_af, n_ff };
            prop_assert_eq!(decode_dynamic(encode_dynamic(ts, signals)), (coarse_clock(ts), signals));
        }
    }
}
