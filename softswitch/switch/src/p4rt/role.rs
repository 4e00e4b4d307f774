// SPDX-License-Identifier: Apache-2.0
//! Roles of controllers: the objects that a role may read and write (specification, section "Role Config").
//!
//! Two things restrict a named role: `@p4runtime_role` annotations in the program, and the configuration that the role's
//! primary sends. The default role has full access.

mod config;
mod objects;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::{P4Error, P4Result};
use crate::proto::p4::v1::{Entity, PacketMetadata, entity::Entity as Kind};

pub use config::RoleConfig;
pub use objects::{Object, ObjectRoles};

/// The role of a request or stream.
#[derive(Debug, Clone, Default)]
pub struct Role {
    /// The name; empty for the default role.
    pub name: String,
    /// The configuration that the role's primary has sent, if any.
    pub config: Option<Arc<RoleConfig>>,
    /// The ids that are exclusive to other roles, with their roles.
    pub exclusive_to_others: BTreeMap<u32, String>,
}

impl Role {
    /// Returns the role's access to the objects of a program.
    pub fn access<'a>(&'a self, objects: &'a ObjectRoles) -> Access<'a> {
        Access {
            role: self,
            objects,
        }
    }

    /// Checks that the role may set the forwarding pipeline config.
    ///
    /// # Errors
    /// PERMISSION_DENIED if its configuration forbids it.
    pub fn check_pushes_pipeline(&self) -> P4Result<()> {
        if self.config.as_ref().is_none_or(|c| c.pushes_pipeline) {
            return Ok(());
        }
        Err(P4Error::permission_denied(format!(
            "role '{}': its role configuration forbids setting a pipeline config: set can_push_pipeline",
            self.name
        )))
    }
}

/// A role's access to the objects of a program.
#[derive(Debug, Clone, Copy)]
pub struct Access<'a> {
    role: &'a Role,
    objects: &'a ObjectRoles,
}

impl Access<'_> {
    /// Checks that the role may write or read an entity, unless a wildcard selects its object.
    ///
    /// # Errors
    /// PERMISSION_DENIED, with the role and the object.
    pub fn check(&self, entity: &Entity) -> P4Result<()> {
        object_id(entity).map_or(Ok(()), |id| self.check_object(id))
    }

    /// Returns true if the role may read an entity.
    pub fn allows(&self, entity: &Entity) -> bool {
        self.check(entity).is_ok()
    }

    /// Checks that the role may use an object. Ids that are not in P4Info are not its concern.
    ///
    /// # Errors
    /// PERMISSION_DENIED, with the role and the object.
    pub fn check_object(&self, id: u32) -> P4Result<()> {
        let name = &self.role.name;
        if name.is_empty() {
            return Ok(());
        }
        let Some(object) = self.objects.get(id) else {
            return Ok(());
        };
        let refused = |reason: String| {
            Err(P4Error::permission_denied(format!(
                "role '{name}' may not access {}: {reason}",
                object.name
            )))
        };
        if let Some(reason) = self.objects.refusal(object, name) {
            return refused(reason);
        }
        if let Some(other) = self.role.exclusive_to_others.get(&id) {
            return refused(format!(
                "it is exclusive to role '{other}': list it in shared_p4_ids of both roles"
            ));
        }
        match &self.role.config {
            Some(config) if !object.is_header && !config.lists(id) => refused(format!(
                "the role configuration does not contain its id {id:#010x}: add it to shared_p4_ids"
            )),
            _ => Ok(()),
        }
    }

    /// Returns true if the role receives a packet with these metadata. `header` is the id of the packet_in header, if the
    /// program has one.
    pub fn receives_packet(&self, header: Option<u32>, metadata: &[PacketMetadata]) -> bool {
        let is_header_allowed = header.is_none_or(|id| self.check_object(id).is_ok());
        let config = self.role.config.as_ref();
        is_header_allowed && config.is_none_or(|c| c.packet_ins.takes(metadata))
    }
}

/// Returns the id of the object in P4Info to which an entity belongs; `None` for multicast groups, clone sessions and
/// wildcards. Direct counters and meters belong to their table.
fn object_id(entity: &Entity) -> Option<u32> {
    let id = match entity.entity.as_ref()? {
        Kind::TableEntry(e) => e.table_id,
        Kind::ActionProfileMember(e) => e.action_profile_id,
        Kind::ActionProfileGroup(e) => e.action_profile_id,
        Kind::CounterEntry(e) => e.counter_id,
        Kind::DirectCounterEntry(e) => e.table_entry.as_ref()?.table_id,
        Kind::MeterEntry(e) => e.meter_id,
        Kind::DirectMeterEntry(e) => e.table_entry.as_ref()?.table_id,
        Kind::RegisterEntry(e) => e.register_id,
        Kind::ValueSetEntry(e) => e.value_set_id,
        Kind::DigestEntry(e) => e.digest_id,
        Kind::PacketReplicationEngineEntry(_) | Kind::ExternEntry(_) => return None,
    };
    Some(id)
}

#[cfg(test)]
mod tests;
