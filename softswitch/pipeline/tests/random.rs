// SPDX-License-Identifier: Apache-2.0
//! Random packets, random control-plane calls and randomly damaged JSON: no panics, no hangs, and equal output for equal
//! input.

mod common;

use common::damage::damage;
use common::frames::random_frame;
use common::furnish::furnish;
use common::{Harness, key};
use serde_json::Value as Json;
use softswitch_pipeline::{
    Engine, Entry, EntryAction, MatchField, Options, Pipeline, Program, TableId,
};
use softswitch_random::Rng;

/// Returns a pipeline with entries in all tables and arrays.
fn furnished(seed: u64) -> Harness {
    let mut h = Harness::with(Options {
        seed,
        keep_log: true,
        ..Options::default()
    });
    furnish(&mut h.pipeline, seed);
    h
}

#[test]
fn random_packets_give_repeatable_output() {
    let run = |seed| {
        let mut rng = Rng::new(seed);
        let mut h = furnished(seed);
        let mut all = Vec::new();
        for i in 0..15_000 {
            let sent = h.send_at(&random_frame(&mut rng), i * 1000);
            assert!(sent.len() < 64, "a packet multiplies without bound");
            all.extend(sent);
        }
        (all, h.pipeline.take_digests(), h.pipeline.take_log())
    };
    let first = run(1);
    assert!(first.0.len() > 10_000 && !first.1.is_empty() && !first.2.is_empty());
    assert!(first == run(1));
    assert!(first.0 != run(2).0);
}

fn random_field(rng: &mut Rng) -> MatchField {
    let mut v = || (rng.next() >> (rng.next() % 64)).into();
    let (a, b) = (v(), v());
    match rng.below(7) {
        0 => MatchField::Exact(a),
        1 => MatchField::Lpm {
            value: a,
            prefix_len: rng.below(140) as u32,
        },
        2 => MatchField::Ternary { value: a, mask: b },
        3 => MatchField::Range { low: a, high: b },
        4 => MatchField::Optional(Some(a)),
        5 => MatchField::Optional(None),
        _ => MatchField::Valid(true),
    }
}

#[test]
fn random_control_calls_never_panic() {
    let mut rng = Rng::new(3);
    let mut h = furnished(3);
    for _ in 0..20_000 {
        let t = TableId(rng.below(h.info.tables.len() + 1) as u32);
        let fields = (0..rng.below(4)).map(|_| random_field(&mut rng)).collect();
        let k = key(fields, rng.below(3) as i32 - 1);
        let action = match rng.below(4) {
            0 => EntryAction::Member(rng.below(5) as u32),
            1 => EntryAction::Group(rng.below(3) as u32),
            2 => EntryAction::OneShot(vec![]),
            _ => h.call("I.acl", "I.note", &[rng.next().into()]),
        };
        let e = Entry {
            key: k.clone(),
            action,
            idle_timeout: rng.below(2) as u64,
        };
        let before = h.pipeline.entry_count(t).ok();
        let result = match rng.below(3) {
            0 => h.pipeline.insert_entry(t, e, 0),
            1 => h.pipeline.modify_entry(t, e, 0),
            _ => h.pipeline.delete_entry(t, &k),
        };
        if result.is_err() {
            assert_eq!(before, h.pipeline.entry_count(t).ok());
        }
    }
}

#[test]
fn damaged_program_is_rejected_or_runs() {
    let original: Json = serde_json::from_str(include_str!("programs/everything.json")).unwrap();
    let mut rng = Rng::new(5);
    let mut loaded = 0;
    for _ in 0..400 {
        let mut json = original.clone();
        for _ in 0..=rng.below(3) {
            damage(&mut json, &mut rng, 0);
        }
        let Ok(program) = Program::load(&json.to_string()) else {
            continue;
        };
        loaded += 1;
        let cells = program.info().registers.iter().map(|r| r.size).max();
        if cells > Some(1 << 20) {
            continue;
        }
        let options = Options {
            engine: Engine::Interpreter,
            ..Options::default()
        };
        let mut pipeline = Pipeline::new(program, options);
        let (mut queue, mut out) = (Vec::new(), Default::default());
        for _ in 0..20 {
            pipeline.ingress(1, &random_frame(&mut rng), 0, &mut queue);
            for d in queue.drain(..) {
                pipeline.egress(d, Default::default(), 0, &mut out);
            }
        }
    }
    assert!(loaded > 50);
}
