// SPDX-License-Identifier: Apache-2.0
//! Commands that do not concern the switch.

use std::process::Command as Process;

use serde_json::json;

use crate::command::{Call, Command};
use crate::error::{Error, Result};
use crate::output::Answer;
use crate::session::Session;

pub fn greet(_: &mut Session, args: &[&str]) -> Result<Answer> {
    match args {
        [] => Ok(Answer::text("hello")),
        _ => Err(Error::Usage),
    }
}

pub fn help(call: &Call<'_>) -> Result<Answer> {
    let commands: Vec<&Command> = match call.args()[..] {
        [] => call.all.to_vec(),
        [name] => {
            let found = call
                .all
                .iter()
                .copied()
                .find(|command| command.name == name);
            let unknown =
                || Error::new(format!("unknown command {name:?}: help lists the commands"));
            vec![found.ok_or_else(unknown)?]
        }
        _ => return Err(Error::Usage),
    };
    let lines = commands.iter().map(|command| {
        let about = match command.is_offered {
            true => command.about.to_owned(),
            false => format!("not offered: {}", command.about),
        };
        format!("{}\n    {about}\n", command.usage())
    });
    let data = commands.iter().map(|command| {
        json!({"command": command.name, "arguments": command.args, "about": command.about, "offered": command.is_offered})
    });
    Ok(Answer::new(lines.collect::<String>(), data.collect()))
}

/// Runs a command of the shell with this program's terminal.
pub fn shell(line: &str) -> Result<Answer> {
    if line.is_empty() {
        return Err(Error::Usage);
    }
    let status = Process::new("sh").args(["-c", line]).status();
    let status = status.map_err(|e| Error::new(format!("cannot start sh: {e}: check PATH")))?;
    match status.success() {
        true => Ok(Answer::default()),
        false => Err(Error::new(format!(
            "{line:?} failed ({status}): see its output"
        ))),
    }
}
