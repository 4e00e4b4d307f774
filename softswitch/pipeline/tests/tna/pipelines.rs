// SPDX-License-Identifier: Apache-2.0
//! `programs/tofino_pipelines.p4`: each pipe runs a pipeline of its own.

use softswitch_pipeline::{
    ActionCall, Entry, EntryAction, EntryKey, MatchField, Options, PipeSet, Pipeline, RegisterId,
    Value,
};

use super::common::{options, through};
use super::program;

fn pipeline(pipes: u32) -> Pipeline {
    let program = program("tofino_pipelines");
    assert_eq!(program.native_blocks(), (12, 12), "of two pipelines");
    assert_eq!(program.pipes(), 2);
    Pipeline::new(program, Options { pipes, ..options() })
}

/// Inserts an entry that sets a value.
fn insert(p: &mut Pipeline, control: &str, key: u32, value: u32) {
    let info = p.program().info();
    let table = info.table(&format!("{control}.steps")).expect("a table");
    let action = info.action(&format!("{control}.set")).expect("an action");
    let entry = Entry {
        key: EntryKey {
            fields: vec![MatchField::Exact(key.into())],
            priority: 0,
        },
        action: EntryAction::Direct(ActionCall {
            action,
            args: vec![value.into()],
        }),
        idle_timeout: 0,
    };
    p.insert_entry(table, entry, 0).expect("a new entry");
}

/// Sends a packet, and returns its port and the words with which it leaves.
fn send(p: &mut Pipeline, from: u32) -> (u32, Vec<u16>) {
    let frame = [&5u16.to_be_bytes()[..], &[0; 8]].concat();
    let sent = through(p, from, &frame, 0);
    let [(port, frame)] = &sent[..] else {
        panic!("one packet leaves, not {}", sent.len())
    };
    let words = frame.chunks(2).map(|w| u16::from_be_bytes([w[0], w[1]]));
    (*port, words.collect())
}

fn register(p: &Pipeline, name: &str) -> RegisterId {
    let mut all = p.program().info().registers.iter();
    let position = all.position(|r| r.name == name).expect("a register");
    RegisterId(position as u32)
}

#[test]
fn packet_passes_both_pipelines() {
    for pipes in [2, 4] {
        let mut p = pipeline(pipes);
        insert(&mut p, "outer.Ingress", 5, 10);
        insert(&mut p, "inner.InnerIngress", 77, 20);
        assert_eq!(send(&mut p, 1), (3, vec![2, 10, 196, 20, 3]));
        assert_eq!(send(&mut p, 1), (3, vec![4, 10, 196, 20, 3]));
    }
}

#[test]
fn further_pipes_begin_again_with_the_first_pipeline() {
    let mut p = pipeline(4);
    insert(&mut p, "outer.Ingress", 5, 10);
    assert_eq!(send(&mut p, 256 + 1), (3, vec![2, 10, 196, 0, 3]));
    let pipes = |p: &Pipeline, name| p.pipes_of(name).iter().collect::<Vec<_>>();
    assert_eq!(pipes(&p, "outer.Ingress.steps"), [0, 2]);
    assert_eq!(pipes(&p, "inner.InnerIngress.visits"), [1, 3]);
    assert_eq!(pipes(&p, "NoAction"), [0, 1, 2, 3]);
}

#[test]
fn register_is_read_in_a_pipe_of_its_pipeline() {
    let mut p = pipeline(2);
    send(&mut p, 1);
    let inner = register(&p, "inner.InnerIngress.visits");
    assert_eq!(p.register(inner, 0).unwrap(), Value::from(2u32));
    let in_pipe = |p: &mut Pipeline, pipe| {
        let read = p.on_pipes(PipeSet::one(pipe), |p| p.register(inner, 0));
        read.expect("the pipe exists").expect("a cell")
    };
    assert_eq!(in_pipe(&mut p, 1), Value::from(2u32));
    assert_eq!(in_pipe(&mut p, 0), Value::from(0u32), "never used");
}
