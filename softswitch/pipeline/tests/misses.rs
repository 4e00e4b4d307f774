//! Packets that hit no entry are counted and metered by the table's default entry.

mod common;

use std::path::Path;

use common::{compile, key, through};
use softswitch_pipeline::{
    ActionCall, CounterValue, Engine, Entry, EntryAction, MatchField, MeterConfig, Options,
    Pipeline, StateError, TableId,
};

/// The colour that the program begins with; no meter gives it.
const NONE: u8 = 3;
const GREEN: u8 = 0;
const RED: u8 = 2;

/// One packet passes, and then none.
const ONE: MeterConfig = MeterConfig {
    cir: 0,
    cburst: 1,
    pir: 0,
    pburst: 1,
};

/// A pipeline of each engine, with its table with a key and its table without.
fn pipelines() -> [(Pipeline, [TableId; 2]); 2] {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let program = compile(&folder.join("misses.p4"), &folder).expect("it compiles");
    let tables = ["I.known", "I.any"].map(|t| program.info().table(t).expect("it is there"));
    [Engine::Native, Engine::Interpreter].map(|engine| {
        let options = Options {
            engine,
            ..Options::default()
        };
        (Pipeline::new(program.clone(), options), tables)
    })
}

/// The colours that a packet of this kind gets from the table with a key and from the one without.
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

/// In a table that is empty, that is not, and that has no key; and where a trace has the key looked up.
#[test]
fn misses_are_counted_by_the_default_entry() {
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
        // A new default action does not count anew.
        p.set_default_action(known, None).unwrap();
        assert_eq!(counted(&p)[0], count(71));
    }
}

#[test]
fn misses_are_metered_by_the_default_entry_once_its_meter_is_configured() {
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
        // Configured again, it is full; restored, it is as empty as it was.
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
fn an_empty_table_meters_misses_too() {
    for (mut p, [known, _]) in pipelines() {
        p.set_direct_meter(known, None, Some(ONE)).unwrap();
        assert_eq!([colors(&mut p, 5)[0], colors(&mut p, 5)[0]], [GREEN, RED]);
    }
}

#[test]
fn what_is_refused_changes_nothing() {
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
    // Of tables without, there is none to read and none to set.
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
