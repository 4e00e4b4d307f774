// SPDX-License-Identifier: Apache-2.0
//! Commands, and the split of a line.

use crate::error::Result;
use crate::output::Answer;
use crate::schema::Kind;
use crate::session::Session;

/// The kind of name that an argument is, for completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arg {
    /// A command.
    Command,
    /// An object of the program; an action is one of the table or action profile in the argument before.
    Object(Kind),
}

/// A command.
pub struct Command {
    /// Name, as in `simple_switch_CLI`.
    pub name: &'static str,
    /// Form of the arguments.
    pub args: &'static str,
    /// The effect, or why P4Runtime does not offer it.
    pub about: &'static str,
    /// The kinds of objects that the first arguments name.
    pub completes: &'static [Arg],
    /// Whether P4Runtime offers it.
    pub is_offered: bool,
    pub(crate) run: fn(&mut Session, &Call<'_>) -> Result<Answer>,
}

/// A call of a command.
pub(crate) struct Call<'a> {
    /// The line after the command's name.
    pub rest: &'a str,
    /// The command.
    pub command: &'a Command,
    /// All commands.
    pub all: &'a [&'static Command],
}

impl<'a> Call<'a> {
    /// Returns the arguments.
    pub fn args(&self) -> Vec<&'a str> {
        self.rest.split_whitespace().collect()
    }
}

impl Command {
    /// Returns the name and the form of the arguments.
    pub fn usage(&self) -> String {
        format!("{} {}", self.name, self.args).trim_end().to_owned()
    }
}

/// Splits a line into a command and the rest; returns `None` for an empty line or a comment. As in Python's `cmd`, `?`
/// is `help` and `!` is `shell`.
pub fn split(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    for (prefix, name) in [("?", "help"), ("!", "shell")] {
        if let Some(rest) = line.strip_prefix(prefix) {
            return Some((name, rest.trim()));
        }
    }
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    Some((name, rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_lines_as_python_does() {
        assert_eq!(split("  table_dump  t "), Some(("table_dump", "t")));
        assert_eq!(split("? table_add"), Some(("help", "table_add")));
        assert_eq!(split("!ls -l"), Some(("shell", "ls -l")));
        assert_eq!(split("swap_configs"), Some(("swap_configs", "")));
        assert_eq!(split(" # comment"), None);
        assert_eq!(split(""), None);
    }
}
