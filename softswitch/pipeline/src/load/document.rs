// SPDX-License-Identifier: Apache-2.0
//! Reads JSON documents with deeply nested expressions.

use std::io;
use std::panic::resume_unwind;
use std::thread;

use serde::Deserialize;
use serde_json::Value as Json;

use crate::error::LoadError;

/// Maximum nesting of a document: compilers write four levels per operator, and the interpreter recurses over operators.
pub(crate) const MAX_NESTING: usize = 1 << 14;

/// Stack size in bytes for the recursion over a document and its expressions.
const STACK: usize = 256 << 20;

/// Runs a function on a stack that is large enough for every accepted document.
///
/// # Errors
/// If the thread cannot be started.
pub(crate) fn on_deep_stack<T: Send>(f: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let worker = thread::Builder::new().stack_size(STACK);
        let worker = worker.spawn_scoped(scope, f)?;
        Ok(worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// Parses a document. The caller runs on a [deep stack](on_deep_stack).
pub(crate) fn parse(text: &str) -> Result<Json, LoadError> {
    let error = |message: String| LoadError {
        path: ".".to_owned(),
        message,
    };
    if nesting(text) > MAX_NESTING {
        return Err(error(format!(
            "the document is nested too deeply: at most {MAX_NESTING} levels: split long expressions"
        )));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    Json::deserialize(&mut reader)
        .and_then(|json| reader.end().map(|()| json))
        .map_err(|e| error(format!("not JSON: {e}")))
}

/// Returns the nesting depth of arrays and objects.
fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
    }
    deepest
}

/// Skips the rest of a string and its closing quote.
fn skip_string(bytes: &mut impl Iterator<Item = u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_strings_are_not_nesting() {
        assert_eq!(nesting(r#"{"a[\"[": [[1], {"b": "]]"}]}"#), 3);
        assert_eq!(nesting("]]["), 1);
    }

    #[test]
    fn too_deep_documents_are_refused() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        let parse = |depth| on_deep_stack(|| parse(&nested(depth)).map(drop)).unwrap();
        assert_eq!(parse(MAX_NESTING), Ok(()));
        let message = parse(MAX_NESTING + 1).unwrap_err().to_string();
        assert!(message.contains("at most 16384 levels"), "{message}");
    }

    #[test]
    fn text_behind_the_document_is_an_error() {
        assert!(parse("{} x").is_err());
    }
}
