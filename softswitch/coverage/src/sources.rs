// SPDX-License-Identifier: Apache-2.0
//! Source files of a program.

use std::path::{Path, PathBuf};

/// Files of the compiler, which are not part of a program.
const LIBRARY: [&str; 2] = ["core.p4", "v1model.p4"];

/// Finds the source files that a program names. Their names are relative to the folder in which it was compiled.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    folders: Vec<PathBuf>,
}

impl Sources {
    /// Search in the current folder, and in the folder of the compiled program and those above it.
    pub fn of(program: Option<&Path>) -> Self {
        let mut folders = vec![PathBuf::new()];
        let program = program.and_then(|path| std::path::absolute(path).ok());
        if let Some(program) = program {
            folders.extend(program.ancestors().skip(1).map(Path::to_owned));
        }
        Self { folders }
    }

    /// Return the absolute path of a file, or its name if it is not found; `None` for a file of the compiler.
    pub(crate) fn locate(&self, name: &str) -> Option<String> {
        let path = Path::new(name);
        if LIBRARY.iter().any(|library| path.ends_with(library)) {
            return None;
        }
        let mut found = self.folders.iter().map(|folder| folder.join(path));
        let found = found.find(|path| path.is_file());
        let absolute = found.and_then(|path| path.canonicalize().ok());
        Some(absolute.map_or_else(|| name.to_owned(), |path| path.display().to_string()))
    }
}

/// Return the version of a file's contents; `None` if it cannot be read.
pub(crate) fn version(path: &str) -> Option<String> {
    let contents = std::fs::read(path).ok()?;
    Some(format!("{:08x}", crc32fast::hash(&contents)))
}
