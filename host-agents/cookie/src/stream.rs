// SPDX-License-Identifier: Apache-2.0
//! The secret byte stream from which both ciphers draw their lookup tables.

use blake2::Blake2sMac256;
use blake2::digest::{FixedOutput, Update};

use crate::Secret;

const PERSON: &[u8; 8] = b"fccookie";
pub(crate) const BLOCK: usize = 32;

/// Return `B(n) = BLAKE2s-256(key, person = "fccookie", message = carrier | n)`, the `n`-th 32 bytes for `carrier`.
pub(crate) fn block(secret: &Secret, carrier: &[u8; 3], n: u32) -> [u8; BLOCK] {
    let mut mac = Blake2sMac256::new_with_salt_and_personal(secret.as_bytes(), &[], PERSON)
        .expect("BLAKE2s accepts the length of a Secret");
    mac.update(carrier);
    mac.update(&n.to_be_bytes());
    mac.finalize_fixed().into()
}
