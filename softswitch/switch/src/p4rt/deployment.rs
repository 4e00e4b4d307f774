// SPDX-License-Identifier: Apache-2.0
//! A forwarding pipeline config with its state: schema, pipeline and notes.

mod adopt;
mod batch;
mod device_config;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use softswitch_pipeline::{
    Digest, EntryState, IdleEntry, LoadError, Nanos, Options, ParallelPipeline, PipeSet, Pipeline,
    Program, TableId,
};

use super::entity::{self, Context, View};
use super::error::{P4Error, P4Result};
use super::notes::Notes;
use super::role::{Access, Role};
use super::schema::Schema;
use crate::dataplane::SharedPipeline;
use crate::proto::p4::v1::{Entity, ForwardingPipelineConfig, P4Data, TableEntry, digest_entry};

/// The target of configs.
#[derive(Debug, Clone, Default)]
pub struct Target {
    /// Options of pipelines.
    pub options: Options,
    /// Number of threads that run packets of a pipeline at the same time; 0 if packets run one after the other.
    pub lanes: usize,
    /// The device's ports; `None` if any port number is valid.
    pub ports: Option<BTreeSet<u32>>,
    /// Refuse configs, so that the initial program stays (`--disable-swap`).
    pub keeps_program: bool,
}

/// A program with the JSON from which it was loaded.
#[derive(Debug, Clone)]
pub struct LoadedProgram {
    /// The BMv2 JSON.
    pub json: String,
    /// The program.
    pub program: Program,
}

impl Target {
    /// Checks that the target has the pipes that a program needs.
    ///
    /// # Errors
    /// The number of missing pipes, and what to do.
    pub fn check_pipes(&self, program: &Program) -> Result<(), String> {
        let (needed, pipes) = (program.pipes(), self.options.pipes);
        if needed <= pipes {
            return Ok(());
        }
        Err(format!(
            "the program has pipelines for {needed} pipes, but the switch has {pipes}: start it with --pipes {needed}"
        ))
    }
}

impl LoadedProgram {
    /// Loads BMv2 JSON.
    ///
    /// # Errors
    /// The fault in the JSON.
    pub fn load(json: String) -> Result<Self, LoadError> {
        let program = Program::load(&json)?;
        Ok(Self { json, program })
    }
}

/// Returns true if the entries of a table can time out.
fn has_idle_timeouts(program: &Program) -> bool {
    program.info().tables.iter().any(|t| t.idle_timeout)
}

/// A forwarding pipeline config with its state.
#[derive(Debug)]
pub struct Deployment {
    config: ForwardingPipelineConfig,
    schema: Schema,
    pipeline: SharedPipeline,
    /// The number of the program in the pipeline, if pipes have different programs.
    number: usize,
    // Locked before the pipeline, and for a whole batch, which makes batches serializable.
    notes: Mutex<Notes>,
    has_idle_timeouts: bool,
}

impl Deployment {
    /// Loads and links a config, with the program's initial state.
    ///
    /// # Errors
    /// The fault in the program or in P4Info.
    pub fn new(config: ForwardingPipelineConfig, target: &Target) -> P4Result<Self> {
        let invalid = |message: String| P4Error::invalid(message);
        let p4info = config
            .p4info
            .as_ref()
            .ok_or_else(|| invalid("the config has no P4Info".into()))?;
        let json = device_config::json(&config.p4_device_config)?;
        let program =
            Program::load(&json).map_err(|e| invalid(format!("p4_device_config: {e}")))?;
        target.check_pipes(&program).map_err(invalid)?;
        let schema = Schema::link(p4info, program.info(), target.ports.clone());
        let schema = schema.map_err(invalid)?;
        Ok(Self::with_schema(config, schema, program, target))
    }

    /// Returns the deployment of a program without P4Info, which P4Runtime cannot use.
    pub fn without_p4info(program: LoadedProgram, target: &Target) -> Self {
        let LoadedProgram { json, program } = program;
        let config = ForwardingPipelineConfig {
            p4_device_config: json.into(),
            ..Default::default()
        };
        Self::with_schema(config, Schema::default(), program, target)
    }

    /// Returns the deployments of programs without P4Info that run in different pipes of the same switch.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if a pipe does not have exactly one program, or the programs are not for the same chip.
    pub fn of_pipes(
        programs: Vec<(LoadedProgram, PipeSet)>,
        target: &Target,
    ) -> P4Result<Vec<Self>> {
        let count = programs.len();
        let programs: Vec<_> = programs
            .into_iter()
            .map(|(loaded, pipes)| (loaded.program, pipes))
            .collect();
        let has_idle_timeouts = programs
            .iter()
            .any(|(program, _)| has_idle_timeouts(program));
        let pipeline = Pipeline::of_programs(programs, &target.options)?;
        let pipeline = Arc::new(ParallelPipeline::new(pipeline, target.lanes));
        let deployments = (0..count).map(|number| Self {
            config: ForwardingPipelineConfig::default(),
            schema: Schema::default(),
            pipeline: Arc::clone(&pipeline),
            number,
            notes: Mutex::default(),
            has_idle_timeouts,
        });
        Ok(deployments.collect())
    }

