// SPDX-License-Identifier: Apache-2.0
//! `programs/tofino_counts.p4`: adjusted counters, and counters of the packets that leave.

use softswitch_pipeline::{
    ActionCall, CounterValue, Entry, EntryAction, EntryKey, MatchField, MeterConfig, Pipeline,
};

use super::common::through;
use super::compiled;

/// Length of a received frame, and of its frame check sequence.
const BYTES: u64 = 21 + 4;
/// Bytes that ingress subtracts, and bytes that egress removes.
const LESS: u64 = 10;

fn insert(p: &mut Pipeline, control: &str, action: &str, key: u8) {
    let info = p.program().info();
    let table = info.table(&format!("{control}.keys")).expect("a table");
    let action = info
        .action(&format!("{control}.{action}"))
        .expect("an action");
    let entry = Entry {
        key: EntryKey {
            fields: vec![MatchField::Exact(u32::from(key).into())],
            priority: 0,
        },
        action: EntryAction::Direct(ActionCall {
            action,
            args: vec![],
        }),
        idle_timeout: 0,
    };
    p.insert_entry(table, entry, 0).expect("a new entry");
}

fn send(p: &mut Pipeline, key: u8) {
    let frame = [&[key][..], &[0; 20]].concat();
    through(p, 7, &frame, 0);
}

fn cell(p: &Pipeline, counter: &str, index: usize) -> CounterValue {
    let counter = p.program().info().counter(counter).expect("a counter");
    p.counter(counter, index).expect("a cell")
}

/// The direct counter of the entry with a key, or of the default entry.
fn entry(p: &Pipeline, table: &str, key: Option<u8>) -> CounterValue {
    let table = p.program().info().table(table).expect("a table");
    let key = key.map(|key| EntryKey {
        fields: vec![MatchField::Exact(u32::from(key).into())],
        priority: 0,
    });
    let counter = p.direct_counter(table, key.as_ref());
    counter.expect("an entry").expect("a counter")
}

fn count(packets: u64, bytes: u64) -> CounterValue {
    CounterValue { packets, bytes }
}

#[test]
fn adjusted_counters_subtract_bytes() {
    let mut p = compiled("tofino_counts");
    insert(&mut p, "Ingress", "adjust", 1);
    for key in [1, 2, 1] {
        send(&mut p, key);
    }
    assert_eq!(
        cell(&p, "Ingress.adjusted", 1),
        count(2, 2 * (BYTES - LESS))
    );
    assert_eq!(cell(&p, "Ingress.adjusted", 2), count(1, BYTES - LESS));
    assert_eq!(
        entry(&p, "Ingress.keys", Some(1)),
        count(2, 2 * (BYTES - LESS))
    );
    assert_eq!(entry(&p, "Ingress.keys", None), count(1, BYTES - LESS));
}

#[test]
fn adjusted_meters_subtract_bytes() {
    let mut p = compiled("tofino_counts");
    let meter = p.program().info().meter("Ingress.rates").expect("a meter");
    let burst = BYTES - LESS;
    let config = MeterConfig {
        cir: 1,
        cburst: burst,
        pir: 1,
        pburst: burst,
        eburst: 0,
    };
    p.set_meter(meter, 0, Some(config)).expect("valid rates");
    let frame = [0; BYTES as usize - 4];
    let sent: Vec<usize> = (0..2)
        .map(|_| through(&mut p, 7, &frame, 0).len())
        .collect();
    assert_eq!(sent, [1, 0], "the burst is one adjusted packet");
}

#[test]
fn true_egress_accounting_counts_what_leaves() {
    let mut p = compiled("tofino_counts");
    insert(&mut p, "Egress", "count", 1);
    for key in [1, 2, 3, 1] {
        send(&mut p, key);
    }
    assert_eq!(cell(&p, "Egress.leaving", 1), count(2, 2 * (BYTES - LESS)));
    assert_eq!(
        entry(&p, "Egress.keys", Some(1)),
        count(2, 2 * (BYTES - LESS))
    );
    // A dropped packet has the length with which it entered egress.
    assert_eq!(cell(&p, "Egress.leaving", 3), count(1, BYTES));
    assert_eq!(entry(&p, "Egress.keys", None), count(2, 2 * BYTES - LESS));
}
