// SPDX-License-Identifier: Apache-2.0
//! Mirror sessions.

use softswitch_pipeline::{CloneSession, MAX_CLONE_SESSION, Replica};

use crate::bfrt::data::Data;
use crate::bfrt::schema::Table;
use crate::p4rt::error::{P4Error, P4Result};

/// Returns the multicast groups of a session.
pub fn groups<'a>(table: &'a Table, data: &'a Data) -> impl Iterator<Item = u32> + use<'a> {
    let names = ["$mcast_grp_a", "$mcast_grp_b"].into_iter();
    names.filter_map(|name| {
        let is_valid = data.bool(table, &format!("{name}_valid"))?;
        data.u32(table, name).filter(|_| is_valid)
    })
}

/// Returns a session of the pipeline, if it is enabled. `replicas` has the copies of a multicast group.
///
/// # Errors
/// INVALID_ARGUMENT if the number of the session is too large.
pub fn session(
    table: &Table,
    (id, data): (u32, &Data),
    group: impl Fn(u32) -> P4Result<Vec<Replica>>,
) -> P4Result<Option<CloneSession>> {
    if id > MAX_CLONE_SESSION {
        let message = format!("$mirror.cfg: session {id} is above {MAX_CLONE_SESSION}");
        return Err(P4Error::invalid(message));
    }
    if data.bool(table, "$session_enable") != Some(true) {
        return Ok(None);
    }
    let port = data.u32(table, "$ucast_egress_port");
    let port = port.filter(|_| data.bool(table, "$ucast_egress_port_valid") == Some(true));
    let port = port.map(|port| Replica { port, instance: 0 });
    let mut replicas: Vec<Replica> = port.into_iter().collect();
    for id in groups(table, data) {
        for copy in group(id)? {
            if !replicas.contains(&copy) {
                replicas.push(copy);
            }
        }
    }
    let class = data.u32(table, "$ingress_cos");
    Ok(Some(CloneSession {
        replicas,
        truncate_to: data.u32(table, "$max_pkt_len").unwrap_or(0),
        class_of_service: class.and_then(|cos| cos.try_into().ok()).unwrap_or(0),
    }))
}
