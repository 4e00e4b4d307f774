// SPDX-License-Identifier: Apache-2.0
//! Runs an STF script on a pipeline and compares the output.

use std::collections::{BTreeMap, BTreeSet};

use softswitch_pipeline::{
    CloneSession, CounterValue, Coverage, EntryAction, EntryKey, Info, MeterConfig, Nanos, Options,
    Pipeline, Program, Replica, TableId, Trace, Value,
};

use crate::difference::{Arrived, Difference, Expected};
use crate::entries::{action_call, entry, table_by_name};
use crate::script::{Counted, Line, Statement};

/// Time between packets.
const PACKET_INTERVAL: Nanos = 1_000_000;

/// Runs a script on a program and returns the differences.
///
/// # Errors
/// A statement that cannot be executed, with its line.
pub fn run(program: &Program, script: &[Line]) -> Result<Vec<Difference>> {
    let plain = Runner::run(program, script, false)?.differences();
    if plain.is_empty() {
        return Ok(plain);
    }
    // Repeated with tracing, to explain the differences.
    let traced = Runner::run(program, script, true)?.differences();
    Ok(if traced.is_empty() { plain } else { traced })
}

/// Runs a script on a program and returns which parts of the program its packets reach.
///
/// # Errors
/// A statement that cannot be executed, with its line.
pub fn coverage(program: &Program, script: &[Line]) -> Result<Coverage> {
    let mut pipeline = Pipeline::new(program.clone(), Options::default());
    pipeline.set_coverage(true);
    let runner = Runner::run_on(pipeline, script)?;
    Ok(runner.pipeline.coverage().unwrap_or_default())
}

/// A pipeline under test.
struct Runner {
    pipeline: Pipeline,
    now: Nanos,
    /// Number of packets of the script so far; a trace has the same numbers.
    packets: u64,
    arrived: BTreeMap<u32, Vec<Arrived>>,
    expected: BTreeMap<u32, Vec<Expected>>,
    ports: BTreeSet<u32>,
    nodes: Vec<(u16, Vec<u32>)>,
    groups: BTreeMap<u32, Vec<Replica>>,
    /// Entries, by the script's labels.
    labels: BTreeMap<String, (TableId, EntryKey)>,
    traces: Vec<Trace>,
    differences: Vec<Difference>,
}

type Result<T> = std::result::Result<T, String>;

fn text<E: ToString>(e: E) -> String {
    e.to_string()
}

impl Runner {
    fn run(program: &Program, script: &[Line], tracing: bool) -> Result<Self> {
        let mut pipeline = Pipeline::new(program.clone(), Options::default());
        pipeline.set_tracing(tracing);
        Self::run_on(pipeline, script)
    }

    fn run_on(pipeline: Pipeline, script: &[Line]) -> Result<Self> {
        let mut runner = Self {
            pipeline,
            now: 1_000_000_000,
            packets: 0,
            arrived: BTreeMap::new(),
            expected: BTreeMap::new(),
            ports: BTreeSet::new(),
            nodes: Vec::new(),
            groups: BTreeMap::new(),
            labels: BTreeMap::new(),
            traces: Vec::new(),
            differences: Vec::new(),
        };
        for line in script {
            let done = runner.statement(line);
            done.map_err(|e| format!("line {}: {e}", line.number))?;
        }
        runner.traces = runner.pipeline.take_trace();
        Ok(runner)
    }

    fn info(&self) -> Info {
        self.pipeline.program().info().clone()
    }

