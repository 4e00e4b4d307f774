//! Runs an STF script on a pipeline and compares what comes out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use softswitch_pipeline::{
    ActionCall, CloneSession, CounterValue, Descriptor, EgressOutcome, EgressOutput, Entry,
    EntryAction, EntryKey, Info, MatchField, MatchKind, MeterConfig, MeterId, Nanos, Pipeline,
    QueueInfo, Recirculated, Replica, TableId, TableInfo, Value,
};

use crate::script::{Call, Line, Pattern, Statement, number};

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
            if let Statement::Packet { port, .. } | Statement::Expect { port, .. } = &line.statement {
                self.ports.insert(*port);
            }
        }
        for line in script {
            self.statement(line).map_err(|e| format!("line {}: {e}", line.number))?;
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
                self.expected.entry(*port).or_default().push((line.number, pattern.clone()));
            }
            Statement::Add { table, priority, keys, action } => {
                let id = table_by_name(&info, table)?;
                let entry = entry(&info, id, *priority, keys, action)?;
                self.pipeline.insert_entry(id, entry, self.now).map_err(text)?;
            }
            Statement::SetDefault { table, action } => {
                let id = table_by_name(&info, table)?;
                let call = action_call(&info, &info.tables[id.index()], action)?;
                self.pipeline.set_default_action(id, Some(EntryAction::Direct(call))).map_err(text)?;
            }
            Statement::MirroringAdd { session, port } => {
                self.session(*session, vec![Replica { port: *port, instance: 0 }])?;
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
                self.pipeline.insert_multicast_group(*group, Vec::new()).map_err(text)?;
            }
            Statement::NodeCreate { rid, ports } => self.nodes.push((*rid, ports.clone())),
            Statement::NodeAssociate { group, handle } => {
                let (rid, ports) = self.nodes.get(*handle).ok_or("no such node")?;
                let replicas = self.groups.get_mut(group).ok_or("no such group")?;
                replicas.extend(ports.iter().map(|&port| Replica { port, instance: *rid }));
                let replicas = replicas.clone();
                self.pipeline.modify_multicast_group(*group, replicas).map_err(text)?;
            }
            Statement::RegisterWrite { name, index, value } => {
                let id = info.register(name).ok_or_else(|| format!("no register {name}"))?;
                self.pipeline.set_register(id, *index, &Value::from(*value)).map_err(text)?;
            }
            Statement::RegisterReset { name } => {
                let id = info.register(name).ok_or_else(|| format!("no register {name}"))?;
                self.pipeline.reset_register(id).map_err(text)?;
            }
            Statement::CounterWrite { name, index, packets, bytes } => {
                let id = info.counter(name).ok_or_else(|| format!("no counter {name}"))?;
                let value = CounterValue { packets: *packets, bytes: *bytes };
                self.pipeline.set_counter(id, *index, value).map_err(text)?;
            }
            Statement::CheckCounter { name, index, bytes, order, value } => {
                let id = info.counter(name).ok_or_else(|| format!("no counter {name}"))?;
                let c = self.pipeline.counter(id, *index).map_err(text)?;
                check(if *bytes { c.bytes } else { c.packets }, order, *value)?;
            }
            Statement::MeterSet { name, index, rates } => self.set_meter(&info, name, *index, rates)?,
            Statement::Nothing => {}
        }
        Ok(())
    }

    fn session(&mut self, session: u32, replicas: Vec<Replica>) -> Result<()> {
        let session_config = CloneSession { replicas, truncate_to: 0, class_of_service: 0 };
        self.pipeline.insert_clone_session(session, session_config).map_err(text)
    }

    /// Rates are per microsecond, as in BMv2's CLI.
    fn set_meter(&mut self, info: &Info, name: &str, index: Option<usize>, rates: &[(f64, u64)]) -> Result<()> {
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
        let Some(id) = info.meter(name) else { return Ok(()) };
        let MeterId(_) = id;
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
            let queued = QueueInfo { enq_timestamp: self.now, ..QueueInfo::default() };
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
                    list.push(format!("port {port}, line {line}:\n  expected {p}\n  got      {hex}"));
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
    if holds { Ok(()) } else { Err(format!("the counter is {have}, expected {order} {want}")) }
}

