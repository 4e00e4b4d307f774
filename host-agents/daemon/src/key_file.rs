// SPDX-License-Identifier: Apache-2.0
//! The cookie key file (TOML), which `frontage keys` writes.

use std::path::Path;

use anyhow::{Result, bail};
use frontage_cookie::Secret;
use serde::Deserialize;
use toml::Spanned;

use crate::config::{locate, parse, read};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    keys: Vec<Spanned<Entry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: u32,
    secret: String,
}

/// Read the key file at `path`: `[[keys]]` with `id` and `secret` (hexadecimal), one or the two newest. Return the ids and
/// secrets.
///
/// # Errors
/// If the file cannot be read or a key is invalid.
pub fn load(path: &Path) -> Result<Vec<(u32, Secret)>> {
    let text = read(path)?;
    let file: File = parse(path, &text)?;
    let keys = file.keys.iter().map(|key| {
        // The secret must not appear in logs.
        let secret = hex(&key.get_ref().secret)
            .ok_or_else(|| "secret: not hexadecimal: use pairs of hexadecimal digits".to_owned());
        let secret =
            secret.and_then(|bytes| Secret::new(&bytes).map_err(|error| error.to_string()));
        match secret {
            Ok(secret) => Ok((key.get_ref().id, secret)),
            Err(reason) => bail!("{}", locate(path, &text, key.span(), &reason)),
        }
    });
    keys.collect()
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    (0..text.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&text[i..i + 2], 16).ok())
        .collect()
}
