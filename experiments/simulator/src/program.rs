// SPDX-License-Identifier: Apache-2.0
//! The pipeline of a switch: its program with the entries of the scenario.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use softswitch_pipeline::{
    ActionCall, CloneSession, Entry, EntryAction, EntryKey, MatchField, Options, Pipeline, Program,
    Replica, Value,
};

use crate::scenario::{self, Scenario, Switch};
use crate::seed;

/// Loads the programs of a scenario, by name.
///
/// # Errors
/// Returns the name of a program that cannot be loaded, and the reason.
pub fn load(scenario: &Scenario) -> Result<BTreeMap<&str, Program>> {
    let programs = scenario.programs.iter();
    programs
        .map(|(name, path)| {
            let program =
                load_one(path).with_context(|| format!("programs.{name}: {}", path.display()))?;
            Ok((name.as_str(), program))
        })
        .collect()
}

fn load_one(path: &Path) -> Result<Program> {
    Ok(Program::load(&std::fs::read_to_string(path)?)?)
}

/// Creates a pipeline with all entries and clone sessions, which has processed the controller's packets.
///
/// # Errors
/// Returns the position of an entry that the program rejects, and the reason.
pub fn pipeline(program: Program, switch: &Switch, seed: u64) -> Result<Pipeline> {
    let options = Options {
        seed: seed::derive(seed, &switch.name),
        pipes: switch.pipes,
        ..Options::default()
    };
    let mut pipeline = Pipeline::new(program, options);
    for (i, entry) in switch.entries.iter().enumerate() {
        install(&mut pipeline, entry).with_context(|| {
            format!("switch '{}', entries[{i}] of {}", switch.name, entry.table)
        })?;
    }
    for session in &switch.clone_sessions {
        let replica = |r: &scenario::Replica| Replica {
            port: r.port,
            instance: r.instance,
        };
        let clone_session = CloneSession {
            replicas: session.replicas.iter().map(replica).collect(),
            truncate_to: session.truncate_to,
            class_of_service: session.class_of_service,
        };
        pipeline
            .insert_clone_session(session.id, clone_session)
            .with_context(|| format!("switch '{}'", switch.name))?;
    }
    // In programs for Tofino, these packets also pass egress and the recirculation port.
    let left = switch
        .packets_out
        .iter()
        .flat_map(|packet| pipeline.process(switch.cpu_port, &packet.0, 0))
        .count();
    if left > 0 {
        bail!(
            "switch '{}': packets_out: the program forwards a packet of the controller: it must consume them all",
            switch.name
        );
    }
    Ok(pipeline)
}

fn install(pipeline: &mut Pipeline, entry: &scenario::Entry) -> Result<()> {
    let info = pipeline.program().info();
    let table = info
        .table(&entry.table)
        .context("unknown table: use a table of the program")?;
    let (_, action) = info.tables[table.index()]
        .actions
        .iter()
        .find(|(name, _)| name.rsplit('.').next() == Some(&entry.action))
        .with_context(|| {
            format!(
                "unknown action '{}': use an action of this table",
                entry.action
            )
        })?;
    let args = entry
        .params
        .iter()
        .map(|p| value(p))
        .collect::<Result<_>>()?;
    let action = EntryAction::Direct(ActionCall {
        action: *action,
        args,
    });
    if entry.fields.is_empty() {
        return Ok(pipeline.set_default_action(table, Some(action))?);
    }
    let fields = entry
        .fields
        .iter()
        .map(|f| field(f))
        .collect::<Result<_>>()?;
    let key = EntryKey {
        fields,
        priority: entry.priority,
    };
    let entry = Entry {
        key,
        action,
        idle_timeout: 0,
    };
    Ok(pipeline.insert_entry(table, entry, 0)?)
}

fn field(text: &str) -> Result<MatchField> {
    if let Some((prefix, len)) = text.split_once('/') {
        let prefix_len = len
            .parse()
            .with_context(|| format!("invalid prefix length '{len}'"))?;
        return Ok(MatchField::Lpm {
            value: value(prefix)?,
            prefix_len,
        });
    }
    if let Some((bits, mask)) = text.split_once('&') {
        let (value, mask) = (value(bits)?, value(mask)?);
        return Ok(MatchField::Ternary { value, mask });
    }
    if let Some((low, high)) = text.split_once('-') {
        let (low, high) = (value(low)?, value(high)?);
        return Ok(MatchField::Range { low, high });
    }
    Ok(MatchField::Exact(value(text)?))
}

fn value(text: &str) -> Result<Value> {
    let number = u128::from_str_radix(text, 16)
        .with_context(|| format!("invalid hexadecimal number '{text}'"))?;
    Ok(number.into())
}
