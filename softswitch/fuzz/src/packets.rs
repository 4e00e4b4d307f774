// SPDX-License-Identifier: Apache-2.0
//! Decodes bytes as a sequence of steps (entries, groups, packets) and runs them through real programs.

use arbitrary::{Arbitrary, Unstructured};
use softswitch_pipeline::{
    ActionCall, ActionId, CloneSession, Descriptor, EgressOutcome, EgressOutput, Engine, Entry,
    EntryAction, EntryKey, Info, MatchField, MatchKind, Options, Pipeline, QueueInfo, Replica,
    TableId, Value,
};

use crate::programs::PROGRAMS;

/// Maximum number of packets that one packet may turn into: clones of clones would not end.
const MAX_PACKETS: usize = 256;

/// Maximum number of steps in one input.
const MAX_STEPS: usize = 64;

/// Time between steps, in nanoseconds.
const STEP: u64 = 1000;

#[derive(Debug, Arbitrary)]
enum Step {
    Entry {
        table: u8,
        action: u8,
        words: [u64; 8],
        priority: u8,
        idle_timeout: u16,
    },
    Delete {
        table: u8,
    },
    Default {
        table: u8,
        action: u8,
        words: [u64; 4],
    },
    Group {
        id: u8,
        replicas: [(u8, u8); 3],
    },
    CloneSession {
        id: u8,
        port: u8,
        truncate_to: u8,
    },
    PortDown {
        port: u8,
    },
    Packet {
        port: u8,
        frame: Vec<u8>,
    },
}

/// The egress port and the frame.
type Sent = (u32, Vec<u8>);

/// Runs the steps through one of the programs. Native code and the interpreter must produce the same packets and digests.
pub fn run(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let Ok(program) = input.choose_index(PROGRAMS.len()) else {
        return;
    };
    let steps = input.arbitrary_iter().into_iter().flatten();
    let steps: Vec<Step> = steps.map_while(Result::ok).take(MAX_STEPS).collect();
    let through = |engine| {
        let options = Options {
            engine,
            max_parser_states: 1000,
            max_iterations: 1000,
            ..Options::default()
        };
        let mut runner = Runner::new(Pipeline::new(PROGRAMS[program].clone(), options));
        steps.iter().for_each(|step| runner.step(step));
        (runner.sent, runner.pipeline.take_digests())
    };
    assert!(
        through(Engine::Native) == through(Engine::Interpreter),
        "native code and interpreter produced different packets"
    );
}

struct Runner {
    pipeline: Pipeline,
    info: Info,
    now: u64,
    sent: Vec<Sent>,
}

impl Runner {
    fn new(pipeline: Pipeline) -> Self {
        let info = pipeline.program().info().clone();
        Self {
            pipeline,
            info,
            now: 0,
            sent: Vec::new(),
        }
    }

    /// Executes one step. A call that the pipeline refuses has no effect; other tests check that it refuses the right ones.
    fn step(&mut self, step: &Step) {
        self.now += STEP;
        match step {
            Step::Entry {
                table,
                action,
                words,
                priority,
                idle_timeout,
            } => {
                let Some((table, action)) = self.choose(*table, *action, words) else {
                    return;
                };
                let key = self.key(table, words, i32::from(*priority));
                let idle_timeout = u64::from(*idle_timeout) * STEP;
                let entry = Entry {
                    key,
                    action: EntryAction::Direct(action),
                    idle_timeout,
                };
                let _ = self.pipeline.insert_entry(table, entry, self.now);
            }
            Step::Delete { table } => {
                let Some(table) = self.table(*table) else {
                    return;
                };
                if self.info.tables[table.index()].const_entries {
                    return;
                }
                let entries = self.pipeline.entries(table).unwrap_or_default();
                if let Some(entry) = entries.first() {
                    self.pipeline
                        .delete_entry(table, &entry.entry.key)
                        .expect("the entry exists");
                }
            }
            Step::Default {
                table,
                action,
                words,
            } => {
                let Some((table, action)) = self.choose(*table, *action, words) else {
                    return;
                };
                let _ = self
                    .pipeline
                    .set_default_action(table, Some(EntryAction::Direct(action)));
            }
            Step::Group { id, replicas } => {
                let replicas = replicas.map(|(port, instance)| Replica {
                    port: port.into(),
                    instance: instance.into(),
                });
                let _ = self
                    .pipeline
                    .insert_multicast_group((*id).into(), replicas.into());
            }
            Step::CloneSession {
                id,
                port,
                truncate_to,
            } => {
                let replicas = vec![Replica {
                    port: (*port).into(),
                    instance: 1,
                }];
                let session = CloneSession {
                    replicas,
                    truncate_to: (*truncate_to).into(),
                    class_of_service: 0,
                };
                let _ = self.pipeline.insert_clone_session((*id).into(), session);
            }
            Step::PortDown { port } => self.pipeline.set_port_up((*port).into(), false),
            Step::Packet { port, frame } => self.packet((*port).into(), frame),
        }
    }

