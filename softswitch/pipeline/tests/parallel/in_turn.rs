// SPDX-License-Identifier: Apache-2.0
//! Compares lanes that take turns with one pipeline: packets, entries and counters must be the same, because the order of
//! packets is the same.

use softswitch_pipeline::{
    CounterId, CounterValue, Engine, MatchField, MeterConfig, MeterId, ParallelPipeline, Pipeline,
    Program, RegisterId, Value,
};
use softswitch_random::Rng;

use crate::common::ENGINES;
use crate::common::furnish::{furnish, state};
use crate::common::packets::packet;
use crate::{Command, compile, first, lanes, options, pipeline, program, send, set_pair};

/// Number of packets between two visits of the control plane.
const VISIT_EVERY: usize = 100;

/// Runs the same packets through a pipeline and through lanes in turn, and compares all output and state.
fn agree(program: &Program, engine: Engine, count: usize, seed: u64) {
    let mut alone = Pipeline::new(program.clone(), options(engine));
    furnish(&mut alone, seed);
    let (shared, mut lanes) = lanes(Pipeline::new(program.clone(), options(engine)), count);
    furnish(&mut shared.lock(), seed);
    let mut rng = Rng::new(seed);
    let mut digests = Vec::new();
    for i in 0..1000 {
        let frame = packet(&mut rng);
        // Lanes note hits of entries with idle time-outs once in a millisecond.
        let (port, now) = (rng.below(6) as u32, i as u64 * 2_000_000);
        let mut turn = lanes[i % count].begin();
        assert!(turn.is_parallel());
        if i == 300 {
            alone.adapt();
            turn.adapt();
        }
        let expected = alone.process(port, &frame, now);
        let sent = turn.process(port, &frame, now);
        digests.extend(turn.take_digests());
        drop(turn);
        assert_eq!(sent, expected, "packet {i} of seed {seed}: {frame:02x?}");
        if i % VISIT_EVERY == 0 {
            compare(&mut alone, &shared, &mut digests);
            for p in [&mut alone, &mut shared.lock()] {
                p.reset_state();
                furnish(p, seed + i as u64);
            }
        }
    }
    compare(&mut alone, &shared, &mut digests);
}

fn compare(
    alone: &mut Pipeline,
    shared: &ParallelPipeline,
    digests: &mut Vec<softswitch_pipeline::Digest>,
) {
    assert_eq!(
        format!("{:?}", alone.take_digests()),
        format!("{:?}", std::mem::take(digests))
    );
    let (expected, found) = (state(alone), state(&mut shared.lock()));
    for (expected, found) in expected.iter().zip(&found) {
        assert_eq!(expected, found);
    }
}

#[test]
fn lanes_agree_with_one_pipeline() {
    let paths = [
        "softswitch/pipeline/tests/programs/router.p4",
        "softswitch/pipeline/tests/programs/misses.p4",
        "softswitch/pipeline/tests/programs/parallel.p4",
        "bench/p4/acl.p4",
        "p4src/v1model/frontage.p4",
    ];
    for path in paths {
        let program = compile(path);
        for engine in ENGINES {
            for (count, seed) in [(1, 1), (2, 2), (3, 3)] {
                agree(&program, engine, count, seed);
            }
        }
    }
}

#[test]
fn counters_of_lanes_add_up_and_can_be_set() {
    for engine in ENGINES {
        let (shared, mut lanes) = lanes(pipeline(&program(), engine, 5), 2);
        let table = shared.lock().program().info().table("I.first").unwrap();
        let frame = Command {
            flow: 3,
            key: 1,
            ..Command::default()
        }
        .frame();
        let count = |packets: u64| CounterValue {
            packets,
            bytes: packets * frame.len() as u64,
        };
        let read = || {
            let p = shared.lock();
            let key = first(&p, 1, 0).key;
            let entry = p.entry(table, &key).unwrap().counter.unwrap();
            assert_eq!(p.direct_counter(table, Some(&key)).unwrap(), Some(entry));
            (entry, p.counter(CounterId(0), 3).unwrap())
        };
        for lane in &mut lanes {
            send(lane, &frame, 0);
        }
        assert_eq!(read(), (count(2), count(2)));
        send(&mut lanes[1], &frame, 0);
        assert_eq!(read(), (count(3), count(3)));
        {
            let mut p = shared.lock();
            let key = first(&p, 1, 0).key;
            p.set_direct_counter(table, Some(&key), count(10)).unwrap();
            p.set_counter(CounterId(0), 3, count(20)).unwrap();
        }
        assert_eq!(read(), (count(10), count(20)));
        send(&mut lanes[0], &frame, 0);
        assert_eq!(read(), (count(11), count(21)));
        // A new entry in the same slot starts at zero.
        {
            let mut p = shared.lock();
            let entry = first(&p, 1, 0);
            p.delete_entry(table, &entry.key).unwrap();
            p.insert_entry(table, entry, 0).unwrap();
        }
        assert_eq!(read(), (count(0), count(21)));
    }
}

