// SPDX-License-Identifier: Apache-2.0
//! Settings of ports for multicast: the ports that packets skip, and the port to the CPU.

use std::collections::BTreeSet;

use super::view::View;
use super::{Access, Update};
use crate::bfrt::data::Data;
use crate::bfrt::schema::Table;
use crate::p4rt::error::{P4Error, P4Result};
use crate::proto::bfrt::PreDeviceConfig;

/// Sets the ports that packets with these second exclusion ids skip.
pub fn prune(access: &mut Access<'_, '_>, table: &Table, ids: &BTreeSet<u32>) -> P4Result<()> {
    for id in ids {
        let data = access.state.entry(table.id, &[(*id).into()]);
        let ports = data.and_then(|data| data.numbers(table, "$DEV_PORT"));
        let ports = ports.unwrap_or_default();
        let exclusion = u16::try_from(*id).unwrap_or(0);
        let before = access.cx.pipeline.pruned_ports(exclusion);
        access.cx.pipeline.set_pruned_ports(exclusion, ports);
        access.cx.undo(move |cx| {
            cx.pipeline.set_pruned_ports(exclusion, &before);
            Ok(())
        });
    }
    Ok(())
}

/// Sets the port to the CPU: the one that an update enables, or the default one if no port is enabled.
pub fn set_ports(access: &mut Access<'_, '_>, update: &Update<'_>) -> P4Result<()> {
    let enables = "$COPY_TO_CPU_PORT_ENABLE";
    if update.key.is_some() && update.data.get(update.table, enables).is_none() {
        return Ok(());
    }
    let view = View::of(&access.program.schema, access.state, "PrePort");
    let enabled = view.and_then(|view| {
        let is_enabled = |data: &Data| data.bool(view.table, enables) == Some(true);
        let ports = view.iter().filter(|(_, data)| is_enabled(data));
        let ports: Vec<u32> = ports.map(|(port, _)| port).collect();
        let given = update.key.as_ref()?.u32(update.table, 0).ok();
        let newest = given.filter(|port| ports.contains(port));
        newest.or_else(|| ports.first().copied())
    });
    let default = access.state.cpu_port.flatten();
    let before = access.cx.pipeline.set_cpu_port(enabled.or(default));
    access.state.cpu_port.get_or_insert(before);
    access.cx.undo(move |cx| {
        cx.pipeline.set_cpu_port(before);
        Ok(())
    });
    Ok(())
}

/// Applies the attributes of multicast.
///
/// # Errors
/// INVALID_ARGUMENT if the global replication id does not fit 16 bits.
pub fn set_device(access: &mut Access<'_, '_>, config: &PreDeviceConfig) -> P4Result<()> {
    let Some(rid) = config.pre_global_rid else {
        return Ok(());
    };
    let rid = rid.global_rid;
    let rid = u16::try_from(rid).map_err(|_| {
        P4Error::invalid(format!(
            "$pre.mgid: the replication id {rid} does not fit 16 bits"
        ))
    })?;
    let before = access.cx.pipeline.set_global_rid(rid);
    access.cx.undo(move |cx| {
        cx.pipeline.set_global_rid(before);
        Ok(())
    });
    Ok(())
}
