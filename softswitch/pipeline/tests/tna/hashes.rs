// SPDX-License-Identifier: Apache-2.0
//! Hashes: algorithms with TNA's names, and own polynomials.

use serde_json::{Value as Json, json};

use super::common::tna::{Tna, call, field, list, object, packet};
use super::{forwarding, result};

/// A program with `hdr.y = hash(meta.a, hdr.y)`.
fn hashing(attributes: &[(&str, Json)], fields: &[(&str, &str)]) -> Tna {
    let hash = call(
        "_Hash_get_hash",
        vec![object("h"), field("hdr", "y"), list(fields)],
    );
    forwarding()
        .object("h", "Hash", attributes)
        .ingress(vec![hash])
}

fn hash(attributes: &[(&str, Json)], y: u32) -> u32 {
    let program = hashing(attributes, &[("hdr", "y")]);
    result(&mut program.pipeline(), &packet(1, 2, 3, y))
}

fn custom(
    width: &str,
    coeff: &str,
    reversed: &str,
    init: &str,
    xor: &str,
) -> [(&'static str, Json); 6] {
    [
        ("algo", json!("custom")),
        ("width", json!(width)),
        ("coeff", json!(coeff)),
        ("reversed", json!(reversed)),
        ("init", json!(init)),
        ("xor", json!(xor)),
    ]
}

/// The bytes of "1234".
const INPUT: u32 = 0x3132_3334;

#[test]
fn custom_polynomials_match_known_algorithms() {
    let ones = "0xffffffff";
    let reversed = custom("0x20", "0x04c11db7", "0x1", ones, ones);
    let crc32 = hash(&[("algo", json!("crc32"))], INPUT);
    assert_eq!(crc32, 0x9be3_e0a3);
    assert_eq!(hash(&reversed, INPUT), crc32);
    // CRC-16/ARC, with the coefficient of the highest power.
    let arc = custom("0x10", "0x18005", "0x1", "0x0", "0x0");
    assert_eq!(hash(&arc, INPUT), hash(&[("algo", json!("crc16"))], INPUT));
}

#[test]
fn identity_is_the_low_bits_of_the_input() {
    let identity = [("algo", json!("identity"))];
    let fields = [("hdr", "arg"), ("hdr", "x"), ("hdr", "y")];
    let mut p = hashing(&identity, &fields).pipeline();
    assert_eq!(result(&mut p, &packet(1, 2, 3, 0x1234_5678)), 0x1234_5678);
    let mut p = hashing(&identity, &[("hdr", "op"), ("ig_intr_md", "ingress_port")]).pipeline();
    assert_eq!(result(&mut p, &packet(1, 2, 3, 4)), (1 << 9) | 7);
}

#[test]
fn random_hash_depends_only_on_the_input() {
    let random = [("algo", json!("random"))];
    assert_eq!(hash(&random, 5), hash(&random, 5));
    assert_ne!(hash(&random, 5), hash(&random, 6));
}

#[test]
fn short_exclusive_or_and_crc_have_their_widths() {
    assert_eq!(
        hash(&[("algo", json!("xor8"))], INPUT),
        0x31 ^ 0x32 ^ 0x33 ^ 0x34
    );
    // CRC-8/SMBUS.
    assert_eq!(hash(&[("algo", json!("crc8"))], INPUT), 0xc2);
}