    fn table(&self, table: u8) -> Option<TableId> {
        let name = &self
            .info
            .tables
            .get(usize::from(table) % self.info.tables.len().max(1))?
            .name;
        self.info.table(name)
    }

    fn choose(&self, table: u8, action: u8, words: &[u64]) -> Option<(TableId, ActionCall)> {
        let table = self.table(table)?;
        let actions = &self.info.tables[table.index()].actions;
        let action: ActionId = actions.get(usize::from(action) % actions.len().max(1))?.1;
        let params = &self.info.actions[action.index()].params;
        let args = params
            .iter()
            .zip(words.iter().cycle())
            .map(|((_, width), w)| fit(*w, *width))
            .collect();
        Some((table, ActionCall { action, args }))
    }

    fn key(&self, table: TableId, words: &[u64], priority: i32) -> EntryKey {
        let info = &self.info.tables[table.index()];
        let mut words = words.iter().copied().cycle();
        let mut next = || words.next().unwrap_or(0);
        let field = |(kind, width): (MatchKind, u32)| {
            let (a, b) = (next(), next());
            match kind {
                MatchKind::Exact => MatchField::Exact(fit(a, width)),
                MatchKind::Valid => MatchField::Valid(a & 1 == 1),
                MatchKind::Optional => MatchField::Optional((b & 3 != 0).then(|| fit(a, width))),
                MatchKind::Ternary => MatchField::Ternary {
                    value: fit(a & b, width),
                    mask: fit(b, width),
                },
                MatchKind::Range => {
                    let (a, b) = (clip(a, width), clip(b, width));
                    MatchField::Range {
                        low: a.min(b).into(),
                        high: a.max(b).into(),
                    }
                }
                MatchKind::Lpm => {
                    let prefix_len = (b % u64::from(width + 1)) as u32;
                    let unused = width - prefix_len;
                    let value = if unused >= 64 {
                        0
                    } else {
                        clip(a, width) >> unused << unused
                    };
                    MatchField::Lpm {
                        value: value.into(),
                        prefix_len,
                    }
                }
            }
        };
        let fields = info
            .key
            .iter()
            .map(|k| (k.kind, k.width))
            .map(field)
            .collect();
        EntryKey {
            fields,
            priority: if info.needs_priority {
                priority.max(1)
            } else {
                0
            },
        }
    }

    fn packet(&mut self, port: u32, frame: &[u8]) {
        let (mut queue, mut out) = (Vec::new(), EgressOutput::default());
        self.pipeline.ingress(port, frame, self.now, &mut queue);
        let mut budget = MAX_PACKETS;
        while let Some(descriptor) = queue.pop() {
            if budget == 0 {
                self.pipeline.recycle(descriptor);
                continue;
            }
            budget -= 1;
            self.egress(descriptor, &mut queue, &mut out);
        }
    }

    fn egress(
        &mut self,
        descriptor: Descriptor,
        queue: &mut Vec<Descriptor>,
        out: &mut EgressOutput,
    ) {
        match self
            .pipeline
            .egress(descriptor, QueueInfo::default(), self.now, out)
        {
            EgressOutcome::Transmit { port } => self.sent.push((port, out.frame.to_vec())),
            EgressOutcome::Recirculate(packet) => {
                self.pipeline.ingress_recirculated(packet, self.now, queue);
            }
            EgressOutcome::Dropped
            | EgressOutcome::TooManyIterations
            | EgressOutcome::AssertionFailed => {}
        }
        queue.append(&mut out.clones);
    }
}

fn clip(v: u64, width: u32) -> u64 {
    if width >= 64 {
        v
    } else {
        v & ((1 << width) - 1)
    }
}

fn fit(v: u64, width: u32) -> Value {
    clip(v, width).into()
}
