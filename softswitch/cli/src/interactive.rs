// SPDX-License-Identifier: Apache-2.0
//! Commands from a terminal, with completion and history.

use std::path::PathBuf;
use std::sync::Arc;
use std::{env, fs, io};

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use crate::complete::complete;
use crate::error::{Error, Result};
use crate::schema::Schema;
use crate::script::print;
use crate::session::Session;

const PROMPT: &str = "RuntimeCmd: ";

/// Completion with the current program.
struct ProgramHelper(Arc<Schema>);

impl Completer for ProgramHelper {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(complete(&line[..pos], &self.0))
    }
}

impl Hinter for ProgramHelper {
    type Hint = String;
}

impl Highlighter for ProgramHelper {}
impl Validator for ProgramHelper {}
impl Helper for ProgramHelper {}

/// Executes lines from the terminal until its end (Ctrl-D) or `EOF`. Returns whether all commands succeeded.
///
/// # Errors
/// If the terminal cannot be read.
pub fn run(session: &mut Session, json: bool) -> Result<bool> {
    let failed = |e: ReadlineError| {
        Error::new(format!(
            "cannot read the terminal: {e}: use a file of commands"
        ))
    };
    let config = Config::builder()
        .auto_add_history(true)
        .completion_type(CompletionType::List)
        .build();
    let mut editor: Editor<ProgramHelper, DefaultHistory> =
        Editor::with_config(config).map_err(failed)?;
    let history = history_file();
    if let Some(file) = &history {
        // There is no file before the first session.
        let _ = editor.load_history(file);
    }
    let mut succeeded = true;
    loop {
        editor.set_helper(Some(ProgramHelper(session.schema())));
        match editor.readline(PROMPT) {
            Ok(line) if line.trim() == "EOF" => break,
            Ok(line) => succeeded &= execute(session, &line, json),
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(failed(error)),
        }
    }
    if let Some(file) = &history
        && let Err(error) = editor.save_history(file)
    {
        eprintln!("{}: cannot write the history: {error}", file.display());
    }
    Ok(succeeded)
}

fn execute(session: &mut Session, line: &str, json: bool) -> bool {
    match crate::execute::execute(session, line) {
        None => true,
        Some(Ok(answer)) => print(&mut io::stdout(), &answer.render(json)).is_ok(),
        Some(Err(error)) => {
            eprintln!("{error}");
            false
        }
    }
}

/// Returns the file of the history (XDG Base Directory Specification, `XDG_STATE_HOME`), after creating its folder.
fn history_file() -> Option<PathBuf> {
    let state = match env::var_os("XDG_STATE_HOME") {
        Some(state) => PathBuf::from(state),
        None => PathBuf::from(env::var_os("HOME")?).join(".local/state"),
    };
    let folder = state.join("softswitch");
    fs::create_dir_all(&folder).ok()?;
    Some(folder.join("cli_history"))
}
