// SPDX-License-Identifier: Apache-2.0
//! Commands from a file or from standard input.

use std::io::{self, BufRead, Write};

use crate::error::{Error, Result};
use crate::execute::execute;
use crate::session::Session;

/// Executes the lines of `input`, prints results to `out` and errors to `err`, each with `place` and the number of its
/// line. Returns whether all commands succeeded. As in `simple_switch_CLI`, commands after a failed one are executed,
/// and `EOF` ends the input.
///
/// # Errors
/// If the input cannot be read, or the output cannot be written.
pub fn run(
    session: &mut Session,
    place: &str,
    input: impl BufRead,
    json: bool,
    out: &mut impl Write,
    err: &mut impl Write,
) -> Result<bool> {
    let mut succeeded = true;
    for (number, line) in (1..).zip(input.lines()) {
        let line = line.map_err(|e| Error::new(format!("{place}:{number}: cannot read: {e}")))?;
        if line.trim() == "EOF" {
            break;
        }
        let written = match execute(session, &line) {
            None => Ok(()),
            Some(Ok(answer)) => print(out, &answer.render(json)),
            Some(Err(error)) => {
                succeeded = false;
                writeln!(err, "{place}:{number}: {error}")
            }
        };
        written.map_err(|e| Error::new(format!("cannot write the output: {e}")))?;
    }
    Ok(succeeded)
}

/// Prints a result, unless it is empty.
///
/// # Errors
/// If `out` cannot be written.
pub fn print(out: &mut impl Write, text: &str) -> io::Result<()> {
    if !text.is_empty() {
        writeln!(out, "{text}")?;
    }
    out.flush()
}
