// SPDX-License-Identifier: Apache-2.0
//! Ports in loopback: what they send, they receive.

use super::Access;
use crate::bfrt::data::{Data, FieldValue};
use crate::bfrt::schema::Table;

/// The modes in which a port sends to itself. The others concern the far end of the link.
const MODES: [&str; 3] = [
    "BF_LPBK_MAC_NEAR",
    "BF_LPBK_PCS_NEAR",
    "BF_LPBK_SERDES_NEAR",
];

/// Returns true if the settings of a port put it in loopback.
fn is_loopback(table: &Table, data: &Data) -> bool {
    match data.get(table, "$LOOPBACK_MODE") {
        Some(FieldValue::Text(mode)) => MODES.contains(&mode.as_str()),
        _ => false,
    }
}

/// Sets whether a port is in loopback, with an undo step.
pub fn set(access: &mut Access<'_, '_>, port: u32, to: bool) {
    let before = access.cx.pipeline.set_port_loopback(port, to);
    access.cx.undo(move |cx| {
        cx.pipeline.set_port_loopback(port, before);
        Ok(())
    });
}

/// Returns the ports whose settings put them in loopback.
pub fn ports(access: &Access<'_, '_>, table: &Table) -> Vec<u32> {
    let entries = access.state.entries(table.id).into_iter().flatten();
    let looped = entries.filter(|(_, data)| is_loopback(table, data));
    looped
        .filter_map(|(key, _)| u32::try_from(*key.first()?).ok())
        .collect()
}

/// Changes the pipeline after a change of the ports' settings. `before` has the ports that were in loopback.
pub fn update(access: &mut Access<'_, '_>, table: &Table, before: &[u32]) {
    let after = ports(access, table);
    for port in before.iter().filter(|port| !after.contains(port)) {
        set(access, *port, false);
    }
    for port in after.iter().filter(|port| !before.contains(port)) {
        set(access, *port, true);
    }
}