    fn statement(&mut self, line: &Line) -> Result<()> {
        let info = self.info();
        match &line.statement {
            Statement::Packet { port, data } => {
                self.ports.insert(*port);
                self.packet(line.number, *port, data);
            }
            Statement::Expect { port, pattern } => {
                self.ports.insert(*port);
                self.expected.entry(*port).or_default().push(Expected {
                    line: line.number,
                    after: self.packets,
                    pattern: pattern.clone(),
                });
            }
            Statement::Add {
                table,
                priority,
                keys,
                action,
                label,
            } => {
                let id = table_by_name(&info, table)?;
                let entry = entry(&info, id, *priority, keys, action)?;
                if let Some(label) = label {
                    self.labels.insert(label.clone(), (id, entry.key.clone()));
                }
                self.pipeline
                    .insert_entry(id, entry, self.now)
                    .map_err(text)?;
            }
            Statement::SetDefault { table, action } => {
                let id = table_by_name(&info, table)?;
                let call = action_call(&info, &info.tables[id.index()], action)?;
                self.pipeline
                    .set_default_action(id, Some(EntryAction::Direct(call)))
                    .map_err(text)?;
            }
            Statement::MirroringAdd { session, port } => {
                self.session(
                    *session,
                    vec![Replica {
                        port: *port,
                        instance: 0,
                    }],
                )?;
            }
            Statement::MirroringAddMulticast { session, group } => {
                let replicas = self.groups.get(group).cloned().unwrap_or_default();
                self.session(*session, replicas)?;
            }
            Statement::MirroringDelete { session } => {
                self.pipeline.delete_clone_session(*session).map_err(text)?;
            }
            Statement::GroupCreate { group } => {
                self.groups.insert(*group, Vec::new());
                self.pipeline
                    .insert_multicast_group(*group, Vec::new())
                    .map_err(text)?;
            }
            Statement::NodeCreate { rid, ports } => self.nodes.push((*rid, ports.clone())),
            Statement::NodeAssociate { group, handle } => {
                let (rid, ports) = self.nodes.get(*handle).ok_or("unknown node")?;
                let replicas = self.groups.get_mut(group).ok_or("unknown group")?;
                replicas.extend(ports.iter().map(|&port| Replica {
                    port,
                    instance: *rid,
                }));
                let replicas = replicas.clone();
                self.pipeline
                    .modify_multicast_group(*group, replicas)
                    .map_err(text)?;
            }
            Statement::RegisterWrite { name, index, value } => {
                let id = info
                    .register(name)
                    .ok_or_else(|| format!("unknown register {name}"))?;
                self.pipeline
                    .set_register(id, *index, &Value::from(*value))
                    .map_err(text)?;
            }
            Statement::RegisterReset { name } => {
                let id = info
                    .register(name)
                    .ok_or_else(|| format!("unknown register {name}"))?;
                self.pipeline.reset_register(id).map_err(text)?;
            }
            Statement::CounterWrite {
                name,
                index,
                packets,
                bytes,
            } => {
                let id = info
                    .counter(name)
                    .ok_or_else(|| format!("unknown counter {name}"))?;
                let value = CounterValue {
                    packets: *packets,
                    bytes: *bytes,
                };
                self.pipeline.set_counter(id, *index, value).map_err(text)?;
            }
            Statement::CheckCounter {
                name,
                of,
                bytes,
                order,
                value,
            } => {
                let c = self.counter(&info, name, of)?;
                let have = if *bytes { c.bytes } else { c.packets };
                if !check(have, order, *value)? {
                    let unit = if *bytes { "bytes" } else { "packets" };
                    self.differences.push(Difference {
                        line: line.number,
                        message: format!(
                            "counter {name}({of}) has {have} {unit}, expected {order} {value}"
                        ),
                        trace: String::new(),
                    });
                }
            }
            Statement::MeterSet { name, index, rates } => {
                self.set_meter(&info, name, *index, rates)?
            }
            Statement::Nothing => {}
        }
        Ok(())
    }

    fn counter(&self, info: &Info, name: &str, of: &Counted) -> Result<CounterValue> {
        let none = || format!("unknown counter {name}({of})");
        match of {
            Counted::Index(index) => {
                let id = info.counter(name).ok_or_else(none)?;
                self.pipeline.counter(id, *index).map_err(text)
            }
            Counted::Entry(label) => {
                let (table, key) = self.labels.get(label).ok_or_else(none)?;
                let its = info.tables[table.index()].direct_counter_name.as_deref();
                if !its.is_some_and(|its| its.ends_with(name)) {
                    return Err(none());
                }
                let found = self.pipeline.direct_counter(*table, Some(key));
                found.map_err(text)?.ok_or_else(none)
            }
        }
    }

    fn session(&mut self, session: u32, replicas: Vec<Replica>) -> Result<()> {
        let session_config = CloneSession {
            replicas,
            truncate_to: 0,
            class_of_service: 0,
        };
        self.pipeline
            .insert_clone_session(session, session_config)
            .map_err(text)
    }

    /// Rates are per microsecond, as in BMv2's CLI.
    fn set_meter(
        &mut self,
        info: &Info,
        name: &str,
        index: Option<usize>,
        rates: &[(f64, u64)],
    ) -> Result<()> {
        let [(cir, cburst), (pir, pburst)] = rates else {
            return Err("a meter needs two rates".to_owned());
        };
        let per_second = |r: f64| (r * 1e6) as u64;
        let config = Some(MeterConfig {
            cir: per_second(*cir),
            cburst: *cburst,
            pir: per_second(*pir),
            pburst: *pburst,
            eburst: 0,
        });
        // A direct meter is configured per entry, so a command for the whole array is ignored.
        let Some(id) = info.meter(name) else {
            return Ok(());
        };
        let size = info.meters[id.index()].size;
        for i in index.map_or(0..size, |i| i..i + 1) {
            self.pipeline.set_meter(id, i, config).map_err(text)?;
        }
        Ok(())
    }

    fn packet(&mut self, line: usize, port: u32, data: &[u8]) {
        self.now += PACKET_INTERVAL;
        self.packets += 1;
        for (port, frame) in self.pipeline.process(port, data, self.now) {
            self.arrived.entry(port).or_default().push(Arrived {
                line,
                packet: self.packets,
                frame,
            });
        }
    }

    fn differences(mut self) -> Vec<Difference> {
        let mut list = std::mem::take(&mut self.differences);
        for port in &self.ports {
            let arrived = self.arrived.get(port).map_or(&[][..], Vec::as_slice);
            let expected = self.expected.get(port).map_or(&[][..], Vec::as_slice);
            // `expect PORT` alone accepts any packets.
            if expected.iter().all(|e| e.pattern.is_some()) {
                list.extend(Difference::of_port(*port, expected, arrived, &self.traces));
            }
        }
        list.sort_by_key(|d| d.line);
        list
    }
}

fn check(have: u64, order: &str, want: u64) -> Result<bool> {
    Ok(match order {
        "==" => have == want,
        "!=" => have != want,
        "<" => have < want,
        "<=" => have <= want,
        ">" => have > want,
        ">=" => have >= want,
        _ => return Err(format!("unknown comparison {order}")),
    })
}
