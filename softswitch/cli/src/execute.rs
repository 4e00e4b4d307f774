// SPDX-License-Identifier: Apache-2.0
//! Executes lines.

use crate::command::{self, Call};
use crate::error::{Error, Result};
use crate::output::Answer;
use crate::registry::{self, COMMANDS};
use crate::session::Session;

/// Executes a line; returns `None` for an empty line or a comment (`#`).
///
/// # Errors
/// `COMMAND: WHAT IS WRONG: WHAT TO DO`.
pub fn execute(session: &mut Session, line: &str) -> Option<Result<Answer>> {
    let (name, rest) = command::split(line)?;
    let Some(command) = registry::find(name) else {
        return Some(Err(Error::new(format!(
            "unknown command {name:?}: help lists the commands"
        ))));
    };
    let call = Call {
        rest,
        command,
        all: &COMMANDS,
    };
    let result = (command.run)(session, &call);
    Some(result.map_err(|error| match error {
        Error::Usage => Error::new(format!(
            "{name}: wrong number of arguments: use {}",
            command.usage()
        )),
        Error::Failed(text) => Error::new(format!("{name}: {text}")),
    }))
}