    fn with_schema(
        config: ForwardingPipelineConfig,
        schema: Schema,
        program: Program,
        target: &Target,
    ) -> Self {
        let has_idle_timeouts = has_idle_timeouts(&program);
        let pipeline = Pipeline::new(program, target.options.clone());
        Self {
            config,
            schema,
            pipeline: Arc::new(ParallelPipeline::new(pipeline, target.lanes)),
            number: 0,
            notes: Mutex::default(),
            has_idle_timeouts,
        }
    }

    /// Returns true if both have the same pipeline: they are the same, or have programs in different pipes.
    pub fn shares_pipeline(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.pipeline, &other.pipeline)
    }

    /// Returns the program.
    pub fn program(&self) -> Program {
        let mut pipeline = self.pipeline.lock();
        pipeline.select_program(self.number);
        pipeline.program().clone()
    }

    /// Returns the state of the entry of a table with a handle, if it exists.
    pub fn entry(&self, table: TableId, handle: u32) -> Option<EntryState> {
        let mut pipeline = self.pipeline.lock();
        pipeline.select_program(self.number);
        pipeline.entry_of_handle(table, handle).ok()
    }

    /// Runs a function with the state locked, while packets wait.
    pub fn with_context<R>(&self, now: Nanos, f: impl FnOnce(&mut Context<'_>) -> R) -> R {
        let mut notes = self.notes.lock();
        let mut pipeline = self.pipeline.lock();
        pipeline.select_program(self.number);
        let result = f(&mut Context {
            pipeline: &mut pipeline,
            notes: &mut notes,
            now,
            undo: None,
        });
        // The function may have changed what references name.
        notes.references = None;
        result
    }

    /// Resets the state to the program's initial state. The digests that controllers have enabled stay enabled.
    pub fn reset_state(&self) {
        let mut notes = self.notes.lock();
        self.pipeline.lock().reset_state();
        let digests = std::mem::take(&mut notes.digests);
        *notes = <Notes as Default>::default();
        notes.digests = digests;
    }

    /// Returns the config as the controller sent it.
    pub fn config(&self) -> &ForwardingPipelineConfig {
        &self.config
    }

    /// Returns the schema from P4Info.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Returns the pipeline, for the data plane.
    pub fn pipeline(&self) -> &SharedPipeline {
        &self.pipeline
    }

    /// Reads the requested entities that a role may read. Returns the entities of valid requests even if others fail.
    pub fn read(
        &self,
        requests: &[Entity],
        role: &Role,
        now: Nanos,
    ) -> (Vec<Entity>, Vec<P4Result<()>>) {
        let access = self.access(role);
        let notes = self.notes.lock();
        let view = self.view(&notes, now);
        let mut entities = Vec::new();
        let results = requests.iter().map(|request| {
            access.check(request)?;
            entity::read(view, request, &mut entities)
        });
        let results = results.collect();
        entities.retain(|entity| access.allows(entity));
        (entities, results)
    }

    /// Returns a role's access to the program's objects.
    pub fn access<'a>(&'a self, role: &'a Role) -> Access<'a> {
        role.access(&self.schema.roles)
    }

    /// Returns true if the entries of a table can time out.
    pub fn has_idle_timeouts(&self) -> bool {
        self.has_idle_timeouts
    }

    /// Returns idle entries for controllers, without those of tables whose time-outs P4Info does not announce.
    pub fn encode_idle_entries(&self, idle: &[IdleEntry], now: Nanos) -> Vec<TableEntry> {
        let notes = self.notes.lock();
        let view = self.view(&notes, now);
        let entries = idle
            .iter()
            .filter_map(|i| entity::encode_idle_entry(view, i));
        entries.collect()
    }

    fn view<'a>(&'a self, notes: &'a Notes, now: Nanos) -> View<'a> {
        View {
            schema: &self.schema,
            pipeline: &self.pipeline,
            notes,
            now,
        }
    }

    /// Returns a digest message for the controller, with its id and configuration; `None` if the digest is not enabled.
    pub fn encode_digest(&self, digest: &Digest) -> Option<(u32, digest_entry::Config, P4Data)> {
        let (id, info) = self.schema.digest_of(digest.id)?;
        let config = self.notes.lock().digests.get(&id).copied()?;
        Some((id, config, info.shape.encode(&mut digest.fields.iter())))
    }

    /// Returns the configurations of the enabled digests.
    pub fn digest_configs(&self) -> BTreeMap<u32, digest_entry::Config> {
        self.notes.lock().digests.clone()
    }
}
