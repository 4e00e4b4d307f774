// SPDX-License-Identifier: Apache-2.0
//! `p4_device_config`: BMv2 JSON, or a `p4.tmp.P4DeviceConfig` around it.

use std::borrow::Cow;

use prost::Message;

use crate::p4rt::error::{P4Error, P4Result};

/// The envelope that older controllers send, and that PI unwraps (`p4/tmp/p4config.proto`). Its other fields do not
/// concern BMv2.
#[derive(Clone, PartialEq, Message)]
struct P4DeviceConfig {
    #[prost(bytes = "vec", tag = "3")]
    device_data: Vec<u8>,
}

/// Returns the BMv2 JSON of a `p4_device_config`.
///
/// # Errors
/// If it contains neither text nor a `P4DeviceConfig` with text, or if the text is empty.
pub(super) fn json(config: &[u8]) -> P4Result<Cow<'_, str>> {
    let text = match std::str::from_utf8(config) {
        Ok(text) if text.trim_start().starts_with('{') => Cow::Borrowed(text),
        other => match (P4DeviceConfig::decode(config), other) {
            (Ok(P4DeviceConfig { device_data }), _) => Cow::Owned(text(device_data)?),
            (Err(_), Ok(text)) => Cow::Borrowed(text),
            (Err(_), Err(e)) => return Err(not_text(&e)),
        },
    };
    if text.trim().is_empty() {
        return Err(P4Error::invalid(
            "p4_device_config is empty: it must be BMv2 JSON",
        ));
    }
    Ok(text)
}

fn text(bytes: Vec<u8>) -> P4Result<String> {
    String::from_utf8(bytes).map_err(|e| not_text(&e.utf8_error()))
}

fn not_text(e: &std::str::Utf8Error) -> P4Error {
    P4Error::invalid(format!(
        "p4_device_config is not BMv2 JSON: not UTF-8 text: {e}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(config: &[u8]) -> String {
        json(config).unwrap_err().to_string()
    }

    #[test]
    fn json_is_taken_as_it_is() {
        for text in ["{}", " \n\t{\"a\": 1}", "not JSON"] {
            assert_eq!(json(text.as_bytes()).unwrap(), text);
        }
    }

    #[test]
    fn envelope_is_unwrapped() {
        // reassign = true, extras.kv = {"a": "b"}, device_data = "{}", as p4.tmp.P4DeviceConfig encodes them.
        let full = b"\x08\x01\x12\x08\x0a\x06\x0a\x01a\x12\x01b\x1a\x02{}";
        assert_eq!(json(full).unwrap(), "{}");
        // 13 bytes of data: the length looks like a line break.
        let lines = b"\x08\x01\x1a\x0d{\"a\": \"b\xc3\xa4d\"}";
        assert_eq!(json(lines).unwrap(), "{\"a\": \"b\u{e4}d\"}");
    }

    #[test]
    fn invalid_configs_are_errors() {
        assert!(error(b"").contains("is empty"));
        assert!(error(b"\x08\x01\x1a\x00").contains("is empty"));
        assert!(error(b"\x1a\x01\xff").contains("not UTF-8 text"));
        assert!(error(b"\xff\xfe").contains("not UTF-8 text"));
    }
}
