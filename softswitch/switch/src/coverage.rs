// SPDX-License-Identifier: Apache-2.0
//! The file of `--coverage`.

use std::io;
use std::path::{Path, PathBuf};

use softswitch_coverage::{Sources, save};
use softswitch_pipeline::Coverage;

/// A file that collects the coverage of all programs that the switch runs.
#[derive(Debug)]
pub struct CoverageFile {
    path: PathBuf,
    sources: Sources,
}

impl CoverageFile {
    /// Creates the file, or keeps the counts of an existing one. `program` is the path of the initial program.
    ///
    /// # Errors
    /// If the file cannot be written, or is not a file of coverage.
    pub fn create(path: PathBuf, program: Option<&Path>) -> io::Result<Self> {
        let sources = Sources::of(program);
        save(&path, &Coverage::default(), &sources)?;
        Ok(Self { path, sources })
    }

    /// Adds counts.
    pub fn add(&self, coverage: &Coverage) {
        match save(&self.path, coverage, &self.sources) {
            Ok(changed) => {
                for file in changed {
                    tracing::warn!(
                        "--coverage: {file} has changed: its earlier counts are dropped"
                    );
                }
            }
            Err(error) => tracing::error!("--coverage: {error}: the counts are lost"),
        }
    }
}