/// The table of this name, or the only one whose name ends so.
fn table_by_name(info: &Info, name: &str) -> Result<TableId> {
    if let Some(id) = info.table(name) {
        return Ok(id);
    }
    let mut ends = (0..).zip(&info.tables).filter(|(_, t)| t.name.ends_with(name));
    match (ends.next(), ends.next()) {
        (Some((i, _)), None) => Ok(TableId(i)),
        (None, _) => Err(format!("no table {name}")),
        _ => Err(format!("several tables end in {name}")),
    }
}

fn action_call(info: &Info, table: &TableInfo, call: &Call) -> Result<ActionCall> {
    let exact = table.actions.iter().find(|(n, _)| *n == call.name);
    let suffix = || table.actions.iter().find(|(n, _)| n.ends_with(&call.name));
    let (_, action) = exact.or_else(suffix).ok_or_else(|| format!("no action {}", call.name))?;
    let arg = |(name, width): &(String, u32)| {
        let given = call.args.iter().find(|(n, _)| n == name);
        let (_, value) = given.ok_or_else(|| format!("action {} lacks {name}", call.name))?;
        Ok(truncated(&value_of(value)?, *width))
    };
    let params = &info.actions[action.index()].params;
    Ok(ActionCall { action: *action, args: params.iter().map(arg).collect::<Result<_>>()? })
}

/// The low bits: BMv2 cuts what its CLI gives it.
fn truncated(v: &Value, width: u32) -> Value {
    if v.bits() <= width {
        return v.clone();
    }
    let ones = Value::ones(width);
    let len = v.as_bytes().len();
    let mask = ones.to_padded(len).unwrap_or_default();
    let bytes: Vec<u8> = v.as_bytes().iter().zip(mask).map(|(a, b)| a & b).collect();
    Value::from_be_bytes(&bytes)
}

fn entry(
    info: &Info,
    id: TableId,
    priority: Option<i32>,
    keys: &[(String, String)],
    action: &Call,
) -> Result<Entry> {
    let table = &info.tables[id.index()];
    let mut fields: Vec<Option<MatchField>> = vec![None; table.key.len()];
    for (name, value) in keys {
        let i = key_by_name(table, name)?;
        let k = &table.key[i];
        fields[i] = Some(match_field(k.kind, k.width, value)?);
    }
    let anything = |k: MatchKind, width: u32| match k {
        MatchKind::Exact => MatchField::Exact(Value::from(0u64)),
        MatchKind::Valid => MatchField::Valid(false),
        MatchKind::Lpm => MatchField::Lpm { value: Value::from(0u64), prefix_len: 0 },
        MatchKind::Ternary => {
            MatchField::Ternary { value: Value::from(0u64), mask: Value::from(0u64) }
        }
        MatchKind::Optional => MatchField::Optional(None),
        MatchKind::Range => MatchField::Range { low: Value::from(0u64), high: Value::ones(width) },
    };
    let fields = fields.into_iter().zip(&table.key);
    let fields = fields.map(|(f, k)| f.unwrap_or_else(|| anything(k.kind, k.width))).collect();
    let priority = if table.needs_priority { priority.unwrap_or(0) + 1 } else { 0 };
    let action = EntryAction::Direct(action_call(info, table, action)?);
    Ok(Entry { key: EntryKey { fields, priority }, action, idle_timeout: 0 })
}

fn key_by_name(table: &TableInfo, name: &str) -> Result<usize> {
    // `a$0.b` stands for `a[0].b`.
    let name = match name.split_once('$') {
        Some((head, tail)) if tail.starts_with(|c: char| c.is_ascii_digit()) => {
            let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
            format!("{head}[{}]{}", &tail[..end], &tail[end..])
        }
        _ => name.to_owned(),
    };
    let find = |test: &dyn Fn(&str) -> bool| table.key.iter().position(|k| test(&k.name));
    find(&|k| k == name)
        .or_else(|| find(&|k| k == format!("{name}.$valid$") || k == format!("{name}$")))
        .or_else(|| find(&|k| k.ends_with(&format!(".{name}"))))
        .or_else(|| find(&|k| name.ends_with("valid") && k.ends_with("$valid$")))
        .ok_or_else(|| format!("table {} has no key {name}", table.name))
}

