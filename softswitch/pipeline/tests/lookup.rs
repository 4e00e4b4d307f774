// SPDX-License-Identifier: Apache-2.0
//! Lookups of a key without a packet.

use softswitch_pipeline::{
    ActionCall, CounterValue, Entry, EntryAction, EntryKey, MatchField, Options, Pipeline, Program,
    StateError, TableId, Value,
};

fn router() -> Pipeline {
    let program = Program::load(include_str!("programs/router.json")).expect("the program");
    Pipeline::new(program, Options::default())
}

fn insert(p: &mut Pipeline, table: TableId, field: MatchField, action: &str, args: &[u64]) {
    let info = &p.program().info().tables[table.index()];
    let action = info.action(action).expect("the action");
    let args = args.iter().map(|&a| Value::from(a)).collect();
    let key = EntryKey {
        fields: vec![field],
        priority: 0,
    };
    let action = EntryAction::Direct(ActionCall { action, args });
    let entry = Entry {
        key,
        action,
        idle_timeout: 0,
    };
    p.insert_entry(table, entry, 0).expect("a new entry");
}

#[test]
fn lookup_returns_longest_prefix() {
    let mut p = router();
    let routes = p.program().info().table("I.routes").expect("a table");
    for len in [8, 24, 16] {
        let value = Value::from(0x0a00_0000u32);
        let prefix = MatchField::Lpm {
            value,
            prefix_len: len,
        };
        insert(&mut p, routes, prefix, "I.set_next_hop", &[len.into()]);
    }
    let hit = |address: u32| {
        let key = p.lookup_key(routes, &[address.into()]).expect("a key");
        p.hit(&key)
    };
    let positions = [0x0a00_0001, 0x0a00_0101, 0x0a01_0000, 0x0b00_0000].map(hit);
    assert_eq!(positions, [Some(1), Some(2), Some(0), None]);
}

#[test]
fn lookup_does_not_count() {
    let mut p = router();
    let hops = p.program().info().table("I.next_hops").expect("a table");
    let field = MatchField::Exact(7u64.into());
    insert(&mut p, hops, field, "I.forward", &[1, 2, 3]);
    let key = p.lookup_key(hops, &[7u64.into()]).expect("a key");
    assert_eq!(p.hit(&key), Some(0));
    let entries = p.entries(hops).expect("the table");
    assert_eq!(entries[0].counter, Some(CounterValue::default()));
}

#[test]
fn lookup_key_checks_fields() {
    let p = router();
    let hops = p.program().info().table("I.next_hops").expect("a table");
    let refused = |values: &[Value]| p.lookup_key(hops, values).expect_err("a wrong key");
    assert!(matches!(refused(&[]), StateError::BadKey { .. }));
    assert!(matches!(
        refused(&[0x10000u64.into()]),
        StateError::TooWide { .. }
    ));
}
