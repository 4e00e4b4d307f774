// SPDX-License-Identifier: Apache-2.0
//! Mirror sessions.

use std::collections::BTreeMap;

use softswitch_pipeline::{CloneSession, MAX_CLONE_SESSION, Replica};

use super::view::View;
use crate::bfrt::data::Data;
use crate::bfrt::schema::{Schema, Table};
use crate::bfrt::state::State;
use crate::p4rt::error::{P4Error, P4Result};

/// Returns the replicas of the groups that a session names.
fn copies(table: &Table, data: &Data, groups: &BTreeMap<u32, Vec<Replica>>) -> Vec<Replica> {
    let named = ["$mcast_grp_a", "$mcast_grp_b"]
        .into_iter()
        .filter_map(|name| {
            let is_valid = data.bool(table, &format!("{name}_valid"))?;
            let group = data.u32(table, name).filter(|_| is_valid)?;
            groups.get(&group)
        });
    named.flatten().copied().collect()
}

/// Returns the sessions that are enabled. The replicas of groups are `groups`.
///
/// # Errors
/// INVALID_ARGUMENT if the number of a session is too large.
pub fn sessions(
    schema: &Schema,
    state: &State,
    groups: &BTreeMap<u32, Vec<Replica>>,
) -> P4Result<BTreeMap<u32, CloneSession>> {
    let mut sessions = BTreeMap::new();
    let Some(view) = View::of(schema, state, "MirrorCfg") else {
        return Ok(sessions);
    };
    let table = view.table;
    for (id, data) in view.iter() {
        if id > MAX_CLONE_SESSION {
            let message = format!("$mirror.cfg: session {id} is above {MAX_CLONE_SESSION}");
            return Err(P4Error::invalid(message));
        }
        if data.bool(table, "$session_enable") != Some(true) {
            continue;
        }
        let port = data.u32(table, "$ucast_egress_port");
        let port = port.filter(|_| data.bool(table, "$ucast_egress_port_valid") == Some(true));
        let port = port.map(|port| Replica { port, instance: 0 });
        let mut replicas: Vec<Replica> = port.into_iter().collect();
        for copy in copies(table, data, groups) {
            if !replicas.contains(&copy) {
                replicas.push(copy);
            }
        }
        let session = CloneSession {
            replicas,
            truncate_to: data.u32(table, "$max_pkt_len").unwrap_or(0),
            class_of_service: data
                .u32(table, "$ingress_cos")
                .and_then(|cos| cos.try_into().ok())
                .unwrap_or(0),
        };
        sessions.insert(id, session);
    }
    Ok(sessions)
}
