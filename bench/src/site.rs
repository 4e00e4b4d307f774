// SPDX-License-Identifier: Apache-2.0
//! A site's file, and a pipeline with the site's program and entries.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use frontage_simulator::program;
use frontage_simulator::scenario::Switch;
use serde::Deserialize;
use softswitch_pipeline::{Pipeline, Program};

use crate::traffic::Traffic;

/// Of what a program draws, which is nothing here.
const SEED: u64 = 0;

/// What `bench/sites.py` writes.
#[derive(Deserialize)]
pub struct Site {
    program: PathBuf,
    switch: Switch,
    pub traffic: Traffic,
}

impl Site {
    pub fn read(path: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is no site", path.display()))
    }

    /// The program with every entry installed, and told what the controller tells it by packets.
    pub fn pipeline(&self) -> Result<Pipeline> {
        let json = fs::read_to_string(&self.program).with_context(|| {
            format!(
                "reading {}; `make setup` compiles it",
                self.program.display()
            )
        })?;
        program::pipeline(Program::load(&json)?, &self.switch, SEED)
    }
}
