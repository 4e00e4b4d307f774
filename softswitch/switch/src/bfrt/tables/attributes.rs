// SPDX-License-Identifier: Apache-2.0
//! Attributes of tables. The idle time-out, the scope of entries and masks of keys have an effect; the others are stored.

use super::{Access, key_masks, multicast_ports};
use crate::bfrt::schema::Table;
use crate::bfrt::state::State;
use crate::p4rt::error::{P4Error, P4Result};
use crate::proto::bfrt::idle_table::IdleTableMode;
use crate::proto::bfrt::{
    ByteCountAdj, DynHashing, EntryScope, IdleTable, Mode, PortStatusChg, PreDeviceConfig,
    SelectorUpdateCb, StatePullIntvl, TableAttribute, mode, table_attribute::Attribute,
};

/// Returns the name of an attribute in the schema.
fn name(attribute: &Attribute) -> &'static str {
    match attribute {
        Attribute::IdleTable(_) => "IdleTimeout",
        Attribute::EntryScope(_) => "EntryScope",
        Attribute::DynKeyMask(_) => "DynamicKeyMask",
        Attribute::DynHashing(_) => "DynamicHashing",
        Attribute::ByteCountAdj(_) => "MeterByteCountAdjust",
        Attribute::PortStatusNotify(_) => "port_status_notif_cb",
        Attribute::IntvlMs(_) => "poll_intvl_ms",
        Attribute::PreDeviceConfig(_) => "pre_device_config",
        Attribute::SelectorUpdateNotify(_) => "selector_update_cb",
    }
}

/// Checks that a table has an attribute, and returns its name.
fn check(table: &Table, attribute: Option<&Attribute>) -> P4Result<&'static str> {
    let attribute = attribute
        .ok_or_else(|| P4Error::invalid(format!("table {}: missing attribute", table.name)))?;
    let name = name(attribute);
    // As in Tofino's drivers, all tables of a program have a scope, also those whose schema does not list it.
    let has_scope = name == "EntryScope" && !table.name.starts_with('$');
    if has_scope || table.attributes.iter().any(|supported| supported == name) {
        return Ok(name);
    }
    let message = format!("table {}: attribute {name} is not supported", table.name);
    Err(P4Error::unimplemented(message))
}

/// Sets an attribute.
///
/// # Errors
/// UNIMPLEMENTED if the table does not have it.
pub fn write(access: &mut Access<'_, '_>, table: &Table, given: &TableAttribute) -> P4Result<()> {
    let name = check(table, given.attribute.as_ref())?;
    let state = &mut *access.state;
    let Some(mut new) = given.attribute.clone() else {
        return Ok(());
    };
    match (&mut new, state.attribute(table.id, name)) {
        // Scopes that are not given stay as they are.
        (Attribute::EntryScope(new), present) => {
            let present = match present {
                Some(Attribute::EntryScope(present)) => *present,
                _ => default_scope(),
            };
            new.gress_scope = new.gress_scope.or(present.gress_scope);
            new.pipe_scope = new.pipe_scope.or(present.pipe_scope);
            new.prsr_scope = new.prsr_scope.or(present.prsr_scope);
        }
        (Attribute::PreDeviceConfig(new), Some(Attribute::PreDeviceConfig(present))) => {
            new.pre_global_rid = new.pre_global_rid.or(present.pre_global_rid);
            new.pre_port_protection = new.pre_port_protection.or(present.pre_port_protection);
            new.pre_fast_failover = new.pre_fast_failover.or(present.pre_fast_failover);
            new.pre_max_nodes_before_yield = new
                .pre_max_nodes_before_yield
                .or(present.pre_max_nodes_before_yield);
            new.pre_max_node_threshold = new
                .pre_max_node_threshold
                .or(present.pre_max_node_threshold);
        }
        // The times belong to notifications.
        (Attribute::IdleTable(new), _)
            if new.idle_table_mode() == IdleTableMode::IdleTablePollMode =>
        {
            *new = IdleTable {
                enable: new.enable,
                ..Default::default()
            };
        }
        (Attribute::DynKeyMask(new), present) => {
            let present = match present {
                Some(Attribute::DynKeyMask(present)) => present.clone(),
                _ => key_masks::all(table),
            };
            key_masks::set(access.program, access.cx, table, (&present, new))?;
        }
        _ => {}
    }
    if let Attribute::PreDeviceConfig(config) = &new {
        multicast_ports::set_device(access, config)?;
    }
    access.state.set_attribute(table.id, name, new);
    Ok(())
}

