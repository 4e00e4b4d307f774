// SPDX-License-Identifier: Apache-2.0
//! The formats of P4Info and entries: text, and what it stands for in JSON and binary.

use std::path::Path;
use std::sync::OnceLock;

use prost_reflect::prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde::Serialize as _;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

/// A format of protocol buffers' messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Text,
    Json,
    Binary,
}

impl Format {
    /// The format that a file's name stands for, as in p4c: `.txt`, `.txtpb`, `.json` or `.bin`.
    pub fn of(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()? {
            "txt" | "txtpb" => Some(Format::Text),
            "json" => Some(Format::Json),
            "bin" => Some(Format::Binary),
            _ => None,
        }
    }

    /// A message as JSON, in which maps are lists of their entries.
    pub(crate) fn value(text: &str, message: &str) -> Value {
        serde_json::to_value(parse(text, message)).expect("every message has JSON")
    }

    /// A message in this format. `text` is that of [`crate::Output`], and `message` the name of its type.
    pub fn write(self, text: &str, message: &str) -> Vec<u8> {
        if self == Format::Text {
            return text.into();
        }
        let message = parse(text, message);
        match self {
            Format::Json => json(&message),
            _ => message.encode_to_vec(),
        }
    }
}

/// Parses a message in text format.
fn parse(text: &str, message: &str) -> DynamicMessage {
    let message = pool()
        .get_message_by_name(message)
        .expect("the definitions have it");
    DynamicMessage::parse_text_format(message, text).expect("the text is of this type")
}

fn pool() -> &'static DescriptorPool {
    static POOL: OnceLock<DescriptorPool> = OnceLock::new();
    POOL.get_or_init(|| {
        let definitions = include_bytes!(concat!(env!("OUT_DIR"), "/p4runtime.bin"));
        DescriptorPool::decode(&definitions[..])
            .expect("they were complete when they were compiled")
    })
}

/// With one space for every level, as p4c indents.
fn json(message: &DynamicMessage) -> Vec<u8> {
    let mut value = serde_json::to_value(message).expect("every message has JSON");
    if let Some(Value::Object(maps)) = value.get_mut("typeInfo") {
        maps.values_mut().for_each(map);
    }
    let mut out = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut out, PrettyFormatter::with_indent(b" "));
    value
        .serialize(&mut serializer)
        .expect("memory can be written");
    out.push(b'\n');
    out
}

/// The entries of a map, as the map that they are; the definitions have them as a list.
fn map(value: &mut Value) {
    if let Value::Array(entries) = value {
        let entry = |e: &mut Value| {
            Some((
                e.get("key")?.as_str()?.to_string(),
                e.get_mut("value")?.take(),
            ))
        };
        *value = Value::Object(entries.iter_mut().filter_map(entry).collect());
    }
}
