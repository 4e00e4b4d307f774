//! Configuration files (TOML), and errors that name file, line and reason.

use std::ops::Range;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use serde::de::DeserializeOwned;

/// Units of bandwidths, in bit/s.
pub const BANDWIDTHS: [(&str, u64); 3] = [
    ("kbit", 1_000),
    ("mbit", 1_000_000),
    ("gbit", 1_000_000_000),
];

/// The file's text.
///
/// # Errors
/// With the file's name, if it cannot be read.
pub fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// What the `text` of the file at `path` says.
///
/// # Errors
/// With file and line, if it is wrong.
pub fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T> {
    toml::from_str(text).map_err(|error| {
        let place = error.span().unwrap_or(0..0);
        anyhow!("{}", at(path, text, place, error.message()))
    })
}

/// `FILE:LINE: reason`, where `place` is in the file's text.
pub fn at(path: &Path, text: &str, place: Range<usize>, reason: &str) -> String {
    let before = text.bytes().take(place.start);
    let line = 1 + before.filter(|byte| *byte == b'\n').count();
    format!("{}:{line}: {reason}", path.display())
}

/// A whole number above zero and one of `units`.
pub fn amount(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, unit) = units
        .iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
    number
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(*unit)
        .filter(|amount| *amount > 0)
}
