// SPDX-License-Identifier: Apache-2.0
//! SYN cookies: the initial sequence number by which a switch answers a SYN in a server's place
//! (`docs/syn-flood.md`). The server's agent verifies it without having seen the SYN.

use core::net::IpAddr;

use crate::{Secret, stream};

/// Bits of the hash in a sequence number.
const HASH_BITS: u32 = 26;
const NO_WINDOW_SCALE: u8 = 0xf;

/// The maximum segment sizes that a cookie can carry, by code.
pub const MSS: [u16; 8] = [536, 1024, 1220, 1300, 1400, 1440, 1460, 8940];

/// The options of a client with timestamps. A client without them has no other option but its MSS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The client's window scale; `None` without the option.
    pub window_scale: Option<u8>,
    /// True if the client accepts selective acknowledgments.
    pub sack: bool,
}

/// The fields of a sequence number that anyone can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The lowest bit of the id of the key.
    pub epoch: u8,
    /// The lowest two bits of the time, in units of 67 s.
    pub age: u8,
    /// The index of the client's maximum segment size in [`MSS`], rounded down.
    pub mss: u8,
}

impl Head {
    const fn bits(self) -> u32 {
        ((self.epoch & 1) as u32) << 5 | ((self.age & 3) as u32) << 3 | (self.mss & 7) as u32
    }
}

/// A SYN, as far as its answer depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syn {
    /// Address of the client.
    pub client: IpAddr,
    /// Port of the client.
    pub client_port: u16,
    /// The client's initial sequence number.
    pub client_isn: u32,
    /// The client's options; `None` without timestamps.
    pub options: Option<Options>,
}

/// The key of a [`Secret`].
#[derive(Clone, Copy)]
pub struct Key {
    words: [u32; 2],
}

impl Key {
    /// Derive the key.
    pub fn new(secret: &Secret) -> Self {
        let block = stream::block(secret, b"syn", 0);
        let word = |at: usize| u32::from_le_bytes(block[at..at + 4].try_into().expect("4 bytes"));
        Self {
            words: [word(0), word(4)],
        }
    }

    /// Return the two words of the key, as switches and eBPF programs have them.
    pub const fn words(&self) -> [u32; 2] {
        self.words
    }

    /// Return the initial sequence number of the answer to `syn`.
    pub fn isn(&self, syn: &Syn, head: Head) -> u32 {
        let mut words = [0; 6];
        let mut count = 0;
        let mut push = |word| {
            words[count] = word;
            count += 1;
        };
        match syn.client {
            IpAddr::V4(address) => push(u32::from_be_bytes(address.octets())),
            IpAddr::V6(address) => {
                for bytes in address.octets().chunks_exact(4) {
                    push(u32::from_be_bytes(bytes.try_into().expect("4 bytes")));
                }
            }
        }
        push(u32::from(syn.client_port) << 16 | head.bits() << 10 | option_bits(syn.options));
        push(syn.client_isn);
        let hash = half_sip_hash(self.words, &words[..count]);
        head.bits() << HASH_BITS | hash & ((1 << HASH_BITS) - 1)
    }
}

fn option_bits(options: Option<Options>) -> u32 {
    options.map_or(0, |options| {
        let scale = options.window_scale.unwrap_or(NO_WINDOW_SCALE) & 0xf;
        1 << 5 | u32::from(scale) << 1 | u32::from(options.sack)
    })
}

/// Return HalfSipHash-2-4 of whole words, which the reference implementation would read from little-endian bytes.
fn half_sip_hash(key: [u32; 2], words: &[u32]) -> u32 {
    let mut v = [key[0], key[1], 0x6c79_6765 ^ key[0], 0x7465_6462 ^ key[1]];
    let last = (4 * words.len() as u32) << 24;
    for word in words.iter().chain([&last]) {
        v[3] ^= word;
        sip_round(&mut v);
        sip_round(&mut v);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    for _ in 0..4 {
        sip_round(&mut v);
    }
    v[1] ^ v[3]
}

const fn sip_round(v: &mut [u32; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(5) ^ v[0];
    v[0] = v[0].rotate_left(16);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(8) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(7) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[2];
    v[2] = v[2].rotate_left(16);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_agrees_with_the_reference_implementation() {
        // The vectors of the reference implementation: key 00 .. 07, message 00, 01, ...
        let key = [0x0302_0100, 0x0706_0504];
        let words = [0x0302_0100, 0x0706_0504, 0x0b0a_0908, 0x0f0e_0d0c];
        for (count, expected) in [
            0x5b9f_35a9,
            0x8946_6e2a,
            0x8f84_b8d0,
            0x2f87_f057,
            0x84ac_b5d9,
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(half_sip_hash(key, &words[..count]), expected);
        }
    }

    #[test]
    fn every_field_changes_the_sequence_number() {
        let key = Key::new(&Secret::new(&[9; 16]).unwrap());
        let head = Head {
            epoch: 0,
            age: 0,
            mss: 0,
        };
        let syn = Syn {
            client: "198.51.100.7".parse().unwrap(),
            client_port: 40_000,
            client_isn: 5,
            options: None,
        };
        let options = |window_scale, sack| Some(Options { window_scale, sack });
        let syns = [
            syn,
            Syn {
                client: "198.51.100.8".parse().unwrap(),
                ..syn
            },
            Syn {
                client_port: 40_001,
                ..syn
            },
            Syn {
                client_isn: 6,
                ..syn
            },
            Syn {
                options: options(None, false),
                ..syn
            },
            Syn {
                options: options(Some(0), false),
                ..syn
            },
            Syn {
                options: options(Some(0), true),
                ..syn
            },
        ];
        let mut numbers: std::vec::Vec<u32> = syns.iter().map(|syn| key.isn(syn, head)).collect();
        for (epoch, age, mss) in [(1, 0, 0), (0, 1, 0), (0, 0, 1)] {
            numbers.push(key.isn(&syn, Head { epoch, age, mss }));
        }
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup_by_key(|number| *number & ((1 << HASH_BITS) - 1));
        assert_eq!(numbers.len(), count);
    }
}
