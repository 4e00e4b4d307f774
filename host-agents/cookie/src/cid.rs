// SPDX-License-Identifier: Apache-2.0
//! The connection id that a server chooses: 12 bytes, by which a switch finds the server of a QUIC client that stays
//! at the VIP (docs/cookie.md, "Connection id").
//!
//! The first octet is QUIC-LB's (draft-ietf-quic-load-balancers, section 3): 3 bits of configuration, and 5 of
//! length.

use crate::ipv6::Key;

/// Bytes of a connection id.
pub const LEN: usize = 12;

/// The configuration of the plaintext form; 0 and 1 are the epochs of the sealed form.
pub const CONFIG_PLAIN: u8 = 2;

const LENGTH_BITS: u32 = 5;
// Length of the id without its first octet.
const LENGTH: u8 = LEN as u8 - 1;

const fn first_octet(config: u8) -> u8 {
    config << LENGTH_BITS | LENGTH
}

/// Return an id in the sealed form: `key` seals `sid` and `nonce` (1 to [`crate::ipv6::NONCE_MAX`], unique among the
/// ids of a server). `random` makes ids with the same nonce differ.
///
/// # Panics
/// If the nonce is out of range, as in [`Key::seal_cid`].
pub fn sealed(key: &Key, sid: u16, nonce: u32, random: [u8; 3]) -> [u8; LEN] {
    let mut id = [0; LEN];
    id[0] = first_octet((key.id() & 1) as u8);
    id[1..9].copy_from_slice(&key.seal_cid(sid, nonce).to_be_bytes());
    id[9..].copy_from_slice(&random);
    id
}

/// Return an id in QUIC-LB's plaintext form, which anyone can read and write: two bytes of server id, then the nonce.
pub fn plain(sid: u16, nonce: [u8; 9]) -> [u8; LEN] {
    let mut id = [0; LEN];
    id[0] = first_octet(CONFIG_PLAIN);
    id[1..3].copy_from_slice(&sid.to_be_bytes());
    id[3..].copy_from_slice(&nonce);
    id
}

/// Return the server that a connection id of either form names. Return `None` if the id has neither form, or if no
/// key of `keys` sealed it.
pub fn open<'a>(keys: impl IntoIterator<Item = &'a Key>, id: &[u8]) -> Option<u16> {
    let id: &[u8; LEN] = id.try_into().ok()?;
    if id[0] == first_octet(CONFIG_PLAIN) {
        return Some(u16::from_be_bytes([id[1], id[2]]));
    }
    let bits = u64::from_be_bytes(id[1..9].try_into().expect("eight bytes"));
    keys.into_iter()
        .filter(|key| id[0] == first_octet((key.id() & 1) as u8))
        .find_map(|key| key.open_cid(bits))
        .map(|(sid, _)| sid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Secret;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_forms_open(sid: u16, nonce in 1u32..1 << 24, random: [u8; 3], id in 0u32..4) {
            let secret = Secret::new(&[9; 16]).unwrap();
            let keys = [Key::new(id, &secret), Key::new(id + 1, &secret)];
            for key in &keys {
                prop_assert_eq!(open(&keys, &sealed(key, sid, nonce, random)), Some(sid));
            }
            prop_assert_eq!(open(&[], &plain(sid, [7; 9])), Some(sid));
        }

        #[test]
        fn random_ids_do_not_open(id in prop::collection::vec(any::<u8>(), 0..24)) {
            let key = Key::new(1, &Secret::new(&[9; 16]).unwrap());
            // Every id with the plaintext form's first octet is valid. An id that looks sealed opens by chance with
            // probability 2^-20.
            prop_assume!(id.first() != Some(&first_octet(CONFIG_PLAIN)));
            prop_assert_eq!(open([&key], &id), None);
        }
    }
}
