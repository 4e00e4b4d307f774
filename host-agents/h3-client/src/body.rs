// SPDX-License-Identifier: Apache-2.0
//! Checks of response bodies.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use ring::digest::{Context, SHA256};

use crate::Error;

/// The expected body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A length in bytes.
    Size(u64),
    /// A SHA-256 digest in lower-case hexadecimal digits.
    Digest(String),
}

impl std::str::FromStr for Expected {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(Self::Digest(text.to_ascii_lowercase()));
        }
        let size = text.parse().map(Self::Size);
        size.map_err(|_| {
            "must be a size in bytes or a SHA-256 digest of 64 hexadecimal digits".into()
        })
    }
}

/// Measures a body as it arrives, and computes its digest on request.
pub struct BodyMeter {
    /// Number of bytes so far.
    pub bytes: u64,
    digest: Option<Context>,
}

impl BodyMeter {
    /// Creates a meter that also computes the SHA-256 digest if `digest` is set.
    pub fn new(digest: bool) -> Self {
        Self {
            bytes: 0,
            digest: digest.then(|| Context::new(&SHA256)),
        }
    }

    /// Creates a meter for a comparison with `expected`.
    pub fn expecting(expected: Option<&Expected>) -> Self {
        Self::new(matches!(expected, Some(Expected::Digest(_))))
    }

    /// Adds the next chunk of the body.
    pub fn add(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len() as u64;
        if let Some(digest) = &mut self.digest {
            digest.update(chunk);
        }
    }

    /// Returns the SHA-256 digest in hexadecimal digits, if requested.
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

    /// Compares the body with `expected`.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] if they differ.
    pub fn check(&self, expected: Option<&Expected>) -> Result<(), Error> {
        let is_correct = match expected {
            None => true,
            Some(Expected::Size(size)) => self.bytes == *size,
            Some(Expected::Digest(digest)) => self.digest().as_ref() == Some(digest),
        };
        if is_correct {
            Ok(())
        } else {
            Err(Error::Corrupt)
        }
    }
}

/// The infinite sequence of which every object of the demo is a prefix: a file, repeated
/// (mininet/src/frontage_testbed/load/objects.py).
pub struct PeriodicContent(Vec<u8>);

impl PeriodicContent {
    /// Reads one period from `file`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is empty.
    pub fn read(file: &Path) -> Result<Self> {
        let period =
            std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        ensure!(!period.is_empty(), "{} is empty", file.display());
        Ok(Self(period))
    }

    /// Returns true if `chunk` is the content at `offset`.
    pub fn matches(&self, offset: u64, mut chunk: &[u8]) -> bool {
        let mut at = (offset % self.0.len() as u64) as usize;
        while !chunk.is_empty() {
            let len = chunk.len().min(self.0.len() - at);
            if chunk[..len] != self.0[at..at + len] {
                return false;
            }
            (chunk, at) = (&chunk[len..], 0);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periodic_content_repeats() {
        let content = PeriodicContent(b"abcde".to_vec());
        assert!(content.matches(0, b"abcdeabcdeab") && content.matches(1003, b"deab"));
        assert!(!content.matches(1, b"abc") && !content.matches(0, b"abcdeabcdeax"));
    }

    #[test]
    fn checks_size_or_digest() {
        assert_eq!("17".parse(), Ok(Expected::Size(17)));
        // SHA-256 of the empty string.
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let expected: Expected = empty.to_uppercase().parse().unwrap();
        let mut meter = BodyMeter::expecting(Some(&expected));
        assert!(meter.check(Some(&expected)).is_ok());
        meter.add(b"x");
        assert!(meter.check(Some(&expected)).is_err());
        assert!("0x11".parse::<Expected>().is_err());
    }
}
