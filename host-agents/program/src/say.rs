//! What a program says of itself while it runs.

use std::fmt::Display;
use std::path::Path;

/// A line on the standard error: this program's name, and what it has to say.
pub fn say(what: impl Display) {
    let program = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&program).file_name().unwrap_or_default();
    eprintln!("{}: {what}", name.display());
}