fn default_scope() -> EntryScope {
    let all = Some(Mode {
        scope: Some(mode::Scope::Predef(mode::PredefinedMode::All.into())),
        args: 0,
    });
    EntryScope {
        gress_scope: all,
        pipe_scope: all,
        prsr_scope: all,
    }
}

fn default(table: &Table, wanted: &Attribute) -> Attribute {
    match wanted {
        Attribute::IdleTable(_) => Attribute::IdleTable(IdleTable::default()),
        Attribute::EntryScope(_) => Attribute::EntryScope(default_scope()),
        Attribute::DynKeyMask(_) => Attribute::DynKeyMask(key_masks::all(table)),
        Attribute::DynHashing(_) => Attribute::DynHashing(DynHashing::default()),
        Attribute::ByteCountAdj(_) => Attribute::ByteCountAdj(ByteCountAdj::default()),
        Attribute::PortStatusNotify(_) => Attribute::PortStatusNotify(PortStatusChg::default()),
        Attribute::IntvlMs(_) => Attribute::IntvlMs(StatePullIntvl::default()),
        Attribute::PreDeviceConfig(_) => Attribute::PreDeviceConfig(PreDeviceConfig::default()),
        Attribute::SelectorUpdateNotify(_) => {
            Attribute::SelectorUpdateNotify(SelectorUpdateCb::default())
        }
    }
}

/// Reads an attribute.
///
/// # Errors
/// UNIMPLEMENTED if the table does not have it.
pub fn read(state: &State, table: &Table, wanted: &TableAttribute) -> P4Result<TableAttribute> {
    let name = check(table, wanted.attribute.as_ref())?;
    let stored = state.attribute(table.id, name).cloned();
    let attribute = stored.or_else(|| Some(default(table, wanted.attribute.as_ref()?)));
    Ok(TableAttribute {
        table_id: table.id,
        attribute,
    })
}

/// Returns the idle time-outs of a table, if they are enabled.
pub fn idle(state: &State, table: u32) -> Option<IdleTable> {
    match state.attribute(table, "IdleTimeout") {
        Some(Attribute::IdleTable(idle)) if idle.enable => Some(*idle),
        _ => None,
    }
}

/// Returns true if clients poll whether packets hit the entries of a table.
pub fn is_polled(state: &State, table: u32) -> bool {
    let idle = idle(state, table);
    idle.is_some_and(|idle| idle.idle_table_mode() == IdleTableMode::IdleTablePollMode)
}

/// Returns true if the entries of a table are the same in all pipes.
pub fn is_symmetric(state: &State, table: u32) -> bool {
    let scope = match state.attribute(table, "EntryScope") {
        Some(Attribute::EntryScope(scope)) => scope.pipe_scope,
        _ => None,
    };
    let all = mode::Scope::Predef(mode::PredefinedMode::All.into());
    scope.is_none_or(|mode| mode.scope == Some(all))
}

/// Returns true if clients want to know when a port of a table is enabled or disabled.
pub fn notifies_ports(state: &State, table: u32) -> bool {
    let attribute = state.attribute(table, "port_status_notif_cb");
    matches!(
        attribute,
        Some(Attribute::PortStatusNotify(PortStatusChg { enable: true }))
    )
}
