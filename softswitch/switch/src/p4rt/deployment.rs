//! A forwarding pipeline config in operation: schema, pipeline and notes.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use softswitch_pipeline::{Digest, Nanos, Options, Pipeline, Program};

use super::entity::{self, Context, View};
use super::error::{P4Error, P4Result};
use super::notes::Notes;
use super::schema::Schema;
use crate::dataplane::SharedPipeline;
use crate::proto::p4::v1::{
    Entity, ForwardingPipelineConfig, P4Data, TableEntry, Update, digest_entry,
    entity::Entity as Kind, update,
};

/// Updates applied in one go while packets wait. Each takes a microsecond or so.
const UPDATES_PER_LOCK: usize = 32;

/// A forwarding pipeline config with its state.
#[derive(Debug)]
pub struct Deployment {
    config: ForwardingPipelineConfig,
    schema: Schema,
    pipeline: SharedPipeline,
    // Locked before the pipeline. Held over a whole batch, which makes batches serializable.
    notes: Mutex<Notes>,
}

impl Deployment {
    /// Loads and links a config, with the state that the program begins with.
    ///
    /// # Errors
    /// Says what is wrong with the program or P4Info.
    pub fn new(config: ForwardingPipelineConfig, options: Options) -> P4Result<Self> {
        let invalid = |message: String| P4Error::invalid(message);
        let p4info = config
            .p4info
            .as_ref()
            .ok_or_else(|| invalid("the config has no P4Info".into()))?;
        let json = std::str::from_utf8(&config.p4_device_config).map_err(|e| {
            invalid(format!(
                "p4_device_config is not BMv2 JSON: it is not UTF-8 text: {e}"
            ))
        })?;
        if json.trim().is_empty() {
            return Err(invalid(
                "p4_device_config is empty; it must be BMv2 JSON".into(),
            ));
        }
        let program = Program::load(json).map_err(|e| invalid(format!("p4_device_config: {e}")))?;
        let schema = Schema::link(p4info, program.info()).map_err(invalid)?;
        let pipeline = Arc::new(Mutex::new(Pipeline::new(program, options)));
        Ok(Self {
            config,
            schema,
            pipeline,
            notes: Mutex::default(),
        })
    }

    /// The config as it was given.
    pub fn config(&self) -> &ForwardingPipelineConfig {
        &self.config
    }

    /// What P4Info declares.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The pipeline, for the data plane.
    pub fn pipeline(&self) -> &SharedPipeline {
        &self.pipeline
    }

    /// Applies a batch; the results are in the order of the updates.
    pub fn write(&self, updates: &[Update], now: Nanos) -> Vec<P4Result<()>> {
        let mut notes = self.notes.lock();
        let mut results = Vec::with_capacity(updates.len());
        for chunk in updates.chunks(UPDATES_PER_LOCK) {
            let ops: Vec<_> = chunk
                .iter()
                .map(|u| entity::decode(&self.schema, u))
                .collect();
            let mut pipeline = self.pipeline.lock();
            let mut context = Context {
                pipeline: &mut pipeline,
                notes: &mut notes,
                now,
            };
            results.extend(ops.into_iter().map(|op| op?(&mut context)));
            // Packets that came meanwhile go first.
            MutexGuard::unlock_fair(pipeline);
        }
        results
    }

    /// Reads what the requests ask for. The entities of valid requests are given even if others fail.
    pub fn read(&self, requests: &[Entity], now: Nanos) -> (Vec<Entity>, Vec<P4Result<()>>) {
        let notes = self.notes.lock();
        let view = self.view(&notes, now);
        let mut entities = Vec::new();
        let results = requests
            .iter()
            .map(|r| entity::read(view, r, &mut entities));
        let results = results.collect();
        (entities, results)
    }

    /// Whether any table has entries that can time out.
    pub fn has_idle_timeouts(&self) -> bool {
        self.schema
            .tables
            .iter()
            .any(|(_, table)| table.idle_timeout)
    }

    /// Entries that have been idle for their time-out.
    pub fn idle_entries(&self, now: Nanos) -> Vec<TableEntry> {
        let notes = self.notes.lock();
        let idle = self.pipeline.lock().poll_idle(now);
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

    /// A digest message for the controller with its id and configuration; none if it is not enabled.
    pub fn encode_digest(&self, digest: &Digest) -> Option<(u32, digest_entry::Config, P4Data)> {
        let (id, info) = self.schema.digest_of(digest.id)?;
        let config = self.notes.lock().digests.get(&id).copied()?;
        Some((id, config, info.shape.encode(&mut digest.fields.iter())))
    }

    /// Configurations of the digests that are enabled.
    pub fn digest_configs(&self) -> BTreeMap<u32, digest_entry::Config> {
        self.notes.lock().digests.clone()
    }

    /// Copies the forwarding state of another deployment into this one, which is new.
    ///
    /// # Errors
    /// If something cannot be kept, because this program lacks it or has it otherwise.
    pub fn adopt(&self, other: &Deployment, now: Nanos) -> P4Result<()> {
        // In the order of dependence.
        let everything = [
            Kind::ActionProfileMember(Default::default()),
            Kind::ActionProfileGroup(Default::default()),
            Kind::TableEntry(TableEntry {
                counter_data: Some(Default::default()),
                meter_config: Some(Default::default()),
                ..Default::default()
            }),
            Kind::TableEntry(TableEntry {
                is_default_action: true,
                ..Default::default()
            }),
            Kind::PacketReplicationEngineEntry(Default::default()),
            Kind::CounterEntry(Default::default()),
            Kind::MeterEntry(Default::default()),
            Kind::RegisterEntry(Default::default()),
            Kind::ValueSetEntry(Default::default()),
            Kind::DigestEntry(Default::default()),
        ];
        let request = everything.map(|kind| Entity { entity: Some(kind) });
        let (entities, results) = other.read(&request, now);
        results.into_iter().collect::<P4Result<()>>()?;
        let updates: Vec<_> = entities.into_iter().filter_map(adopting_update).collect();
        let results = self.write(&updates, now);
        let failed = updates.iter().zip(results).find_map(|(update, result)| {
            // Entries that both programs begin with are there already.
            let error = result
                .err()
                .filter(|e| e.code != tonic::Code::AlreadyExists)?;
            Some((update, error))
        });
        match failed {
            None => Ok(()),
            Some((update, error)) => Err(P4Error::invalid(format!(
                "the forwarding state cannot be kept: {error} (for {:?})",
                update.entity
            ))),
        }
    }
}

/// The update that makes an entity which was read.
fn adopting_update(mut entity: Entity) -> Option<Update> {
    let action = match entity.entity.as_mut()? {
        Kind::TableEntry(entry) if entry.is_const => return None,
        Kind::TableEntry(entry) if entry.is_default_action => {
            entry.action.as_ref()?;
            update::Type::Modify
        }
        Kind::TableEntry(_)
        | Kind::ActionProfileMember(_)
        | Kind::ActionProfileGroup(_)
        | Kind::PacketReplicationEngineEntry(_)
        | Kind::DigestEntry(_) => update::Type::Insert,
        _ => update::Type::Modify,
    };
    Some(Update {
        r#type: action.into(),
        entity: Some(entity),
    })
}
