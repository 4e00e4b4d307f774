//! What an attached agent has counted, for people, for programs and for Prometheus.

use std::fmt::Write as _;

use anyhow::Result;
use serde_json::{Value, json};

use crate::state::State;

/// Everything, as JSON. `connections` are the established ones, one by one, only if `each`.
pub fn to_json(state: &State, each: bool) -> Result<Value> {
    let flows = state.flows();
    let servers = state.servers()?.into_iter().map(|(port, server)| {
        let connections = flows.iter().filter(|(_, f)| f.port == port).count();
        json!({ "port": port, "n_af": server.n_af, "n_ff": server.n_ff, "connections": connections })
    });
    let mut value = json!({
        "servers": servers.collect::<Vec<_>>(),
        "packets": state.packets()?.into_iter().map(|(k, v)| (k.to_owned(), v.into())).collect::<serde_json::Map<_, _>>(),
    });
    if each {
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

/// Everything but the single connections, as a short table.
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

/// Everything but the single connections, in Prometheus' text format.
pub fn to_prometheus(state: &State) -> Result<String> {
    let flows = state.flows();
    let servers = state.servers()?;
    let mut text = String::new();
    let mut gauge = |name: &str, help: &str, value: &dyn Fn(usize) -> u64| -> Result<()> {
        writeln!(
            text,
            "# HELP frontage_cclb7_{name} {help}\n# TYPE frontage_cclb7_{name} gauge"
        )?;
        for (i, (port, _)) in servers.iter().enumerate() {
            writeln!(
                text,
                "frontage_cclb7_{name}{{port=\"{port}\"}} {}",
                value(i)
            )?;
        }
        Ok(())
    };
    gauge(
        "active_flows",
        "N_AF: responses begun and not yet acknowledged whole.",
        &|i| servers[i].1.n_af,
    )?;
    gauge(
        "future_flows",
        "N_FF: those of them with more than the look-ahead left.",
        &|i| servers[i].1.n_ff,
    )?;
    gauge("connections", "Established connections.", &|i| {
        flows.iter().filter(|(_, f)| f.port == servers[i].0).count() as u64
    })?;
    text.push_str("# HELP frontage_cclb7_packets_total Packets by what was done with them.\n");
    text.push_str("# TYPE frontage_cclb7_packets_total counter\n");
    for (reason, packets) in state.packets()? {
        writeln!(
            text,
            "frontage_cclb7_packets_total{{reason=\"{reason}\"}} {packets}"
        )?;
    }
    Ok(text)
}
