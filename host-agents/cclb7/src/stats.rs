// SPDX-License-Identifier: Apache-2.0
//! The counters of an attached agent, as text, as JSON and as Prometheus metrics.

use std::fmt::Write as _;

use anyhow::Result;
use frontage_daemon::metrics::{encode, registry};
use serde_json::{Value, json};

use crate::state::State;

/// Return all counters as JSON, with the individual connections if `with_connections`.
///
/// # Errors
/// If a map cannot be read.
pub fn to_json(state: &State, with_connections: bool) -> Result<Value> {
    let flows = state.flows();
    let servers = state.servers()?.into_iter().map(|(port, server)| {
        let connections = flows.iter().filter(|(_, f)| f.port == port).count();
        json!({ "port": port, "n_af": server.n_af, "n_ff": server.n_ff, "connections": connections })
    });
    let mut value = json!({
        "servers": servers.collect::<Vec<_>>(),
        "packets": state.packets()?.into_iter().map(|(k, v)| (k.to_owned(), v.into())).collect::<serde_json::Map<_, _>>(),
    });
    if with_connections {
        let connections = flows.iter().map(|(connection, flow)| {
            json!({
                "client": connection.client().to_string(),
                "client_port": connection.remote_port,
                "port": flow.port,
                "cookies": flow.cookies != 0,
                "acked_bytes": flow.acked,
                "remaining_bytes": flow.remaining(),
                "n_af": flow.n_af(),
                "n_ff": flow.n_ff(),
            })
        });
        value["connections"] = connections.collect();
    }
    Ok(value)
}

/// Return all counters except those of individual connections as a short table.
///
/// # Errors
/// If a map cannot be read.
pub fn to_text(state: &State) -> Result<String> {
    let flows = state.flows();
    let mut text = format!(
        "{:>6} {:>6} {:>6} {:>12}\n",
        "port", "N_AF", "N_FF", "connections"
    );
    for (port, server) in state.servers()? {
        let connections = flows.iter().filter(|(_, f)| f.port == port).count();
        writeln!(
            text,
            "{port:>6} {:>6} {:>6} {connections:>12}",
            server.n_af, server.n_ff
        )?;
    }
    text.push_str("\npackets\n");
    for (reason, packets) in state.packets()? {
        writeln!(text, "  {reason:<28} {packets:>12}")?;
    }
    Ok(text)
}

/// Return all counters except those of individual connections as Prometheus metrics.
///
/// # Errors
/// If a map cannot be read.
pub fn to_prometheus(state: &State) -> Result<String> {
    let flows = state.flows();
    let servers = state.servers()?;
    let packets = state.packets()?;
    let registry = registry("frontage_cclb7", move |families| {
        let connections = |port| flows.iter().filter(|(_, flow)| flow.port == port).count() as u64;
        families.gauges(
            "active_flows",
            "N_AF: responses begun and not yet completely sent.",
            servers.iter().map(|(port, s)| ([("port", *port)], s.n_af)),
        )?;
        families.gauges(
            "future_flows",
            "N_FF: active flows with more than the look-ahead left.",
            servers.iter().map(|(port, s)| ([("port", *port)], s.n_ff)),
        )?;
        families.gauges(
            "connections",
            "Established connections.",
            servers
                .iter()
                .map(|(port, _)| ([("port", *port)], connections(*port))),
        )?;
        families.counters(
            "packets",
            "Packets, by what the programs did with them.",
            packets
                .iter()
                .map(|(reason, n)| ([("reason", *reason)], *n)),
        )
    });
    Ok(encode(&registry))
}
