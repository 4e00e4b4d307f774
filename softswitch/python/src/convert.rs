// SPDX-License-Identifier: Apache-2.0
//! Conversion of numbers between Python and the library.

use std::net::{Ipv4Addr, Ipv6Addr};

use num_bigint::BigUint;
use pyo3::prelude::*;
use softswitch_pipeline::Value;

use crate::error;

/// Converts a number from Python: a non-negative `int`, `bytes` (big-endian), or a string: an IPv4, IPv6 or Ethernet
/// address, or a decimal, `0x` or `0b` number.
pub fn value(v: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(text) = v.extract::<String>() {
        return parse(&text).ok_or_else(|| {
            error(format!(
                "invalid value {text:?}: use a number, or an IPv4, IPv6 or Ethernet address"
            ))
        });
    }
    if let Ok(bytes) = v.extract::<Vec<u8>>() {
        return Ok(Value::from_be_bytes(&bytes));
    }
    match v.extract::<BigUint>() {
        Ok(n) => Ok(Value::from_be_bytes(&n.to_bytes_be())),
        Err(_) => Err(error(format!(
            "invalid value {}: use a non-negative int, bytes, or a string such as 10.0.0.1",
            v.repr()?
        ))),
    }
}

fn parse(text: &str) -> Option<Value> {
    let text = text.trim();
    let radix = |digits: &str, radix| BigUint::parse_bytes(digits.as_bytes(), radix);
    let number = match text.get(..2) {
        Some("0x" | "0X") => radix(&text[2..], 16),
        Some("0b" | "0B") => radix(&text[2..], 2),
        _ => radix(text, 10),
    };
    if let Some(n) = number {
        return Some(Value::from_be_bytes(&n.to_bytes_be()));
    }
    if let Ok(a) = text.parse::<Ipv4Addr>() {
        return Some(Value::from_be_bytes(&a.octets()));
    }
    let bytes = text.split([':', '-']).map(|b| match b.len() {
        2 => u8::from_str_radix(b, 16).ok(),
        _ => None,
    });
    match bytes.collect::<Option<Vec<u8>>>() {
        Some(mac) if mac.len() == 6 => Some(Value::from_be_bytes(&mac)),
        _ => {
            let a = text.parse::<Ipv6Addr>().ok()?;
            Some(Value::from_be_bytes(&a.octets()))
        }
    }
}

/// Converts a number for Python.
pub fn number(v: &Value) -> BigUint {
    BigUint::from_bytes_be(v.as_bytes())
}