#[test]
fn reset_and_other_programs_reach_all_lanes() {
    for engine in ENGINES {
        let program = program();
        let (shared, mut lanes) = lanes(pipeline(&program, engine, 5), 2);
        let frame = Command {
            key: 1,
            ..Command::default()
        }
        .frame();
        let x = |lane: &mut softswitch_pipeline::Lane| {
            let sent = send(lane, &frame, 0);
            let command = Command::parse(&sent[0].1);
            (command.x, command.total)
        };
        assert_eq!([x(&mut lanes[0]), x(&mut lanes[1])], [(5, 1), (5, 2)]);
        shared.lock().reset_state();
        assert_eq!([x(&mut lanes[0]), x(&mut lanes[1])], [(0, 1), (0, 2)]);
        *shared.lock() = pipeline(&program, engine, 6);
        assert_eq!([x(&mut lanes[0]), x(&mut lanes[1])], [(6, 1), (6, 2)]);
        assert_eq!(shared.lock().counter(CounterId(0), 0).unwrap().packets, 2);
        let everything = Program::load(include_str!("../programs/everything.json")).unwrap();
        *shared.lock() = Pipeline::new(everything, options(engine));
        assert!(!lanes[0].begin().is_parallel());
        *shared.lock() = pipeline(&program, engine, 7);
        assert!(lanes[0].begin().is_parallel());
        assert_eq!([x(&mut lanes[1]), x(&mut lanes[0])], [(7, 1), (7, 2)]);
    }
}

#[test]
fn pipeline_that_leaves_its_lanes_is_independent() {
    let program = program();
    let (shared, mut lanes) = lanes(pipeline(&program, Engine::Native, 5), 1);
    let other = pipeline(&program, Engine::Native, 6);
    let mut old = std::mem::replace(&mut *shared.lock(), other);
    set_pair(&mut old, 9, false);
    let frame = Command {
        key: 1,
        ..Command::default()
    }
    .frame();
    let x = |sent: Vec<(u32, Vec<u8>)>| Command::parse(&sent[0].1).x;
    assert_eq!(x(send(&mut lanes[0], &frame, 0)), 6);
    assert_eq!(x(old.process(1, &frame, 0)), 9);
}

#[test]
fn traced_packets_run_alone_with_the_same_state() {
    let (shared, mut lanes) = lanes(pipeline(&program(), Engine::Native, 5), 2);
    let frame = Command {
        flow: 2,
        key: 1,
        ..Command::default()
    }
    .frame();
    send(&mut lanes[0], &frame, 0);
    shared.lock().set_tracing(true);
    let mut turn = lanes[1].begin();
    assert!(!turn.is_parallel());
    let sent = turn.process(1, &frame, 0);
    drop(turn);
    assert_eq!(Command::parse(&sent[0].1).seen, 2);
    let mut p = shared.lock();
    assert!(!p.take_trace().is_empty());
    p.set_tracing(false);
    drop(p);
    let mut turn = lanes[1].begin();
    assert!(turn.is_parallel());
    turn.process(1, &frame, 0);
    drop(turn);
    assert_eq!(shared.lock().counter(CounterId(0), 2).unwrap().packets, 3);
}

#[test]
fn control_plane_and_lanes_share_registers_meters_and_idle_times() {
    const MS: u64 = 1_000_000;
    const ONE: MeterConfig = MeterConfig {
        cir: 0,
        cburst: 1,
        pir: 0,
        pburst: 1,
        eburst: 0,
    };
    for engine in ENGINES {
        let (shared, mut lanes) = lanes(pipeline(&program(), engine, 5), 2);
        let table = {
            let mut p = shared.lock();
            let [seen, limits] = ["I.seen", "I.limits"].map(|name| {
                let registers = &p.program().info().registers;
                let at = registers.iter().position(|r| r.name == name).unwrap();
                RegisterId(at as u32)
            });
            p.set_register(seen, 2, &Value::from(40u32)).unwrap();
            p.set_register(limits, 0, &Value::from(99u32)).unwrap();
            p.set_meter(MeterId(0), 0, Some(ONE)).unwrap();
            let table = p.program().info().table("I.second").unwrap();
            let mut entry = crate::second(&p, 2, 8);
            entry.idle_timeout = 100 * MS;
            p.insert_entry(table, entry, 0).unwrap();
            table
        };
        let frame = Command {
            flow: 2,
            key: 2,
            ..Command::default()
        }
        .frame();
        let run = |lane: &mut softswitch_pipeline::Lane, now| {
            let command = Command::parse(&send(lane, &frame, now)[0].1);
            (command.seen, command.limit, command.color)
        };
        assert_eq!(run(&mut lanes[0], 90 * MS), (41, 99, 0));
        assert_eq!(run(&mut lanes[1], 95 * MS), (42, 99, 2));
        assert!(shared.lock().poll_idle(150 * MS).is_empty());
        let idle = shared.lock().poll_idle(195 * MS);
        assert_eq!(idle.len(), 1);
        assert_eq!(idle[0].table, table);
        let key = &idle[0].key.fields[0];
        assert!(matches!(key, MatchField::Ternary { .. }));
    }
}

#[test]
fn lane_has_one_owner_at_a_time() {
    let (shared, mut lanes) = lanes(pipeline(&program(), Engine::Native, 5), 2);
    assert!(shared.lane(1).is_none() && shared.lane(2).is_none());
    lanes.truncate(1);
    let mut lane = shared.lane(1).expect("the owner is gone");
    assert!(lane.begin().is_parallel() && shared.lane(1).is_none());
}

#[test]
fn pipeline_without_lanes_runs_packets_of_the_control_plane() {
    let (shared, lanes) = lanes(pipeline(&program(), Engine::Native, 5), 0);
    assert!(lanes.is_empty());
    let frame = Command::default().frame();
    assert_eq!(shared.lock().process(1, &frame, 0).len(), 1);
}
