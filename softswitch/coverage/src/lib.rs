// SPDX-License-Identifier: Apache-2.0
//! Coverage of P4 programs in the format of LCOV, and as one HTML page (`docs/coverage.md`).
//!
//! [`save`] adds the counts of a pipeline to a file, which may contain those of earlier runs and of other switches.

mod page;
mod sources;
mod tracefile;

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use softswitch_pipeline::Coverage;

pub use sources::Sources;
pub use tracefile::{FileCounts, Malformed, Tracefile};

/// Add `coverage` to the file at `path`, and write the page next to it, with the extension `html`.
///
/// Waits while another process writes the file. Returns the names of the source files that have changed since the earlier
/// counts, which are dropped for these files.
///
/// # Errors
/// If a file cannot be read or written, or if the existing file is malformed; it then stays as it is.
pub fn save(path: &Path, coverage: &Coverage, sources: &Sources) -> io::Result<Vec<String>> {
    let in_file = |error| named(path, &error);
    let mut file = open(path).map_err(in_file)?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(in_file)?;
    let mut all = Tracefile::parse(&text)
        .map_err(|error| in_file(io::Error::new(io::ErrorKind::InvalidData, error)))?;
    let changed = all.merge(Tracefile::new(coverage, sources));
    file.set_len(0).map_err(in_file)?;
    file.rewind().map_err(in_file)?;
    file.write_all(all.to_string().as_bytes())
        .map_err(in_file)?;
    let page = path.with_extension("html");
    std::fs::write(&page, page::html(&all)).map_err(|error| named(&page, &error))?;
    Ok(changed)
}

/// Return an error that names its file.
fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Open a file, or create it, and lock it until it is closed.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false);
    let file = options.open(path)?;
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}
