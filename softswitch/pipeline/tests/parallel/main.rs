// SPDX-License-Identifier: Apache-2.0
//! Packets of several threads in one pipeline.

mod analysis;
#[path = "../common/mod.rs"]
mod common;
mod in_turn;
mod threads;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use softswitch_pipeline::{
    ActionCall, Entry, EntryAction, EntryKey, MatchField, Options, ParallelPipeline, Pipeline,
    Program, Value,
};

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

fn compile(path: &str) -> Program {
    let path = repository(path);
    let include = path.parent().expect("a folder");
    common::compile(&path, include).expect("valid program")
}

/// Returns the program with everything that threads share.
fn program() -> Program {
    compile("softswitch/pipeline/tests/programs/parallel.p4")
}

/// The packet of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Command {
    flow: u16,
    key: u16,
    x: u32,
    y: u32,
    seen: u32,
    total: u32,
    limit: u32,
    color: u8,
}

impl Command {
    fn frame(&self) -> Vec<u8> {
        let mut frame = [self.flow.to_be_bytes(), self.key.to_be_bytes()].concat();
        for word in [self.x, self.y, self.seen, self.total, self.limit] {
            frame.extend(word.to_be_bytes());
        }
        frame.push(self.color);
        frame
    }

    fn parse(frame: &[u8]) -> Self {
        let short = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
        let word = |at: usize| u32::from(short(at)) << 16 | u32::from(short(at + 2));
        Self {
            flow: short(0),
            key: short(2),
            x: word(4),
            y: word(8),
            seen: word(12),
            total: word(16),
            limit: word(20),
            color: frame[24],
        }
    }
}

fn entry(p: &Pipeline, table: &str, action: &str, fields: Vec<MatchField>, arg: u32) -> Entry {
    let info = p.program().info();
    let table = &info.tables[info.table(table).expect("a table").index()];
    let call = ActionCall {
        action: table.action(action).expect("an action"),
        args: vec![Value::from(arg)],
    };
    Entry {
        key: EntryKey {
            fields,
            priority: i32::from(table.needs_priority),
        },
        action: EntryAction::Direct(call),
        idle_timeout: 0,
    }
}

/// Returns the entry of `I.first` for a key.
fn first(p: &Pipeline, key: u16, x: u32) -> Entry {
    let field = MatchField::Exact(u32::from(key).into());
    entry(p, "I.first", "I.set_x", vec![field], x)
}

/// Returns the entry of `I.second` for a key and all flows.
fn second(p: &Pipeline, key: u16, y: u32) -> Entry {
    let fields = vec![common::ternary(key.into(), 0xffff), common::ternary(0, 0)];
    entry(p, "I.second", "I.set_y", fields, y)
}

fn options(engine: softswitch_pipeline::Engine) -> Options {
    Options {
        engine,
        adapt_every: 3,
        ..Options::default()
    }
}

/// Runs a frame through a lane.
fn send(lane: &mut softswitch_pipeline::Lane, frame: &[u8], now: u64) -> Vec<(u32, Vec<u8>)> {
    lane.begin().process(1, frame, now)
}

/// Returns a pipeline with an entry for key 1 in both tables, whose arguments are `value`.
fn pipeline(program: &Program, engine: softswitch_pipeline::Engine, value: u32) -> Pipeline {
    let mut p = Pipeline::new(program.clone(), options(engine));
    set_pair(&mut p, value, true);
    p
}

/// Inserts or modifies the entries for key 1 in both tables.
fn set_pair(p: &mut Pipeline, value: u32, is_new: bool) {
    for (name, entry) in [
        ("I.first", first(p, 1, value)),
        ("I.second", second(p, 1, value)),
    ] {
        let table = p.program().info().table(name).expect("a table");
        let result = match is_new {
            true => p.insert_entry(table, entry, 0),
            false => p.modify_entry(table, entry, 0),
        };
        result.expect("a valid entry");
    }
}

/// Returns a pipeline with all its lanes.
fn lanes(
    pipeline: Pipeline,
    count: usize,
) -> (Arc<ParallelPipeline>, Vec<softswitch_pipeline::Lane>) {
    let shared = Arc::new(ParallelPipeline::new(pipeline, count));
    let lanes = (0..count).map(|number| shared.lane(number).expect("a free lane"));
    let lanes = lanes.collect();
    (shared, lanes)
}
