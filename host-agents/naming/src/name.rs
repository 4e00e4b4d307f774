// SPDX-License-Identifier: Apache-2.0
//! Names in the form in which they are hashed.

use std::fmt;

/// A name in the form in which TLS carries it (RFC 6066, section 3): ASCII letters in lower case, without the final
/// dot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// The text is not a name: it is empty or has control characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidName;

impl fmt::Display for InvalidName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name must not be empty or have control characters")
    }
}

impl std::error::Error for InvalidName {}

impl Name {
    /// Normalise `text` to a name.
    ///
    /// # Errors
    /// If `text` is empty or has control characters.
    pub fn new(text: &str) -> Result<Self, InvalidName> {
        let text = text.strip_suffix('.').unwrap_or(text);
        if text.is_empty() || text.chars().any(char::is_control) {
            return Err(InvalidName);
        }
        Ok(Self(text.to_ascii_lowercase()))
    }

    /// Return the name as text.
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
    fn names_are_normalised_as_in_tls() {
        for (text, name) in [
            ("Films.Example.", "films.example"),
            ("films.example..", "films.example."),
            ("ÄPFEL und Birnen", "Äpfel und birnen"),
        ] {
            assert_eq!(Name::new(text).unwrap().as_str(), name);
        }
        for text in ["", ".", "a\nb", "a\0"] {
            assert_eq!(Name::new(text), Err(InvalidName));
        }
    }
}
