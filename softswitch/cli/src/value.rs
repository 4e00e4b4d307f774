// SPDX-License-Identifier: Apache-2.0
//! Numbers and addresses in commands, and the bytes of P4Runtime (specification, section "Bytestrings").

use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use num_bigint::BigUint;

use crate::error::{Error, Result};

/// Reads a value of `width` bits: an IPv4 address if it has 32 bits, a MAC address if it has 48, an IPv6 address if it
/// has 128, or an integer in Python's notation (`10`, `0x0a`, `0o12`, `0b1010`). Returns its bytes without leading
/// zeros.
///
/// # Errors
/// If the text is not a value of this width.
pub fn parse(text: &str, width: u32) -> Result<Vec<u8>> {
    let value = match address(text, width) {
        Some(bytes) => BigUint::from_bytes_be(&bytes),
        None => integer(text).ok_or_else(|| invalid(text, width))?,
    };
    if value.bits() > u64::from(width) {
        let message = format!("{text:?} is too large: it must fit {width} bits");
        return Err(Error::new(message));
    }
    Ok(value.to_bytes_be())
}

fn invalid(text: &str, width: u32) -> Error {
    let also = match width {
        32 => " or an IPv4 address",
        48 => " or a MAC address",
        128 => " or an IPv6 address",
        _ => "",
    };
    Error::new(format!(
        "invalid value {text:?}: use an integer such as 10 or 0x0a{also}"
    ))
}

fn address(text: &str, width: u32) -> Option<Vec<u8>> {
    match width {
        32 => Some(text.parse::<Ipv4Addr>().ok()?.octets().to_vec()),
        48 => mac(text),
        128 => Some(text.parse::<Ipv6Addr>().ok()?.octets().to_vec()),
        _ => None,
    }
}

fn mac(text: &str) -> Option<Vec<u8>> {
    let bytes: Option<Vec<u8>> = text.split(':').map(mac_byte).collect();
    bytes.filter(|bytes| bytes.len() == 6)
}

fn mac_byte(text: &str) -> Option<u8> {
    let is_hex = text.bytes().all(|b| b.is_ascii_hexdigit());
    u8::from_str_radix(text, 16).ok().filter(|_| is_hex)
}

/// Reads a non-negative integer.
fn integer(text: &str) -> Option<BigUint> {
    let lower = text.to_ascii_lowercase();
    let (digits, radix) = match lower.get(..2) {
        Some("0x") => (&lower[2..], 16),
        Some("0o") => (&lower[2..], 8),
        Some("0b") => (&lower[2..], 2),
        _ => (&lower[..], 10),
    };
    let is_number = digits.bytes().all(|b| b.is_ascii_alphanumeric());
    is_number.then(|| BigUint::parse_bytes(digits.as_bytes(), radix))?
}

/// Reads a number that is not a value of the program, such as a handle.
///
/// # Errors
/// If the text is not an integer of this type.
pub fn number<T: FromStr + TryFrom<BigUint>>(text: &str, what: &str) -> Result<T> {
    let value = text.parse().ok();
    let value = value.or_else(|| T::try_from(integer(text)?).ok());
    value.ok_or_else(|| Error::new(format!("invalid {what} {text:?}: use an integer")))
}

/// Returns bytes without leading zeros, but at least one byte.
pub fn canonical(bytes: &[u8]) -> Vec<u8> {
    BigUint::from_bytes_be(bytes).to_bytes_be()
}

/// Returns the bytes as hexadecimal digits, with all bytes of a value of `width` bits.
pub fn hex(bytes: &[u8], width: u32) -> String {
    let digits = width.div_ceil(8) as usize * 2;
    let value = BigUint::from_bytes_be(bytes);
    format!("{:0>digits$}", value.to_str_radix(16))
}

/// Returns all ones of `width` bits.
pub fn ones(width: u32) -> BigUint {
    (BigUint::from(1u8) << width) - 1u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_each_notation() {
        assert_eq!(parse("10.0.0.1", 32).unwrap(), [10, 0, 0, 1]);
        assert_eq!(parse("00:00:00:00:01:02", 48).unwrap(), [1, 2]);
        assert_eq!(parse("::1", 128).unwrap(), [1]);
        assert_eq!(parse("0x0A", 8).unwrap(), [10]);
        assert_eq!(parse("0b101", 3).unwrap(), [5]);
        assert_eq!(parse("0o17", 8).unwrap(), [15]);
        assert_eq!(parse("0", 8).unwrap(), [0]);
        assert_eq!(parse("511", 9).unwrap(), [1, 255]);
    }

    #[test]
    fn rejects_what_is_not_a_value() {
        for (text, width) in [
            ("", 8),
            ("-1", 8),
            ("+1", 8),
            ("256", 8),
            ("0x", 8),
            ("1.2.3.4", 31),
            ("1.2.3", 32),
            ("::1", 48),
            ("a:b:c:d:e", 48),
            ("+a:0:0:0:0:0", 48),
            ("1:2:3:4:5:6", 32),
            ("é", 8),
            ("1_0", 8),
            ("abc", 128),
        ] {
            assert!(parse(text, width).is_err(), "{text:?} as {width} bits");
        }
    }

    #[test]
    fn numbers_have_a_range() {
        assert_eq!(number::<u32>("0x10", "handle").unwrap(), 16);
        assert_eq!(number::<i64>("-5", "rate").unwrap(), -5);
        assert!(number::<u32>("-1", "handle").is_err());
        assert!(number::<u32>("4294967296", "handle").is_err());
        assert!(number::<u32>("x", "handle").is_err());
    }

    #[test]
    fn hex_has_all_bytes() {
        assert_eq!(hex(&[10], 32), "0000000a");
        assert_eq!(hex(&[0, 0, 1], 9), "0001");
        assert_eq!(canonical(&[0, 0]), [0]);
        assert_eq!(ones(9), BigUint::from(511u32));
    }
}
