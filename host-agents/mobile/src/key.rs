// SPDX-License-Identifier: Apache-2.0
//! The key that a service and its clients share.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use ring::rand::{SecureRandom, SystemRandom};

/// Bytes of a secret.
pub const SECRET_LEN: usize = 32;

/// A secret that is never logged.
#[derive(Clone)]
pub struct Secret(pub(crate) [u8; SECRET_LEN]);

impl Secret {
    /// Create a random secret.
    pub fn random() -> Self {
        Self(random())
    }

    /// Return the secret as hexadecimal digits, the content of a key file.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Read a key file: 64 hexadecimal digits and white space.
    ///
    /// # Errors
    /// If the file cannot be read, contains anything else, or is readable by users other than its owner and group.
    pub fn load(path: &Path) -> Result<Self> {
        let place = path.display();
        let mut file = File::open(path).with_context(|| format!("{place}: cannot open the key"))?;
        let mode = file.metadata()?.permissions().mode();
        ensure!(
            mode & 0o007 == 0,
            "{place}: everyone may read the key: use `chmod o= {place}`"
        );
        let mut text = String::new();
        file.read_to_string(&mut text)
            .with_context(|| format!("{place}: cannot read the key"))?;
        match from_hex(text.trim()) {
            Some(secret) => Ok(Self(secret)),
            // The content must not appear in logs.
            None => bail!("{place}: invalid key: create one with `frontage-mobile key`"),
        }
    }
}

/// Return random bytes from the kernel.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.expect("the kernel gives random bytes");
    bytes
}

fn from_hex(text: &str) -> Option<[u8; SECRET_LEN]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * SECRET_LEN || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let mut secret = [0; SECRET_LEN];
    for (byte, at) in secret.iter_mut().zip((0..text.len()).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(text: &str, mode: u32) -> Result<Secret> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        Secret::load(&path)
    }

    #[test]
    fn key_file_contains_the_secret() {
        let secret = Secret::random();
        let read = loaded(&format!("{}\n", secret.to_hex()), 0o640).unwrap();
        assert_eq!(read.0, secret.0);
    }

    #[test]
    fn rejects_invalid_and_public_key_files() {
        let hex = Secret::random().to_hex();
        for (text, mode) in [
            (&hex[1..], 0o600),
            ("", 0o600),
            (&*hex.replace(['0', '1'], "g"), 0o600),
            (&hex, 0o644),
        ] {
            let error = loaded(text, mode).err().expect("an error").to_string();
            assert!(error.contains("/key: "), "{error}");
            assert!(text.is_empty() || !error.contains(text), "{error}");
        }
    }
}
