// SPDX-License-Identifier: Apache-2.0
//! Conversion between P4Runtime byte strings (specification, section "Bytestrings") and the pipeline's values.

use prost::bytes::Bytes;
use softswitch_pipeline::Value;

use super::error::{P4Error, P4Result};

/// Decodes the byte string of a `bit<width>`; leading zeros are accepted.
pub fn decode(bytes: &[u8], width: u32, what: impl Fn() -> String) -> P4Result<Value> {
    if bytes.is_empty() {
        return Err(P4Error::out_of_range(format!(
            "{}: the value is an empty byte string: encode zero as one zero byte",
            what()
        )));
    }
    let value = Value::from_be_bytes(bytes);
    if value.bits() > width {
        return Err(P4Error::out_of_range(format!(
            "{}: {value} needs {} bits, but the field has {width}",
            what(),
            value.bits()
        )));
    }
    Ok(value)
}

/// Returns the canonical byte string.
pub fn encode(value: &Value) -> Bytes {
    Bytes::copy_from_slice(value.as_bytes())
}

/// Decodes a port number.
pub fn decode_port(bytes: &[u8], what: impl Fn() -> String) -> P4Result<u32> {
    let value = decode(bytes, 32, what)?;
    Ok(value
        .as_bytes()
        .iter()
        .fold(0, |n, &b| n << 8 | u32::from(b)))
}

/// Returns the canonical byte string of a port number.
pub fn encode_port(port: u32) -> Bytes {
    encode(&Value::from(port))
}

/// Returns true if `value & mask == value`.
pub fn within_mask(value: &Value, mask: &Value) -> bool {
    let (value, mask) = (value.as_bytes(), mask.as_bytes());
    let excess = value.len().saturating_sub(mask.len());
    let skipped = mask.len().saturating_sub(value.len());
    value[..excess].iter().all(|&b| b == 0)
        && (value[excess..].iter().zip(&mask[skipped..])).all(|(v, m)| v & m == *v)
}

/// Returns true if `a <= b`.
pub fn at_most(a: &Value, b: &Value) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    (a.len(), a) <= (b.len(), b)
}

/// Returns the mask of the `len` most significant of `width` bits.
pub fn prefix_mask(len: u32, width: u32) -> Value {
    let bytes = width.div_ceil(8);
    let low = width - len.min(width);
    let mask: Vec<u8> = (0..bytes)
        .rev()
        .map(|i| {
            let below = low.saturating_sub(i * 8).min(8);
            let above = (width - i * 8).min(8);
            (((1u16 << above) - 1) & !((1u16 << below) - 1)) as u8
        })
        .collect();
    Value::from_be_bytes(&mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v(n: u64) -> Value {
        Value::from(n)
    }

    #[test]
    fn decoding_matches_specification_examples() {
        // The specification's tables of valid and invalid encodings.
        let dec = |bytes: &[u8], width| decode(bytes, width, || "f".into()).ok();
        assert_eq!(dec(b"\x63", 8), Some(v(99)));
        assert_eq!(dec(b"\x00\x63", 16), Some(v(99)));
        assert_eq!(dec(b"\x00\x30\x64", 16), Some(v(12388)));
        assert_eq!(dec(b"\x00\x00\x63", 12), Some(v(99)));
        for (bytes, width) in [
            (&b"\x01\x63"[..], 8),
            (b"", 8),
            (b"\x01\x00\x63", 16),
            (b"\x10\x63", 12),
            (b"\x00\x40\x63", 12),
        ] {
            assert_eq!(dec(bytes, width), None, "{bytes:?}");
        }
        assert_eq!(&encode(&dec(b"\x00\x00", 16).unwrap())[..], b"\x00");
    }

    #[test]
    fn masks_and_comparisons_work() {
        assert!(within_mask(&v(0x0100), &v(0xff00)));
        assert!(!within_mask(&v(0x0101), &v(0xff00)));
        assert!(within_mask(&v(0), &v(1)) && !within_mask(&v(0x100), &v(0xff)));
        assert!(at_most(&v(255), &v(256)) && !at_most(&v(256), &v(255)));
        assert_eq!(prefix_mask(9, 16), v(0xff80));
        assert_eq!(prefix_mask(0, 9), v(0));
        assert_eq!(prefix_mask(9, 9), v(0x1ff));
        assert_eq!(prefix_mask(1, 9), v(0x100));
        assert_eq!(prefix_mask(24, 32), v(0xffff_ff00));
        assert_eq!(prefix_mask(0, 32), v(0));
    }
}
