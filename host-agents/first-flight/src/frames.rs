// SPDX-License-Identifier: Apache-2.0
//! The frames that an Initial packet may carry (RFC 9000, 12.4).

use frontage_quic_wire::Reader;

use crate::{Crypto, Fault};

const PING: u64 = 0x01;
const ACK: u64 = 0x02;
const ACK_ECN: u64 = 0x03;
pub const CRYPTO: u8 = 0x06;
pub const CONNECTION_CLOSE: u8 = 0x1c;
const CRYPTO_FRAME: u64 = CRYPTO as u64;
const CLOSE_FRAME: u64 = CONNECTION_CLOSE as u64;

/// Iterator over the frames of an Initial, without PADDING.
struct Frames<'a>(Reader<'a>);

struct Frame<'a> {
    /// The complete frame.
    bytes: &'a [u8],
    /// Offset of CRYPTO data; 0 for other frames.
    offset: u64,
    /// CRYPTO data; empty for other frames.
    data: &'a [u8],
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, Fault>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let Self(rest) = self;
        rest.0 = &rest.0[zeros(rest.0)..];
        let start = rest.0;
        start.first()?;
        let frame = frame(rest).map(|(offset, data)| Frame {
            bytes: &start[..start.len() - rest.0.len()],
            offset,
            data,
        });
        Some(frame.ok_or(Fault::Frame))
    }
}

/// Add the CRYPTO frames of an Initial to `crypto`.
///
/// # Errors
/// [`Fault::Frame`], [`Fault::CryptoTooLong`].
#[inline]
pub fn gather(frames: &[u8], crypto: &mut Crypto) -> Result<(), Fault> {
    for frame in Frames(Reader(frames)) {
        let Frame { offset, data, .. } = frame?;
        if !data.is_empty() {
            crypto.insert(offset, data)?;
        }
    }
    Ok(())
}

/// Return the frames of an Initial without PADDING.
///
/// # Errors
/// [`Fault::Frame`].
pub fn without_padding(frames: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut kept = Vec::with_capacity(frames.len());
    for frame in Frames(Reader(frames)) {
        kept.extend(frame?.bytes);
    }
    Ok(kept)
}

/// Count the leading zeros, 16 bytes at a time because most of a first flight is PADDING.
#[inline]
fn zeros(bytes: &[u8]) -> usize {
    let (words, _) = bytes.as_chunks::<16>();
    let words = words
        .iter()
        .take_while(|word| u128::from_ne_bytes(**word) == 0)
        .count();
    let rest = &bytes[16 * words..];
    16 * words + rest.iter().take_while(|byte| **byte == 0).count()
}

/// Read one frame, and return its CRYPTO offset and data, which are 0 and empty for other frames. Return `None` if
/// the frame is malformed or not allowed.
#[inline]
fn frame<'a>(rest: &mut Reader<'a>) -> Option<(u64, &'a [u8])> {
    match rest.varint()? {
        CRYPTO_FRAME => {
            let offset = rest.varint()?;
            return Some((offset, rest.length_prefixed()?));
        }
        PING => {}
        kind @ (ACK | ACK_ECN) => {
            rest.varint()?; // largest acknowledged
            rest.varint()?; // delay
            let ranges = rest.varint()?;
            let counts = if kind == ACK_ECN { 3 } else { 0 };
            // Two numbers per range after the first range. An excessive count ends the loop when no bytes are left.
            for _ in 0..ranges.checked_mul(2)?.checked_add(1 + counts)? {
                rest.varint()?;
            }
        }
        CLOSE_FRAME => {
            rest.varint()?; // error code
            rest.varint()?; // type of the frame at fault
            rest.length_prefixed()?; // reason
        }
        _ => return None,
    }
    Some((0, &[]))
}
