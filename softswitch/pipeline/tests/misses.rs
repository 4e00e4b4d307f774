// SPDX-License-Identifier: Apache-2.0
//! The table's default entry counts and meters misses.

mod common;

use std::path::Path;

use common::{ENGINES, compile, key, through};
use softswitch_pipeline::{
    ActionCall, CounterValue, Entry, EntryAction, MatchField, MeterConfig, Options, Pipeline,
    StateError, TableId,
};

/// The initial colour in the program, which no meter produces.
const NONE: u8 = 3;
const GREEN: u8 = 0;
const RED: u8 = 2;

/// A meter that lets one packet pass.
const ONE: MeterConfig = MeterConfig {
    cir: 0,
    cburst: 1,
    pir: 0,
    pburst: 1,
    eburst: 0,
};

/// Returns a pipeline of each engine, its table with a key and its table without a key.
fn pipelines() -> [(Pipeline, [TableId; 2]); 2] {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let program = compile(&folder.join("misses.p4"), &folder).expect("it compiles");
    let tables = ["I.known", "I.any"].map(|t| program.info().table(t).expect("it is there"));
    ENGINES.map(|engine| {
        let options = Options {
            engine,
            ..Options::default()
        };
        (Pipeline::new(program.clone(), options), tables)
    })
}

/// Returns a packet's colours in the table with a key and in the table without a key.
fn colors(p: &mut Pipeline, kind: u8) -> [u8; 2] {
    let sent = through(p, 1, &[kind, 0, 0, 0xee], 0);
    [sent[0].1[1], sent[0].1[2]]
}

fn entry(p: &Pipeline, kind: u8) -> Entry {
    let table = p.program().info().table("I.known").expect("it is there");
    let action = p.program().info().tables[table.index()].actions[0].1;
    Entry {
        key: key(vec![MatchField::Exact(u32::from(kind).into())], 0),
        action: EntryAction::Direct(ActionCall {
            action,
            args: vec![],
        }),
        idle_timeout: 0,
    }
}

fn count(packets: u64) -> CounterValue {
    CounterValue {
        packets,
        bytes: packets * 4,
    }
}

/// Covers an empty table, a table with entries, a table without a key, and lookups while tracing is on.
#[test]
fn default_entry_counts_misses() {
    let plain = pipelines();
    let traced = pipelines().map(|(mut p, tables)| {
        p.set_tracing(true);
        (p, tables)
    });
    for (mut p, [known, any]) in plain.into_iter().chain(traced) {
        colors(&mut p, 5);
        let five = entry(&p, 5);
        p.insert_entry(known, five.clone(), 0).unwrap();
        colors(&mut p, 5);
        colors(&mut p, 6);
        let counted = |p: &Pipeline| {
            let default = p.direct_counter(known, None).unwrap().unwrap();
            let of_entry = p.direct_counter(known, Some(&five.key)).unwrap().unwrap();
            let without_key = p.direct_counter(any, None).unwrap().unwrap();
            [default, of_entry, without_key]
        };
        assert_eq!(counted(&p), [count(2), count(1), count(3)]);
        p.set_direct_counter(known, None, count(70)).unwrap();
        colors(&mut p, 6);
        assert_eq!(counted(&p), [count(71), count(1), count(4)]);
        // A new default action keeps the count.
        p.set_default_action(known, None).unwrap();
        assert_eq!(counted(&p)[0], count(71));
    }
}

#[test]
fn configured_default_entry_meters_misses() {
    for (mut p, [known, any]) in pipelines() {
        let five = entry(&p, 5);
        p.insert_entry(known, five, 0).unwrap();
        assert_eq!(colors(&mut p, 5), [GREEN, NONE]);
        assert_eq!(colors(&mut p, 6), [NONE, NONE]);
        p.set_direct_meter(known, None, Some(ONE)).unwrap();
        p.set_direct_meter(any, None, Some(ONE)).unwrap();
        assert_eq!(p.direct_meter(known, None).unwrap(), Some(ONE));
        assert_eq!(colors(&mut p, 6), [GREEN, GREEN]);
        let before = p.direct_meter_state(known, None).unwrap().unwrap();
        assert_eq!(colors(&mut p, 6), [RED, RED]);
        // The entry has a meter of its own.
        assert_eq!(colors(&mut p, 5), [GREEN, RED]);
        // A new configuration fills the bucket; restoring brings back the old level.
        p.set_direct_meter(known, None, Some(ONE)).unwrap();
        assert_eq!(colors(&mut p, 6), [GREEN, RED]);
        p.set_direct_meter(known, None, Some(ONE)).unwrap();
        p.restore_direct_meter(known, None, before).unwrap();
        assert_eq!(colors(&mut p, 6), [RED, RED]);
        p.set_direct_meter(known, None, None).unwrap();
        assert_eq!(colors(&mut p, 6), [NONE, RED]);
    }
}

#[test]
fn empty_table_meters_misses() {
    for (mut p, [known, _]) in pipelines() {
        p.set_direct_meter(known, None, Some(ONE)).unwrap();
        assert_eq!([colors(&mut p, 5)[0], colors(&mut p, 5)[0]], [GREEN, RED]);
    }
}

#[test]
fn refused_calls_change_nothing() {
    let [(mut p, [known, _]), _] = pipelines();
    let slower_peak = MeterConfig { cir: 5, ..ONE };
    assert!(matches!(
        p.set_direct_meter(known, None, Some(slower_peak)),
        Err(StateError::Invalid { .. })
    ));
    assert_eq!(p.direct_meter(known, None).unwrap(), None);
    let absent = entry(&p, 9).key;
    assert!(matches!(
        p.direct_counter(known, Some(&absent)),
        Err(StateError::NotFound { .. })
    ));
    // Tables without direct counters or meters: reading gives none, and writing is refused.
    let h = common::Harness::new();
    let fixed = h.info.table("I.fixed").unwrap();
    let mut p = h.pipeline;
    assert_eq!(p.direct_counter(fixed, None).unwrap(), None);
    assert!(matches!(
        p.set_direct_counter(fixed, None, count(1)),
        Err(StateError::NotFound { .. })
    ));
    assert!(matches!(
        p.set_direct_meter(fixed, None, Some(ONE)),
        Err(StateError::NotFound { .. })
    ));
}
