// SPDX-License-Identifier: Apache-2.0
//! Registers with initial values, and direct registers.

use serde_json::{Value as Json, json};
use softswitch_pipeline::{
    ActionCall, DirectRegisterId, Entry, EntryAction, EntryKey, FilterCell, FilterConfig,
    MatchField, Pipeline, RegisterId, TableId, Value,
};

use super::common::tna::{Tna, assign, call, field, number, object, packet};
use super::{forwarding, result};

fn array(name: &str) -> Json {
    json!({"type": "register_array", "value": name})
}

/// `to + from`
fn sum(to: (&str, &str), from: Json) -> Json {
    let sum = json!({"op": "+", "left": field(to.0, to.1), "right": from});
    json!({"type": "expression", "value": sum})
}

#[test]
fn register_starts_and_restarts_with_its_initial_value() {
    let register =
        json!({"name": "r", "id": 0, "bitwidth": 32, "size": 4, "initial_value": "0x64"});
    let y = ("hdr", "y");
    let cell = field("hdr", "arg");
    let mut p = forwarding()
        .and("/register_arrays", register)
        .ingress(vec![
            call(
                "register_read",
                vec![field(y.0, y.1), array("r"), cell.clone()],
            ),
            assign(y, sum(y, number(1))),
            call("register_write", vec![array("r"), cell, field(y.0, y.1)]),
        ])
        .pipeline();
    let mut read = |arg| result(&mut p, &packet(0, arg, 3, 0));
    assert_eq!([read(1), read(1), read(2)], [101, 102, 101]);
    p.reset_register(RegisterId(0)).unwrap();
    assert_eq!(p.register(RegisterId(0), 1).unwrap(), Value::from(100u32));
    p.reset_state();
    assert_eq!(result(&mut p, &packet(0, 1, 3, 0)), 101);
}

/// Table `t` matches `hdr.arg`; its actions count in the direct register `d`, which begins at 7.
fn direct(width: u32) -> Tna {
    let count = vec![
        call(
            "_DirectRegister_read",
            vec![field("meta", "wide"), array("d")],
        ),
        assign(("meta", "wide"), sum(("meta", "wide"), number(1))),
        call(
            "_DirectRegister_write",
            vec![array("d"), field("meta", "wide")],
        ),
        assign(("hdr", "y"), field("meta", "wide")),
    ];
    let register = json!({
        "name": "d", "id": 0, "bitwidth": width, "size": 0, "is_direct": true, "binding": "t",
        "initial_value": "0x7",
    });
    let key =
        json!([{"match_type": "exact", "name": "arg", "target": ["hdr", "arg"], "mask": null}]);
    let table = json!({
        "name": "t", "id": 9, "key": key, "type": "simple", "max_size": 8, "action_ids": [2],
        "actions": ["count"], "base_default_next": null, "next_tables": {"count": null},
        "default_entry": {"action_id": 2, "action_const": false, "action_data": [], "action_entry_const": false},
    });
    forwarding()
        .and("/register_arrays", register)
        .and(
            "/actions",
            json!({"name": "count", "id": 2, "runtime_data": [], "primitives": count}),
        )
        .and("/pipelines/0/tables", table)
        .with("/pipelines/0/action_calls/0/next_node", json!("t"))
}

fn key(arg: u8) -> EntryKey {
    EntryKey {
        fields: vec![MatchField::Exact(u32::from(arg).into())],
        priority: 0,
    }
}

fn insert(p: &mut Pipeline, arg: u8) {
    let action = p.program().info().action("count").expect("it has it");
    let entry = Entry {
        key: key(arg),
        action: EntryAction::Direct(ActionCall {
            action,
            args: Vec::new(),
        }),
        idle_timeout: 0,
    };
    p.insert_entry(TableId(0), entry, 0).unwrap();
}

#[test]
fn direct_register_belongs_to_the_entry() {
    for width in [32, 100] {
        let mut p = direct(width).pipeline();
        insert(&mut p, 1);
        insert(&mut p, 2);
        let mut read = |arg| result(&mut p, &packet(0, arg, 3, 0));
        assert_eq!([read(1), read(1), read(2)], [8, 9, 8]);
        // Misses do not keep a value.
        assert_eq!([read(5), read(5)], [8, 8]);
        let register = DirectRegisterId(0);
        assert_eq!(
            p.direct_register(register, &key(1)).unwrap(),
            Value::from(9u32)
        );
        p.set_direct_register(register, &key(2), &Value::from(50u32))
            .unwrap();
        assert_eq!(result(&mut p, &packet(0, 2, 3, 0)), 51);
        p.delete_entry(TableId(0), &key(1)).unwrap();
        insert(&mut p, 3);
        assert_eq!(result(&mut p, &packet(0, 3, 3, 0)), 8, "a new entry");
    }
}

#[test]
fn direct_filter_belongs_to_the_entry() {
    let parameters = vec![object("f"), field("hdr", "y"), field("hdr", "y")];
    let mut p = direct(32)
        .object("f", "DirectLpf", &[("binding", json!("t"))])
        .with(
            "/actions/2/primitives",
            json!([call("_DirectLpf_execute", parameters)]),
        )
        .pipeline();
    insert(&mut p, 1);
    insert(&mut p, 2);
    let filter = p.program().info().filter("f").expect("it has it");
    let config = FilterConfig {
        is_rate: true,
        gain_time: 0.0,
        decay_time: 1000.0,
        scale_down: 0,
        drop_curve: None,
    };
    p.set_filter(filter, FilterCell::Entry(&key(1)), Some(config))
        .unwrap();
    assert_eq!(
        p.filter(filter, FilterCell::Entry(&key(1))).unwrap(),
        Some(config)
    );
    p.set_filter(filter, FilterCell::Index(0), Some(config))
        .unwrap_err();
    let mut sum = |arg| result(&mut p, &packet(0, arg, 3, 10));
    assert_eq!(
        [sum(1), sum(1), sum(2), sum(2), sum(5)],
        [10, 20, 10, 10, 10]
    );
}
