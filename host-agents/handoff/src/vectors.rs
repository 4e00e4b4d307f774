// SPDX-License-Identifier: Apache-2.0
//! Test vectors of the hand-off protocol (`docs/handoff-vectors.json`), for every implementation.
//!
//! Bytes are hexadecimal strings without prefix, numbers are integers, and absent fields are null. The vectors are constant:
//! the file changes only when the protocol does.

mod describe;
mod generate;

use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::{Error, Message as _, ToBalancer, ToServer};

pub use describe::{to_balancer, to_server};
pub use generate::generate;

/// The whole file.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Vectors {
    pub to_server: Vec<Message>,
    pub to_balancer: Vec<Message>,
    pub invalid: Vec<Invalid>,
}

/// A message and its encoding.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Type and fields.
    pub message: Value,
    pub wire: String,
}

/// A malformed message.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Invalid {
    /// `to_server` or `to_balancer`.
    pub direction: String,
    pub wire: String,
    /// Name of the error.
    pub reason: String,
}

/// Format the file with one case a line, so that a diff shows the changed cases.
pub fn to_json(vectors: &Vectors) -> String {
    let sections = [
        section("to_server", &vectors.to_server),
        section("to_balancer", &vectors.to_balancer),
        section("invalid", &vectors.invalid),
    ];
    format!("{{\n{}\n}}\n", sections.join(",\n"))
}

fn section<T: Serialize>(name: &str, cases: &[T]) -> String {
    let line = |case| format!("    {}", serde_json::to_string(case).expect("plain data"));
    let lines: Vec<_> = cases.iter().map(line).collect();
    format!("  \"{name}\": [\n{}\n  ]", lines.join(",\n"))
}

/// Decode `wire` in a direction. Returns the message as JSON; `None` if it is incomplete.
///
/// # Errors
/// If the message is malformed.
pub fn read(direction: &str, wire: &[u8]) -> Result<Option<Value>, Error> {
    let mut wire = BytesMut::from(wire);
    match direction {
        "to_server" => Ok(ToServer::decode(&mut wire)?.as_ref().map(to_server)),
        _ => Ok(ToBalancer::decode(&mut wire)?.as_ref().map(to_balancer)),
    }
}

/// Decode a hexadecimal string.
pub fn bytes(hex: &str) -> Bytes {
    (0..hex.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hexadecimal digits"))
        .collect()
}

/// Encode bytes as a hexadecimal string.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|octet| format!("{octet:02x}")).collect()
}
