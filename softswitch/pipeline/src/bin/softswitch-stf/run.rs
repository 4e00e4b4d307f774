//! Runs an STF script on a pipeline and compares what comes out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use softswitch_pipeline::{
    CloneSession, CounterValue, Descriptor, EgressOutcome, EgressOutput, EntryAction, Info,
    MeterConfig, Nanos, Pipeline, QueueInfo, Recirculated, Replica, Value,
};

use crate::entries::{action_call, entry, table_by_name};
use crate::script::{Line, Pattern, Statement};

/// Recirculations after which a packet is given up.
const MAX_PASSES: usize = 64;
/// Time between packets.
const PACKET_INTERVAL: Nanos = 1_000_000;

/// A pipeline under test.
pub struct Runner {
    pipeline: Pipeline,
    now: Nanos,
    /// Packets sent, by port.
    sent: BTreeMap<u32, Vec<Vec<u8>>>,
    expected: BTreeMap<u32, Vec<(usize, Option<Pattern>)>>,
    ports: BTreeSet<u32>,
    nodes: Vec<(u16, Vec<u32>)>,
    groups: BTreeMap<u32, Vec<Replica>>,
}

type Result<T> = std::result::Result<T, String>;

fn text<E: ToString>(e: E) -> String {
    e.to_string()
}

impl Runner {
    pub fn new(pipeline: Pipeline) -> Self {
        Self {
            pipeline,
            now: 1_000_000_000,
            sent: BTreeMap::new(),
            expected: BTreeMap::new(),
            ports: BTreeSet::new(),
            nodes: Vec::new(),
            groups: BTreeMap::new(),
        }
    }

    /// Runs every statement, and returns what differed.
    pub fn run(mut self, script: &[Line]) -> Result<Vec<String>> {
        for line in script {
            if let Statement::Packet { port, .. } | Statement::Expect { port, .. } = &line.statement
            {
                self.ports.insert(*port);
            }
        }
        for line in script {
            self.statement(line)
                .map_err(|e| format!("line {}: {e}", line.number))?;
        }
        Ok(self.differences())
    }

    fn info(&self) -> Info {
        self.pipeline.program().info().clone()
    }

    fn statement(&mut self, line: &Line) -> Result<()> {
        let info = self.info();
        match &line.statement {
            Statement::Packet { port, data } => self.packet(*port, data),
            Statement::Expect { port, pattern } => {
                self.expected
                    .entry(*port)
                    .or_default()
                    .push((line.number, pattern.clone()));
            }
            Statement::Add {
                table,
                priority,
                keys,
                action,
            } => {
                let id = table_by_name(&info, table)?;
                let entry = entry(&info, id, *priority, keys, action)?;
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
                let (rid, ports) = self.nodes.get(*handle).ok_or("no such node")?;
                let replicas = self.groups.get_mut(group).ok_or("no such group")?;
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
                    .ok_or_else(|| format!("no register {name}"))?;
                self.pipeline
                    .set_register(id, *index, &Value::from(*value))
                    .map_err(text)?;
            }
            Statement::RegisterReset { name } => {
                let id = info
                    .register(name)
                    .ok_or_else(|| format!("no register {name}"))?;
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
                    .ok_or_else(|| format!("no counter {name}"))?;
                let value = CounterValue {
                    packets: *packets,
                    bytes: *bytes,
                };
                self.pipeline.set_counter(id, *index, value).map_err(text)?;
            }
            Statement::CheckCounter {
                name,
                index,
                bytes,
                order,
                value,
            } => {
                let id = info
                    .counter(name)
                    .ok_or_else(|| format!("no counter {name}"))?;
                let c = self.pipeline.counter(id, *index).map_err(text)?;
                check(if *bytes { c.bytes } else { c.packets }, order, *value)?;
            }
            Statement::MeterSet { name, index, rates } => {
                self.set_meter(&info, name, *index, rates)?
            }
            Statement::Nothing => {}
        }
        Ok(())
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
            return Err("a meter has two rates".to_owned());
        };
        let per_second = |r: f64| (r * 1e6) as u64;
        let config = Some(MeterConfig {
            cir: per_second(*cir),
            cburst: *cburst,
            pir: per_second(*pir),
            pburst: *pburst,
        });
        // A direct meter's entries are configured one by one; an array of them is left as it is.
        let Some(id) = info.meter(name) else {
            return Ok(());
        };
        let size = info.meters[id.index()].size;
        for i in index.map_or(0..size, |i| i..i + 1) {
            self.pipeline.set_meter(id, i, config).map_err(text)?;
        }
        Ok(())
    }

    fn packet(&mut self, port: u32, data: &[u8]) {
        self.now += PACKET_INTERVAL;
        let mut queue = Vec::new();
        self.pipeline.ingress(port, data, self.now, &mut queue);
        let mut waiting: VecDeque<Descriptor> = queue.drain(..).collect();
        let mut out = EgressOutput::default();
        let mut passes = 0;
        while let Some(d) = waiting.pop_front() {
            let queued = QueueInfo {
                enq_timestamp: self.now,
                ..QueueInfo::default()
            };
            match self.pipeline.egress(d, queued, self.now, &mut out) {
                EgressOutcome::Transmit { port } => {
                    self.sent.entry(port).or_default().push(out.frame.clone());
                }
                EgressOutcome::Recirculate(r) if passes < MAX_PASSES => {
                    passes += 1;
                    self.recirculate(r, &mut queue);
                    waiting.extend(queue.drain(..));
                }
                EgressOutcome::Dropped
                | EgressOutcome::Recirculate(_)
                | EgressOutcome::AssertionFailed => {}
            }
            waiting.extend(out.clones.drain(..));
        }
    }

    fn recirculate(&mut self, packet: Recirculated, queue: &mut Vec<Descriptor>) {
        self.pipeline.ingress_recirculated(packet, self.now, queue);
    }

    fn differences(&self) -> Vec<String> {
        let mut list = Vec::new();
        let none = Vec::new();
        for port in &self.ports {
            let sent = self.sent.get(port).unwrap_or(&none);
            let expected = self.expected.get(port).map_or(&[][..], Vec::as_slice);
            if expected.iter().any(|(_, p)| p.is_none()) {
                continue;
            }
            if sent.len() != expected.len() {
                let (want, have) = (expected.len(), sent.len());
                list.push(format!("port {port}: expected {want} packets, got {have}"));
            }
            for ((line, pattern), packet) in expected.iter().zip(sent) {
                if let Some(p) = pattern
                    && !p.matches(packet)
                {
                    let hex: String = packet.iter().map(|b| format!("{b:02x}")).collect();
                    list.push(format!(
                        "port {port}, line {line}:\n  expected {p}\n  got      {hex}"
                    ));
                }
            }
            for packet in sent.iter().skip(expected.len()) {
                let hex: String = packet.iter().map(|b| format!("{b:02x}")).collect();
                list.push(format!("port {port}: not expected {hex}"));
            }
        }
        list
    }
}

fn check(have: u64, order: &str, want: u64) -> Result<()> {
    let holds = match order {
        "==" => have == want,
        "!=" => have != want,
        "<" => have < want,
        "<=" => have <= want,
        ">" => have > want,
        ">=" => have >= want,
        _ => return Err(format!("unknown comparison {order}")),
    };
    if holds {
        Ok(())
    } else {
        Err(format!("the counter is {have}, expected {order} {want}"))
    }
}
