// SPDX-License-Identifier: Apache-2.0
//! The keys of QUIC's cookies.

use std::path::Path;

use anyhow::Result;
use frontage_cookie::ipv6;
use frontage_daemon::key_file;

/// Read the key file at `path`.
///
/// # Errors
/// If the file cannot be read or a key is invalid.
pub fn load(path: &Path) -> Result<Vec<ipv6::Key>> {
    let keys = key_file::load(path)?;
    Ok(keys
        .into_iter()
        .map(|(id, secret)| ipv6::Key::new(id, &secret))
        .collect())
}
