//! Names as they are hashed.

use std::fmt;

/// A name in the form in which TLS carries it (RFC 6066, section 3): ASCII letters lowered, without the final dot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// What is no name: nothing at all, or something with control characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoName;

impl fmt::Display for NoName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name has one character at least, and no control characters")
    }
}

impl std::error::Error for NoName {}

impl Name {
    /// The name that people write as `text`.
    pub fn new(text: &str) -> Result<Self, NoName> {
        let text = text.strip_suffix('.').unwrap_or(text);
        if text.is_empty() || text.chars().any(char::is_control) {
            return Err(NoName);
        }
        Ok(Self(text.to_ascii_lowercase()))
    }

    /// In UTF-8.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_tls_carries_them() {
        for (text, name) in [
            ("Films.Example.", "films.example"),
            ("films.example..", "films.example."),
            ("ÄPFEL und Birnen", "Äpfel und birnen"),
        ] {
            assert_eq!(Name::new(text).unwrap().as_str(), name);
        }
        for text in ["", ".", "a\nb", "a\0"] {
            assert_eq!(Name::new(text), Err(NoName));
        }
    }
}
