// SPDX-License-Identifier: Apache-2.0
//! The configuration of the device.

use super::{Access, Query, Row, Update, stored};
use crate::bfrt::data::{Data, FieldValue};
use crate::p4rt::error::P4Result;
use crate::proto::bfrt::update::Type;

/// Number of ports of a pipe.
const PORTS: u32 = 128;

/// The port by which Tofino sends packets to its CPU over PCIe.
const TOFINO_CPU_PORT: u32 = 320;

/// The same port of Tofino 2.
const TOFINO2_CPU_PORT: u32 = 0;

/// The entry is stored under this key.
const KEY: Vec<u64> = Vec::new();

/// Stores the settings. They have no effect on packets.
pub fn write(access: &mut Access<'_, '_>, update: &Update<'_>) -> P4Result<()> {
    let entries = access.state.entries_mut(update.table.id);
    match update.operation {
        Type::Modify => {
            let data = entries.entry(KEY).or_default();
            data.values.extend(update.data.values.clone());
        }
        Type::Delete => entries.clear(),
        _ => return Err(update.unsupported()),
    }
    Ok(())
}

pub fn read(access: &mut Access<'_, '_>, query: &Query<'_>) -> P4Result<Vec<Row>> {
    let table = query.table;
    let (sku, stages, cpu, recirculation) = match table.name.split_once('.') {
        Some(("tf1", _)) => ("BFN-T10-032D", 12, TOFINO_CPU_PORT, 68),
        Some(("tf2", _)) => ("BFN-T20-128Q", 20, TOFINO2_CPU_PORT, 6),
        _ => ("UNKNOWN", 0, 0, 0),
    };
    let stored = access.state.entry(table.id, &KEY).cloned();
    let mut data: Data = stored.unwrap_or_default();
    stored::complete(table, &mut data);
    data.set(table, "sku", sku);
    let pipes = access.cx.pipeline.pipes();
    data.set(table, "num_pipes", pipes);
    data.set(table, "num_stages", stages as u32);
    data.set(table, "num_max_ports", PORTS * pipes);
    data.set(table, "num_front_ports", PORTS * pipes / 4);
    data.set(table, "pcie_cpu_port", cpu);
    let attached = access.ports.control.list();
    let mut external: Vec<u32> = attached.iter().map(|port| port.number).collect();
    external.sort_unstable();
    data.set(table, "external_port_list", FieldValue::Numbers(external));
    let recirculation = match recirculation {
        0 => vec![],
        port => (0..pipes).map(|pipe| PORTS * pipe + port).collect(),
    };
    data.set(
        table,
        "recirc_port_list",
        FieldValue::Numbers(recirculation),
    );
    Ok(vec![Row { key: None, data }])
}
