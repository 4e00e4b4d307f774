// SPDX-License-Identifier: Apache-2.0
//! Messages in the text format of protocol buffers.

use std::fmt::Write as _;

/// A message: fields in the order in which they are written.
#[derive(Clone, Debug, Default)]
pub struct Message {
    fields: Vec<(&'static str, Field)>,
}

#[derive(Clone, Debug)]
enum Field {
    Raw(String),
    Message(Message),
}

impl Message {
    pub fn raw(&mut self, name: &'static str, value: &str) {
        self.fields.push((name, Field::Raw(value.to_string())));
    }

    pub fn number(&mut self, name: &'static str, value: impl Into<u64>) {
        self.raw(name, &value.into().to_string());
    }

    pub fn string(&mut self, name: &'static str, value: &str) {
        self.bytes(name, value.as_bytes());
    }

    pub fn bytes(&mut self, name: &'static str, value: &[u8]) {
        self.raw(name, &format!("\"{}\"", escape(value)));
    }

    pub fn message(&mut self, name: &'static str, value: Message) {
        self.fields.push((name, Field::Message(value)));
    }

    pub fn text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, 0);
        out
    }

    fn write(&self, out: &mut String, indent: usize) {
        let pad = "  ".repeat(indent);
        for (name, f) in &self.fields {
            match f {
                Field::Raw(v) => {
                    let _ = writeln!(out, "{pad}{name}: {v}");
                }
                Field::Message(m) => {
                    let _ = writeln!(out, "{pad}{name} {{");
                    m.write(out, indent + 1);
                    let _ = writeln!(out, "{pad}}}");
                }
            }
        }
    }
}

fn escape(bytes: &[u8]) -> String {
    let mut out = String::new();
    for b in bytes {
        match b {
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b'"' => out.push_str("\\\""),
            b'\'' => out.push_str("\\'"),
            b'\\' => out.push_str("\\\\"),
            0x20..=0x7e => out.push(*b as char),
            _ => {
                let _ = write!(out, "\\{b:03o}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_escaped_as_protobuf_does() {
        assert_eq!(escape(b"a\"\n\x00\xff"), "a\\\"\\n\\000\\377");
    }
}
