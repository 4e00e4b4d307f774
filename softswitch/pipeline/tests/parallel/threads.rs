// SPDX-License-Identifier: Apache-2.0
//! Threads that run packets while the control plane changes the pipeline.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use softswitch_pipeline::{
    CounterId, Engine, EntryKey, Lane, MeterConfig, MeterId, Program, RegisterId, TableId,
};

use crate::common::ENGINES;
use crate::{Command, first, lanes, options, pipeline, program, second, set_pair};

const LANES: usize = 3;
/// Number of flows of each lane.
const FLOWS: u16 = 4;
/// Number of packets of each flow.
const PACKETS: u32 = 1000;
const BATCH: u32 = 16;
/// Number of packets that the meter passes as green.
const BURST: u64 = 500;

/// The results of a lane's packets.
#[derive(Debug, Default)]
struct Seen {
    totals: Vec<u32>,
    green: u64,
    digests: usize,
}

/// Sends the packets of a lane's flows, and checks the order of each flow and that both tables have the same version.
fn send_flows(lane: &mut Lane, number: usize) -> Seen {
    let mut seen = Seen::default();
    let flows = number as u16 * FLOWS..(number as u16 + 1) * FLOWS;
    let mut sequence = 1;
    while sequence <= PACKETS {
        let mut turn = lane.begin();
        assert!(turn.is_parallel());
        let end = PACKETS.min(sequence + BATCH - 1);
        for sequence in sequence..=end {
            for flow in flows.clone() {
                let key = if sequence % 10 == 0 { 7 } else { 1 };
                let command = Command {
                    flow,
                    key,
                    color: 3,
                    ..Command::default()
                };
                let sent = turn.process(1, &command.frame(), sequence.into());
                let command = Command::parse(&sent[0].1);
                assert_eq!(command.x, command.y, "a change was seen in part");
                assert_eq!(
                    command.seen, sequence,
                    "a packet of flow {flow} was not counted"
                );
                seen.totals.push(command.total);
                seen.green += u64::from(command.color == 0);
            }
        }
        seen.digests += turn.take_digests().len();
        drop(turn);
        sequence = end + 1;
    }
    seen
}

/// Runs threads with lanes, and a control plane that makes changes until they end.
fn run<T: Send>(
    lanes: &mut [Lane],
    packets: impl Fn(&mut Lane, usize) -> T + Sync,
    mut change: impl FnMut(u32) + Send,
) -> Vec<T> {
    let done = AtomicBool::new(false);
    let start = Barrier::new(lanes.len() + 1);
    thread::scope(|scope| {
        let threads: Vec<_> = lanes
            .iter_mut()
            .enumerate()
            .map(|(number, lane)| {
                let (packets, start) = (&packets, &start);
                scope.spawn(move || {
                    start.wait();
                    packets(lane, number)
                })
            })
            .collect();
        let (done, start) = (&done, &start);
        let control = scope.spawn(move || {
            start.wait();
            let mut round = 0;
            // A busy machine may run this thread late, so it makes one change in any case.
            loop {
                round += 1;
                change(round);
                if done.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let results = threads.into_iter().map(|t| t.join());
        let results: Vec<_> = results.collect();
        done.store(true, Ordering::Relaxed);
        control.join().expect("the control plane works");
        let passed = |result: thread::Result<T>| result.expect("the packets are right");
        results.into_iter().map(passed).collect()
    })
}

fn table(program: &Program, name: &str) -> TableId {
    program.info().table(name).expect("a table")
}

#[test]
fn changes_under_traffic_are_complete_and_all_packets_count() {
    for engine in ENGINES {
        under_traffic(engine);
    }
}

fn under_traffic(engine: Engine) {
    let program = program();
    let (shared, mut lanes) = lanes(pipeline(&program, engine, 0), LANES);
    let meter = MeterConfig {
        cir: 0,
        cburst: BURST,
        pir: 0,
        pburst: BURST,
        eburst: 0,
    };
    shared.lock().set_meter(MeterId(0), 0, Some(meter)).unwrap();
    let tables = [table(&program, "I.first"), table(&program, "I.second")];
    let mut inserted: Vec<EntryKey> = Vec::new();
    let seen = run(&mut lanes, send_flows, |round| {
        let mut p = shared.lock();
        set_pair(&mut p, round, false);
        // Other entries come and go, so that tables grow and slots are used again.
        let key = 1000 + (round % 9000) as u16;
        if inserted.len() < 3000 && !inserted.iter().any(|k| *k == first(&p, key, 0).key) {
            let entry = first(&p, key, round);
            inserted.push(entry.key.clone());
            p.insert_entry(tables[0], entry, 0).unwrap();
        } else if let Some(key) = inserted.pop() {
            p.delete_entry(tables[0], &key).unwrap();
        }
        if round % 64 == 1 {
            let entry = second(&p, 20, round);
            p.insert_entry(tables[1], entry, 0).unwrap();
        } else if round % 64 == 33 {
            let key = second(&p, 20, 0).key;
            p.delete_entry(tables[1], &key).unwrap();
        }
        drop(p);
        thread::yield_now();
    });
    let packets = LANES as u64 * u64::from(FLOWS) * u64::from(PACKETS);
    let mut totals: Vec<u32> = seen.iter().flat_map(|s| s.totals.iter().copied()).collect();
    totals.sort_unstable();
    assert!(
        totals.into_iter().eq(1..=packets as u32),
        "packets overlapped"
    );
    assert_eq!(seen.iter().map(|s| s.green).sum::<u64>(), BURST);
    assert_eq!(
        seen.iter().map(|s| s.digests as u64).sum::<u64>(),
        packets / 10
    );
    let p = shared.lock();
    for id in tables {
        let hits = p.entries(id).unwrap().into_iter().filter_map(|e| e.counter);
        let hits: u64 = hits.map(|counter| counter.packets).sum();
        let misses = p.direct_counter(id, None).unwrap().unwrap().packets;
        assert_eq!((hits, misses), (packets * 9 / 10, packets / 10));
    }
    for flow in 0..LANES * usize::from(FLOWS) {
        let sent = p.counter(CounterId(0), flow).unwrap();
        assert_eq!(sent.packets, u64::from(PACKETS));
        let seen = p.register(RegisterId(0), flow).unwrap();
        assert_eq!(seen, softswitch_pipeline::Value::from(PACKETS));
    }
}

#[test]
fn program_changes_under_traffic() {
    let (one, other) = (
        program(),
        Program::load(include_str!("../programs/everything.json")).unwrap(),
    );
    for engine in ENGINES {
        let (shared, mut lanes) = lanes(pipeline(&one, engine, 0), LANES);
        let packets = |lane: &mut Lane, _| {
            let mut known = 0;
            for now in 0..1000 {
                let frame = Command {
                    key: 1,
                    ..Command::default()
                }
                .frame();
                let mut turn = lane.begin();
                let was_parallel = turn.is_parallel();
                let sent = turn.process(1, &frame, now);
                drop(turn);
                if was_parallel {
                    let command = Command::parse(&sent[0].1);
                    assert_eq!(command.x, command.y);
                    assert!(command.x >= known, "a lane has an older program");
                    known = command.x;
                }
            }
        };
        run(&mut lanes, packets, |round| {
            let next = match round % 3 {
                0 => softswitch_pipeline::Pipeline::new(other.clone(), options(engine)),
                _ => pipeline(&one, engine, round),
            };
            *shared.lock() = next;
            thread::yield_now();
        });
    }
}