/// Radix of a number's prefix: bits a digit and the digits.
fn digits(text: &str) -> Option<(u32, &str)> {
    let rest = text.get(2..)?;
    match &text[..2] {
        "0x" | "0X" => Some((4, rest)),
        "0b" | "0B" => Some((1, rest)),
        "0o" | "0O" => Some((3, rest)),
        _ => None,
    }
}

fn value_of(text: &str) -> Result<Value> {
    match digits(text) {
        Some((4, hex)) => {
            let padded = format!("{}{hex}", if hex.len() % 2 == 1 { "0" } else { "" });
            let byte = |i| u8::from_str_radix(&padded[i..i + 2], 16).map_err(|e| e.to_string());
            let bytes: Result<Vec<u8>> = (0..padded.len()).step_by(2).map(byte).collect();
            Ok(Value::from_be_bytes(&bytes?))
        }
        _ => number(text).map(Value::from),
    }
}

fn match_field(kind: MatchKind, width: u32, text: &str) -> Result<MatchField> {
    let cut = |t: &str| value_of(t).map(|v| truncated(&v, width));
    Ok(match kind {
        MatchKind::Exact => MatchField::Exact(cut(text)?),
        MatchKind::Valid => MatchField::Valid(cut(text)?.to_u64() == Some(1)),
        MatchKind::Ternary | MatchKind::Optional => {
            let (value, mask) = match text.split_once("&&&") {
                Some((v, m)) => (value_of(v)?, value_of(m)?),
                None => wildcards(text, width)?,
            };
            let mask = truncated(&mask, width);
            let value = and(&truncated(&value, width), &mask);
            MatchField::Ternary { value, mask }
        }
        MatchKind::Lpm => {
            let (value, prefix_len) = match text.split_once('/') {
                Some((v, len)) => (value_of(v)?, number(len)? as u32),
                None => {
                    let stars = text.matches('*').count() as u32;
                    let bits = digits(text).map_or(0, |d| d.0);
                    (value_of(&text.replace('*', "0"))?, width - (stars * bits).min(width))
                }
            };
            let mut mask = Value::ones(width).to_padded(width.div_ceil(8) as usize).unwrap_or_default();
            for bit in prefix_len.min(width)..width {
                let from_end = width - 1 - bit;
                let at = mask.len() - 1 - from_end as usize / 8;
                mask[at] &= !(1 << (from_end % 8));
            }
            let value = and(&truncated(&value, width), &Value::from_be_bytes(&mask));
            MatchField::Lpm { value, prefix_len: prefix_len.min(width) }
        }
        MatchKind::Range => {
            let (low, high) = text.split_once("->").or_else(|| text.split_once("..")).unwrap_or((text, text));
            MatchField::Range { low: cut(low)?, high: cut(high)? }
        }
    })
}

/// A number whose `*` digits do not matter.
fn wildcards(text: &str, width: u32) -> Result<(Value, Value)> {
    let Some((bits, digits)) = digits(text) else { return Ok((value_of(text)?, Value::ones(width))) };
    let prefix = &text[..2];
    let full = match bits {
        4 => "f",
        3 => "7",
        _ => "1",
    };
    let mask: String = digits.chars().map(|c| if c == '*' { "0" } else { full }).collect();
    Ok((value_of(&text.replace('*', "0"))?, value_of(&format!("{prefix}{mask}"))?))
}

fn and(a: &Value, b: &Value) -> Value {
    let len = a.as_bytes().len().max(b.as_bytes().len());
    let pad = |v: &Value| v.to_padded(len).unwrap_or_default();
    let bytes: Vec<u8> = pad(a).iter().zip(pad(b)).map(|(x, y)| x & y).collect();
    Value::from_be_bytes(&bytes)
}
