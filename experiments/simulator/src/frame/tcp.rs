// SPDX-License-Identifier: Apache-2.0
//! TCP segments (RFC 9293), with the options in Linux's order.

use frontage_cookie::tcp::CK;
use frontage_transport::tcp::{Ecn, Flags, SackBlocks, Segment, Timestamps};

use super::Fault;
use super::checksum::{fold, sum};

const HEADER: usize = 20;
/// Maximum length of a header with options.
pub const MAX_LENGTH: usize = HEADER + 40;

/// Option kinds.
mod option {
    pub const END: u8 = 0;
    pub const NOP: u8 = 1;
    pub const MSS: u8 = 2;
    pub const WINDOW_SCALE: u8 = 3;
    pub const SACK_PERMITTED: u8 = 4;
    pub const SACK: u8 = 5;
    pub const TIMESTAMPS: u8 = 8;
}

/// Writes a header that fills `tcp` exactly. `pseudo` is the sum of the pseudo-header.
pub fn write(tcp: &mut [u8], ports: (u16, u16), segment: &Segment, ck: bool, pseudo: u64) {
    tcp[..2].copy_from_slice(&ports.0.to_be_bytes());
    tcp[2..4].copy_from_slice(&ports.1.to_be_bytes());
    tcp[4..8].copy_from_slice(&segment.seq.to_be_bytes());
    tcp[8..12].copy_from_slice(&segment.ack.to_be_bytes());
    tcp[12] = (tcp.len() as u8 / 4) << 4 | if ck { CK } else { 0 };
    tcp[13] = segment.flags.0;
    tcp[14..16].copy_from_slice(&segment.window.to_be_bytes());
    write_options(&mut tcp[HEADER..], segment);
    let checksum = fold(pseudo + sum(tcp));
    tcp[16..18].copy_from_slice(&checksum);
}

fn write_options(mut room: &mut [u8], segment: &Segment) {
    let mut put = |bytes: &[u8]| {
        let (here, rest) = std::mem::take(&mut room).split_at_mut(bytes.len());
        here.copy_from_slice(bytes);
        room = rest;
    };
    if let Some(mss) = segment.mss {
        let [high, low] = mss.to_be_bytes();
        put(&[option::MSS, 4, high, low]);
    }
    let sack_permitted = segment.sack_permitted && segment.flags.has(Flags::SYN);
    match (sack_permitted, segment.ts.is_some()) {
        (true, true) => put(&[option::SACK_PERMITTED, 2]),
        (true, false) => put(&[option::NOP, option::NOP, option::SACK_PERMITTED, 2]),
        (false, true) => put(&[option::NOP, option::NOP]),
        (false, false) => {}
    }
    if let Some(ts) = segment.ts {
        put(&[option::TIMESTAMPS, 10]);
        put(&ts.val.to_be_bytes());
        put(&ts.ecr.to_be_bytes());
    }
    if let Some(shift) = segment.window_scale {
        put(&[option::NOP, option::WINDOW_SCALE, 3, shift]);
    }
    if !segment.sack.is_empty() {
        put(&[
            option::NOP,
            option::NOP,
            option::SACK,
            2 + 8 * segment.sack.len() as u8,
        ]);
        for (left, right) in segment.sack.iter() {
            put(&left.to_be_bytes());
            put(&right.to_be_bytes());
        }
    }
}

/// Parses a segment. Returns it with the flag of a dynamic cookie in TSval, and the ports.
pub fn read(tcp: &[u8], ecn: Ecn, pseudo: u64) -> Result<(Segment, bool, (u16, u16)), Fault> {
    let fixed = tcp.first_chunk::<HEADER>().ok_or(Fault::Malformed)?;
    let header = usize::from(fixed[12] >> 4) * 4;
    if header < HEADER || header > tcp.len() {
        return Err(Fault::Malformed);
    }
    if fold(pseudo + sum(&tcp[..header])) != [0, 0] {
        return Err(Fault::Checksum);
    }
    let word =
        |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let half = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let mut segment = Segment {
        seq: word(4),
        ack: word(8),
        flags: Flags(fixed[13]),
        window: half(14),
        window_scale: None,
        mss: None,
        sack_permitted: false,
        ts: None,
        sack: SackBlocks::default(),
        len: (tcp.len() - header) as u32,
        ecn,
    };
    read_options(&tcp[HEADER..header], &mut segment)?;
    Ok((segment, fixed[12] & CK != 0, (half(0), half(2))))
}

fn read_options(mut rest: &[u8], segment: &mut Segment) -> Result<(), Fault> {
    let number = |bytes: [u8; 4]| u32::from_be_bytes(bytes);
    while let [kind, tail @ ..] = rest {
        match *kind {
            option::END => return Ok(()),
            option::NOP => {
                rest = tail;
                continue;
            }
            _ => {}
        }
        let length = usize::from(*tail.first().ok_or(Fault::Malformed)?);
        let body = rest.get(2..length).ok_or(Fault::Malformed)?;
        match (*kind, body) {
            (option::TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
                let (val, ecr) = (number([a, b, c, d]), number([e, f, g, h]));
                segment.ts = Some(Timestamps { val, ecr });
            }
            (option::SACK, blocks) => {
                for block in blocks.chunks_exact(8) {
                    let word = |at: usize| {
                        number([block[at], block[at + 1], block[at + 2], block[at + 3]])
                    };
                    segment.sack.push(word(0), word(4));
                }
            }
            (option::MSS, &[high, low]) => segment.mss = Some(u16::from_be_bytes([high, low])),
            (option::SACK_PERMITTED, []) => segment.sack_permitted = true,
            (option::WINDOW_SCALE, &[shift]) => segment.window_scale = Some(shift),
            _ => {}
        }
        rest = &rest[length..];
    }
    Ok(())
}
