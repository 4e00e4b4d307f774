//! The kinds of warnings, and what becomes of each.

use std::collections::HashMap;

/// What a warning is about, by the names that p4c has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Warning {
    Deprecated,
    Duplicate,
    Ignored,
    Invalid,
    /// A field of a header that may not be valid.
    InvalidHeader,
    Mismatch,
    Overflow,
    Shadow,
    /// An out parameter that may have no value.
    UninitializedOut,
    /// A value that may not be set.
    UninitializedUse,
    Unknown,
    /// What the target does otherwise than the program says.
    Unsupported,
    Unused,
}

impl Warning {
    /// The name, as `--Wdisable` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Warning::Deprecated => "deprecated",
            Warning::Duplicate => "duplicate",
            Warning::Ignored => "ignore-prop",
            Warning::Invalid => "invalid",
            Warning::InvalidHeader => "invalid-header",
            Warning::Mismatch => "mismatch",
            Warning::Overflow => "overflow",
            Warning::Shadow => "shadow",
            Warning::UninitializedOut => "uninitialized-out-param",
            Warning::UninitializedUse => "uninitialized-use",
            Warning::Unknown => "unknown",
            Warning::Unsupported => "unsupported",
            Warning::Unused => "unused",
        }
    }
}

/// What becomes of a warning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    Ignore,
    #[default]
    Warn,
    /// Take it for an error.
    Error,
}

/// What becomes of the warnings of one compilation.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    all: Action,
    of: HashMap<String, Action>,
}

impl Policy {
    /// For the kind of this name, or for all that no call names; the last call for the same counts. Other kinds than
    /// those of [`Warning`] are p4c's, which this compiler has no warnings of.
    pub fn set(&mut self, kind: Option<&str>, action: Action) {
        match kind {
            Some(kind) => {
                self.of.insert(kind.to_string(), action);
            }
            None => self.all = action,
        }
    }

    pub(super) fn action(&self, kind: Warning) -> Action {
        self.of.get(kind.name()).copied().unwrap_or(self.all)
    }
}
