// SPDX-License-Identifier: Apache-2.0
//! Results of commands, as text and as JSON.

use serde_json::Value;

/// The result of a command.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Lines for a reader, in the wording of `simple_switch_CLI` where it has one.
    pub text: String,
    /// The same data for programs; `None` without data.
    pub data: Option<Value>,
}

impl Answer {
    /// Returns a result with these lines and this data.
    pub fn new(text: impl Into<String>, data: Value) -> Self {
        Self {
            text: text.into(),
            data: Some(data),
        }
    }

    /// Returns lines for a reader, without data.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            data: None,
        }
    }

    /// Returns what is printed: the text, or one line of JSON. It is empty if there is nothing to print.
    pub fn render(&self, json: bool) -> String {
        match (json, &self.data) {
            (true, Some(data)) => data.to_string(),
            (true, None) => String::new(),
            (false, _) => self.text.trim_end_matches('\n').to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_omits_text_without_data() {
        assert_eq!(Answer::text("hello").render(true), "");
        assert_eq!(Answer::text("hello\n").render(false), "hello");
        let answer = Answer::new("a", serde_json::json!({"handle": 1}));
        assert_eq!(answer.render(true), r#"{"handle":1}"#);
    }
}
