// SPDX-License-Identifier: Apache-2.0
//! A site's file, and a pipeline with its program and entries.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use frontage_simulator::program;
use frontage_simulator::scenario::Switch;
use serde::Deserialize;
use softswitch_pipeline::{Pipeline, Program};

use crate::traffic::Traffic;

/// Seed of the program's random numbers, which these programs do not use.
const SEED: u64 = 0;

/// A file of `bench/sites.py`.
#[derive(Deserialize)]
pub struct Site {
    program: PathBuf,
    switch: Switch,
    pub traffic: Traffic,
}

impl Site {
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path)
            .with_context(|| format!("{}: cannot read the site", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{}: invalid site", path.display()))
    }

    /// Creates a pipeline with the program, all entries, and the controller's packet-outs processed.
    pub fn pipeline(&self) -> Result<Pipeline> {
        let json = fs::read_to_string(&self.program).with_context(|| {
            format!(
                "{}: cannot read the program: run `make setup`",
                self.program.display()
            )
        })?;
        program::pipeline(Program::load(&json)?, &self.switch, SEED)
    }
}
