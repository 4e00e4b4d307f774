// SPDX-License-Identifier: Apache-2.0
//! The frames of a session. One encrypted record of a carrier holds one frame.

use thiserror::Error;

/// Most bytes of the stream in one frame.
pub const MAX_DATA: usize = 16 * 1024;
/// Most bytes of an encoded frame.
pub const MAX_FRAME: usize = MAX_DATA + 9;
/// Bytes of a SHA-256 digest.
pub const DIGEST_LEN: usize = 32;

const DATA: u8 = 0;
const ACK: u8 = 1;
const END: u8 = 2;
const RESET: u8 = 3;
const BYE: u8 = 4;

/// A frame. Offsets count the bytes of one direction since the session began; the end of the stream counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Bytes of the stream, the first of which has this offset.
    Data {
        /// Offset of the first byte.
        offset: u64,
        /// The bytes, at most [`MAX_DATA`].
        bytes: &'a [u8],
    },
    /// All offsets below this one have been delivered to the application.
    Ack(u64),
    /// The stream ends at this offset.
    End {
        /// Number of bytes of the whole stream.
        offset: u64,
        /// SHA-256 of the whole stream.
        digest: [u8; DIGEST_LEN],
    },
    /// The sender's local connection failed, so the peer must reset its own.
    Reset,
    /// Both directions have ended, and the sender forgets the session.
    Bye,
}

/// A record that is not a valid frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("invalid frame of {0} bytes")]
pub struct InvalidFrame(usize);

impl<'a> Frame<'a> {
    /// Append the encoded frame to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Data { offset, bytes } => {
                out.push(DATA);
                out.extend(offset.to_be_bytes());
                out.extend(*bytes);
            }
            Self::Ack(delivered) => {
                out.push(ACK);
                out.extend(delivered.to_be_bytes());
            }
            Self::End { offset, digest } => {
                out.push(END);
                out.extend(offset.to_be_bytes());
                out.extend(digest);
            }
            Self::Reset => out.push(RESET),
            Self::Bye => out.push(BYE),
        }
    }

    /// Decode a frame.
    ///
    /// # Errors
    /// If the kind is unknown or the length does not fit it.
    pub fn decode(record: &'a [u8]) -> Result<Self, InvalidFrame> {
        let invalid = InvalidFrame(record.len());
        let (kind, rest) = record.split_first().ok_or(invalid)?;
        let offset = rest.split_first_chunk::<8>();
        let offset = offset.map(|(number, rest)| (u64::from_be_bytes(*number), rest));
        match (*kind, offset) {
            (DATA, Some((offset, bytes))) if (1..=MAX_DATA).contains(&bytes.len()) => {
                Ok(Self::Data { offset, bytes })
            }
            (ACK, Some((delivered, []))) => Ok(Self::Ack(delivered)),
            (END, Some((offset, digest))) => {
                let digest = digest.try_into().map_err(|_| invalid)?;
                Ok(Self::End { offset, digest })
            }
            (RESET, None) if rest.is_empty() => Ok(Self::Reset),
            (BYE, None) if rest.is_empty() => Ok(Self::Bye),
            _ => Err(invalid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_encoding() {
        let digest = [7; DIGEST_LEN];
        for frame in [
            Frame::Data {
                offset: u64::MAX,
                bytes: b"x",
            },
            Frame::Ack(3),
            Frame::End { offset: 4, digest },
            Frame::Reset,
            Frame::Bye,
        ] {
            let mut bytes = Vec::new();
            frame.encode(&mut bytes);
            assert_eq!(Frame::decode(&bytes), Ok(frame));
        }
    }

    #[test]
    fn rejects_unknown_kinds_and_wrong_lengths() {
        let mut long = vec![DATA; MAX_FRAME + 1];
        for invalid in [&[][..], &[9], &[ACK, 1], &[BYE, 0], &[DATA; 9], &[END; 40]] {
            assert!(Frame::decode(invalid).is_err(), "{invalid:?}");
        }
        assert!(Frame::decode(&long).is_err());
        long.pop();
        assert!(Frame::decode(&long).is_ok());
    }
}
