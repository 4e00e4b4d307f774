// SPDX-License-Identifier: Apache-2.0
//! The kinds of warnings, and the action for each.

use std::collections::HashMap;

/// The kind of a warning, with p4c's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Warning {
    Deprecated,
    Duplicate,
    Ignored,
    Invalid,
    /// A field of a header that may be invalid.
    InvalidHeader,
    Mismatch,
    Overflow,
    Shadow,
    /// An out parameter that may be uninitialized.
    UninitializedOut,
    /// A value that may be uninitialized.
    UninitializedUse,
    Unknown,
    /// A feature in which the target deviates from the program.
    Unsupported,
    Unused,
}

impl Warning {
    /// Returns the name, for `--Wdisable` and the like.
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

/// The action for a warning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    Ignore,
    #[default]
    Warn,
    /// Treat it as an error.
    Error,
}

/// The actions for the warnings of one compilation.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    all: Action,
    of: HashMap<String, Action>,
}

impl Policy {
    /// Sets the action for the kind with this name, or the default; the last call wins. Unknown names are kinds of p4c that
    /// this compiler does not have.
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
