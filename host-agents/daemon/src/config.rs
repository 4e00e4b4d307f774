// SPDX-License-Identifier: Apache-2.0
//! Configuration files (TOML), and errors that name file and line.

use std::ops::Range;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use serde::de::DeserializeOwned;

/// Units of bandwidth, in bit/s.
pub const BANDWIDTH_UNITS: [(&str, u64); 3] = [
    ("kbit", 1_000),
    ("mbit", 1_000_000),
    ("gbit", 1_000_000_000),
];

/// Read a configuration file.
///
/// # Errors
/// If the file cannot be read; the error names it.
pub fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Parse `text`, the content of the file at `path`.
///
/// # Errors
/// If `text` is not a valid `T`; the error names file and line.
pub fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T> {
    toml::from_str(text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        anyhow!("{}", locate(path, text, span, error.message()))
    })
}

/// Return `FILE:LINE: message` for a `span` of the file's `text`.
pub fn locate(path: &Path, text: &str, span: Range<usize>, message: &str) -> String {
    let before = text.bytes().take(span.start);
    let line = 1 + before.filter(|byte| *byte == b'\n').count();
    format!("{}:{line}: {message}", path.display())
}

/// Parse a whole number above zero that one of `units` follows, such as `10mbit`.
pub fn parse_quantity(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, unit) = units
        .iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
    number
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(*unit)
        .filter(|quantity| *quantity > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_need_a_positive_number_and_a_known_unit() {
        assert_eq!(parse_quantity("10mbit", &BANDWIDTH_UNITS), Some(10_000_000));
        assert_eq!(
            parse_quantity("1 gbit", &BANDWIDTH_UNITS),
            Some(1_000_000_000)
        );
        for invalid in ["0mbit", "9", "1.5gbit", "-1kbit", "99999999999999gbit"] {
            assert_eq!(parse_quantity(invalid, &BANDWIDTH_UNITS), None, "{invalid}");
        }
    }

    #[test]
    fn errors_name_file_and_line() {
        let error = parse::<toml::Table>(Path::new("a.toml"), "x = 1\ny = \n").unwrap_err();
        assert!(error.to_string().starts_with("a.toml:2: "), "{error}");
    }
}
