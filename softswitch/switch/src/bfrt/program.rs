// SPDX-License-Identifier: Apache-2.0
//! A program with its schema and its state, as clients see them.

use std::path::Path;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value as Json;

use super::chip::Chip;
use super::fixed;
use super::link::{Object, Objects};
use super::schema::{Schema, Table};
use super::state::State;
use crate::p4rt::deployment::{Deployment, LoadedProgram};
use crate::p4rt::error::P4Result;
use crate::proto::bfrt::ForwardingPipelineConfig;
use crate::proto::bfrt::forwarding_pipeline_config::Profile;

/// The name of the profile of the initial program.
const PROFILE: &str = "pipe";

/// The kind of the table of ports.
const PORTS: &str = "PortConfigure";

/// The attribute with the scope of a table's entries.
pub const ENTRY_SCOPE: &str = "EntryScope";

/// A program that clients can bind to.
#[derive(Debug)]
pub struct Program {
    /// The schema, with the tables that do not depend on the program.
    pub schema: Schema,
    objects: Objects,
    config: ForwardingPipelineConfig,
    fixed: Json,
    /// The chip.
    pub chip: Chip,
    /// The pipeline.
    pub deployment: Arc<Deployment>,
    /// The state outside the pipeline, which programs of different pipes share. Locked before the pipeline.
    state: Arc<Mutex<State>>,
    /// The number of the program, if pipes have different ones.
    number: usize,
}

/// A program whose schema was checked.
pub struct Checked {
    schema: Schema,
    objects: Objects,
    config: ForwardingPipelineConfig,
    fixed: Json,
    chip: Chip,
}

/// Returns true for a program for TNA or T2NA.
pub fn is_tna(program: &LoadedProgram) -> bool {
    matches!(program.program.architecture(), "tna" | "t2na")
}

impl Checked {
    /// Checks the schema of a program.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the schema is invalid.
    pub fn new(config: ForwardingPipelineConfig, program: &LoadedProgram) -> P4Result<Self> {
        let mut schema = Schema::parse(&config.bfruntime_info)?;
        let chip = Chip::of(program.program.architecture());
        let fixed = fixed::schema(chip.family());
        schema.add(&fixed)?;
        Ok(Self {
            objects: Objects::link(&schema, program.program.info()),
            schema,
            config,
            fixed,
            chip,
        })
    }

    /// Returns the program with its number and its state.
    pub fn deploy(
        self,
        deployment: Arc<Deployment>,
        number: usize,
        state: Arc<Mutex<State>>,
    ) -> Program {
        Program {
            schema: self.schema,
            objects: self.objects,
            config: self.config,
            fixed: self.fixed,
            chip: self.chip,
            deployment,
            state,
            number,
        }
    }
}

/// Returns the config of an initial program, which has the name of its file.
pub fn initial_config(
    path: &Path,
    json: &str,
    schema: Vec<u8>,
    pipes: u32,
) -> ForwardingPipelineConfig {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    ForwardingPipelineConfig {
        p4_name: name.into_owned(),
        bfruntime_info: schema,
        profiles: vec![Profile {
            profile_name: PROFILE.into(),
            context: vec![],
            binary: json.into(),
            pipe_scope: (0..pipes).collect(),
        }],
    }
}

impl Program {
    /// Takes over the settings of ports from an earlier program.
    pub fn keep_ports(&self, earlier: &Program) {
        let tables = self.schema.tables.values();
        let mut ports = tables.filter(|table| table.kind == PORTS);
        if let Some(table) = ports.next()
            && let Some(entries) = earlier.state().entries(table.id)
        {
            *self.state().entries_mut(table.id) = entries.clone();
        }
    }

    /// Takes over the scopes of entries from an earlier initialization of the same program.
    pub fn keep_scopes(&self, earlier: &Program) {
        let scopes: Vec<_> = {
            let state = earlier.state();
            let tables = self.schema.tables.keys();
            let scopes = tables.map(|&id| (id, state.attribute(id, ENTRY_SCOPE).cloned()));
            scopes.collect()
        };
        let mut state = self.state();
        for (table, scope) in scopes {
            if let Some(scope) = scope {
                state.set_attribute(table, ENTRY_SCOPE, scope);
            }
        }
    }

    /// Locks the state outside the pipeline.
    pub fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock();
        state.select(self.number);
        state
    }

    /// Returns the program's name.
    pub fn name(&self) -> &str {
        &self.config.p4_name
    }

    /// Returns the object that a table stands for.
    pub fn object(&self, table: &Table) -> &Object {
        self.objects
            .tables
            .get(&table.id)
            .unwrap_or(&Object::Missing)
    }

    /// Returns the id of a digest and the ids of its fields, by its number in the program.
    pub fn digest(&self, id: u32) -> Option<&(u32, Vec<u32>)> {
        self.objects.digests.get(&id)
    }

    /// Returns the match-action table with a number in the program.
    pub fn match_table(&self, id: softswitch_pipeline::TableId) -> Option<&Table> {
        let mut objects = self.objects.tables.iter();
        let (table, _) =
            objects.find(|(_, object)| matches!(object, Object::Match(table) if table.id == id))?;
        self.schema.tables.get(table)
    }

    /// Returns the config, as its client sent it.
    pub fn config(&self) -> &ForwardingPipelineConfig {
        &self.config
    }

    /// Returns the schema of the tables that do not depend on the program.
    pub fn fixed_schema(&self) -> Vec<u8> {
        self.fixed.to_string().into_bytes()
    }
}
