//! What bodies ought to be.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use ring::digest::{Context, SHA256};

use crate::client::Failure;

/// A body's length and digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Bytes.
    Size(u64),
    /// SHA-256.
    Digest(String),
}

impl std::str::FromStr for Expected {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(Self::Digest(text.to_ascii_lowercase()));
        }
        let size = text.parse().map(Self::Size);
        size.map_err(|_| "neither a size in bytes nor a SHA-256 of 64 hexadecimal digits".into())
    }
}

/// Counts a body, and digests it if that is asked for.
pub struct Seen {
    /// Bytes so far.
    pub bytes: u64,
    digest: Option<Context>,
}

impl Seen {
    /// Nothing yet.
    pub fn new(digest: bool) -> Self {
        Self {
            bytes: 0,
            digest: digest.then(|| Context::new(&SHA256)),
        }
    }

    /// What is to be compared with `expected`.
    pub fn expecting(expected: Option<&Expected>) -> Self {
        Self::new(matches!(expected, Some(Expected::Digest(_))))
    }

    /// The next part.
    pub fn add(&mut self, part: &[u8]) {
        self.bytes += part.len() as u64;
        if let Some(digest) = &mut self.digest {
            digest.update(part);
        }
    }

    /// SHA-256 in hexadecimal digits, if it was asked for.
    pub fn digest(&self) -> Option<String> {
        let digest = self.digest.clone()?.finish();
        Some(
            digest
                .as_ref()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect(),
        )
    }

    /// Whether it is what was expected.
    pub fn check(&self, expected: Option<&Expected>) -> Result<(), Failure> {
        let right = match expected {
            None => true,
            Some(Expected::Size(size)) => self.bytes == *size,
            Some(Expected::Digest(digest)) => self.digest().as_ref() == Some(digest),
        };
        if right {
            Ok(())
        } else {
            Err(Failure::new("corrupt"))
        }
    }
}

/// The sequence that every object of the demo is a prefix of: a file, repeated (mininet/src/frontage_testbed/load/objects.py).
pub struct Sequence(Vec<u8>);

impl Sequence {
    /// Reads one period.
    pub fn read(file: &Path) -> Result<Self> {
        let period =
            std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        ensure!(!period.is_empty(), "{} is empty", file.display());
        Ok(Self(period))
    }

    /// Whether `part` is what stands at `offset`.
    pub fn has(&self, offset: u64, mut part: &[u8]) -> bool {
        let mut at = (offset % self.0.len() as u64) as usize;
        while !part.is_empty() {
            let here = part.len().min(self.0.len() - at);
            if part[..here] != self.0[at..at + here] {
                return false;
            }
            (part, at) = (&part[here..], 0);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_goes_round() {
        let sequence = Sequence(b"abcde".to_vec());
        assert!(sequence.has(0, b"abcdeabcdeab") && sequence.has(1003, b"deab"));
        assert!(!sequence.has(1, b"abc") && !sequence.has(0, b"abcdeabcdeax"));
    }

    #[test]
    fn what_is_expected_is_a_size_or_a_digest() {
        assert_eq!("17".parse(), Ok(Expected::Size(17)));
        // SHA-256 of nothing.
        let nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let expected: Expected = nothing.to_uppercase().parse().unwrap();
        let mut seen = Seen::expecting(Some(&expected));
        assert_eq!(seen.check(Some(&expected)), Ok(()));
        seen.add(b"x");
        assert!(seen.check(Some(&expected)).is_err());
        assert!("0x11".parse::<Expected>().is_err());
    }
}
