// SPDX-License-Identifier: Apache-2.0
//! Copying the forwarding state from one config to another: RECONCILE_AND_COMMIT.

use softswitch_pipeline::Nanos;
use tonic::Code;

use super::Deployment;
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::integrity;
use crate::p4rt::role::Role;
use crate::proto::p4::v1::{
    CounterData, DirectCounterEntry, DirectMeterEntry, Entity, TableEntry, Update,
    entity::Entity as Kind, update,
};

impl Deployment {
    /// Copies the forwarding state of another deployment into this one, which is new.
    ///
    /// # Errors
    /// If a part of the state cannot be kept, because this program lacks the object or declares it differently.
    pub fn adopt(&self, other: &Deployment, now: Nanos) -> P4Result<()> {
        let default_entries = TableEntry {
            is_default_action: true,
            ..Default::default()
        };
        // Dependencies first.
        let everything = [
            Kind::ActionProfileMember(Default::default()),
            Kind::ActionProfileGroup(Default::default()),
            Kind::TableEntry(TableEntry {
                counter_data: Some(Default::default()),
                meter_config: Some(Default::default()),
                ..Default::default()
            }),
            Kind::TableEntry(default_entries.clone()),
            // Constant default entries included.
            Kind::DirectCounterEntry(DirectCounterEntry {
                table_entry: Some(default_entries.clone()),
                ..Default::default()
            }),
            Kind::DirectMeterEntry(DirectMeterEntry {
                table_entry: Some(default_entries.clone()),
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
        let (entities, results) = other.read(&request, &Role::default(), now);
        results.into_iter().collect::<P4Result<()>>()?;
        let updates: Vec<_> = entities.into_iter().filter_map(adopting_update).collect();
        let results = self.write_unordered(&updates, now);
        for (mut update, result) in updates.into_iter().zip(results) {
            let result = match result {
                // Both programs define this entry.
                Err(error) if error.code == Code::AlreadyExists => {
                    update.set_type(update::Type::Modify);
                    let updates = std::slice::from_ref(&update);
                    self.write_unordered(updates, now).into_iter().collect()
                }
                // The new program does not have this entry and its counter.
                Err(error) if error.code == Code::NotFound && is_constant(&update) => Ok(()),
                result => result,
            };
            result.map_err(|error| {
                P4Error::invalid(format!(
                    "the forwarding state cannot be kept: {error} (for {:?})",
                    update.entity
                ))
            })?;
        }
        let mut notes = self.notes.lock();
        let pipeline = self.pipeline.lock();
        integrity::check_all(&self.schema, &pipeline, &mut notes)
    }
}

/// Returns the update that creates an entity that was read.
fn adopting_update(mut entity: Entity) -> Option<Update> {
    let action = match entity.entity.as_mut()? {
        Kind::TableEntry(entry) if entry.is_default_action => {
            entry.action.as_ref().filter(|_| !entry.is_const)?;
            update::Type::Modify
        }
        // The program defines the entry; only the state of its direct resources is copied.
        Kind::TableEntry(entry) if entry.is_const => {
            entry.is_const = false;
            entry.action = None;
            update::Type::Modify
        }
        // The initial state of every table.
        Kind::DirectCounterEntry(entry) if entry.data == Some(CounterData::default()) => {
            return None;
        }
        Kind::DirectMeterEntry(entry) if entry.config.is_none() => return None,
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

/// Returns true if an update is for an entry that the program defines.
fn is_constant(update: &Update) -> bool {
    let entity = update.entity.as_ref().and_then(|e| e.entity.as_ref());
    matches!(entity, Some(Kind::TableEntry(entry)) if entry.action.is_none())
}
