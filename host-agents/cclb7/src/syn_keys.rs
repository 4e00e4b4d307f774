// SPDX-License-Identifier: Apache-2.0
//! The keys of SYN cookies, from the key file that `frontage keys` writes.

use std::path::Path;

use anyhow::{Result, bail};
use frontage_cookie::syn;
use frontage_daemon::key_file;

use crate::abi::SynKey;

/// Read the keys, by epoch.
///
/// # Errors
/// If the file is not a key file with one or two keys of consecutive ids.
pub fn read(path: &Path) -> Result<[SynKey; 2]> {
    let found = key_file::load(path)?;
    let ids: Vec<u32> = found.iter().map(|(id, _)| *id).collect();
    match ids[..] {
        [_] => {}
        [a, b] if a.abs_diff(b) == 1 => {}
        _ => bail!(
            "{}: key ids {ids:?}: give one key, or two with consecutive ids",
            path.display()
        ),
    }
    let mut keys = [SynKey::default(); 2];
    for (id, secret) in &found {
        keys[(id & 1) as usize] = SynKey {
            words: syn::Key::new(secret).words(),
            valid: 1,
        };
    }
    Ok(keys)
}
