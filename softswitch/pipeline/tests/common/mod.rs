// SPDX-License-Identifier: Apache-2.0
//! A pipeline that runs `programs/everything.p4`, and packets for it.
#![allow(dead_code, reason = "not every test uses every helper")]

pub mod damage;
pub mod far_keys;
pub mod frames;
pub mod furnish;
pub mod packets;
pub mod source;
pub mod tna;
pub mod tna_headers;

use std::collections::VecDeque;
use std::path::Path;

use softswitch_p4c::diag::{Diagnostics, SourceMap};
use softswitch_pipeline::{
    ActionCall, Descriptor, EgressOutcome, EgressOutput, Engine, EntryAction, EntryKey, Info,
    MatchField, Nanos, Options, Pipeline, Program, QueueInfo, Value,
};

pub struct Harness {
    pub pipeline: Pipeline,
    pub info: Info,
}

/// The fields of a command packet that tests set.
#[derive(Debug, Clone, Copy, Default)]
pub struct Command {
    pub op: u8,
    pub arg: u8,
    pub x: u8,
    pub y: u16,
    pub s: i8,
    pub z: u32,
    pub wide: u128,
    pub p: u8,
    pub q: u64,
}

pub const SRC: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub const DST: [u8; 6] = [2, 0, 0, 0, 0, 2];
/// Length of a command header behind the Ethernet header.
pub const COMMAND_BYTES: usize = 33;

impl Command {
    pub fn op(op: u8) -> Self {
        Self {
            op,
            ..Self::default()
        }
    }

    pub fn frame(&self) -> Vec<u8> {
        let mut f = ethernet(0x9003);
        f.extend([self.op, self.arg]);
        f.extend((u16::from(self.x) << 12 | self.y).to_be_bytes());
        f.push(self.s as u8);
        f.extend(self.z.to_be_bytes());
        f.extend(self.wide.to_be_bytes());
        f.extend((u64::from(self.p) << 61 | self.q).to_be_bytes());
        f.extend(b"payload");
        f
    }

    pub fn parse(frame: &[u8]) -> Self {
        let f = &frame[14..];
        let word = |at: usize, n: usize| {
            f[at..at + n]
                .iter()
                .fold(0u128, |v, &b| v << 8 | u128::from(b))
        };
        Self {
            op: f[0],
            arg: f[1],
            x: (word(2, 2) >> 12) as u8,
            y: word(2, 2) as u16 & 0xfff,
            s: f[4] as i8,
            z: word(5, 4) as u32,
            wide: word(9, 16),
            p: (word(25, 8) >> 61) as u8,
            q: word(25, 8) as u64 & ((1 << 61) - 1),
        }
    }
}

pub fn ethernet(kind: u16) -> Vec<u8> {
    [&DST[..], &SRC, &kind.to_be_bytes()].concat()
}

/// Compiles a program of this repository; `None` if it has errors.
pub fn compile(path: &Path, include: &Path) -> Option<Program> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let (sources, diags) = (SourceMap::default(), Diagnostics::default());
    let options = softswitch_p4c::Options {
        include_dirs: vec![include.to_owned()],
        ..Default::default()
    };
    let name = path.to_str().expect("a path in UTF-8");
    let output = softswitch_p4c::compile(name, text, &options, &sources, &diags)?;
    Program::load(&output.json?.to_string()).ok()
}

/// All engines.
pub const ENGINES: [Engine; 2] = [Engine::Native, Engine::Interpreter];

/// Returns the engine under test.
fn engine() -> Engine {
    if module_path!().starts_with("interpreter") {
        Engine::Interpreter
    } else {
        Engine::Native
    }
}

pub fn options() -> Options {
    Options {
        engine: engine(),
        ..Options::default()
    }
}

impl Harness {
    pub fn new() -> Self {
        Self::with(options())
    }

    pub fn with(options: Options) -> Self {
        let program =
            Program::load(include_str!("../programs/everything.json")).expect("valid program");
        let info = program.info().clone();
        Self {
            pipeline: Pipeline::new(program, options),
            info,
        }
    }

    /// Sends a frame without queueing, and returns the transmitted frames with their ports.
    pub fn send_at(&mut self, frame: &[u8], now: Nanos) -> Vec<(u32, Vec<u8>)> {
        through(&mut self.pipeline, 7, frame, now)
    }

    pub fn send(&mut self, frame: &[u8]) -> Vec<(u32, Vec<u8>)> {
        self.send_at(frame, 0)
    }

    /// Sends a command, and returns the only transmitted packet.
    pub fn run(&mut self, c: Command) -> Command {
        let sent = self.send(&c.frame());
        assert_eq!(sent.len(), 1, "{c:?}");
        Command::parse(&sent[0].1)
    }

    pub fn call(&self, table: &str, action: &str, args: &[u128]) -> EntryAction {
        EntryAction::Direct(self.action(table, action, args))
    }

    pub fn action(&self, table: &str, action: &str, args: &[u128]) -> ActionCall {
        let id = self.info.table(table).expect("the table");
        let action = self.info.tables[id.index()]
            .action(action)
            .expect("the action");
        ActionCall {
            action,
            args: args.iter().map(|&a| Value::from(a)).collect(),
        }
    }
}

/// Maximum number of descriptors per packet, for packets that would otherwise recirculate for ever.
const MAX_DESCRIPTORS: usize = 200;

/// Sends a frame through a pipeline without queueing, and returns the transmitted frames with their ports.
pub fn through(
    pipeline: &mut Pipeline,
    port: u32,
    frame: &[u8],
    now: Nanos,
) -> Vec<(u32, Vec<u8>)> {
    let mut queue = Vec::new();
    pipeline.ingress(port, frame, now, &mut queue);
    deliver(pipeline, &mut queue, now)
}

/// Passes packets from ingress on without queueing, and returns the transmitted frames with their ports.
pub fn deliver(
    pipeline: &mut Pipeline,
    queue: &mut Vec<Descriptor>,
    now: Nanos,
) -> Vec<(u32, Vec<u8>)> {
    let mut waiting: VecDeque<_> = queue.drain(..).collect();
    let (mut sent, mut out) = (Vec::new(), EgressOutput::default());
    for _ in 0..MAX_DESCRIPTORS {
        let Some(d) = waiting.pop_front() else { break };
        let info = QueueInfo {
            deq_timedelta: 42_000,
            ..QueueInfo::default()
        };
        match pipeline.egress(d, info, now, &mut out) {
            EgressOutcome::Transmit { port } => sent.push((port, out.frame.to_vec())),
            EgressOutcome::Recirculate(r) => {
                pipeline.ingress_recirculated(r, now, queue);
                waiting.extend(queue.drain(..));
            }
            EgressOutcome::Dropped
            | EgressOutcome::TooManyIterations
            | EgressOutcome::AssertionFailed => {}
        }
        waiting.extend(out.clones.drain(..));
    }
    sent
}

pub fn key(fields: Vec<MatchField>, priority: i32) -> EntryKey {
    EntryKey { fields, priority }
}

pub fn ternary(value: u64, mask: u64) -> MatchField {
    MatchField::Ternary {
        value: value.into(),
        mask: mask.into(),
    }
}
