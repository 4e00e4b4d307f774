// SPDX-License-Identifier: Apache-2.0
//! The control plane: valid calls, refused calls and their errors. Refused calls change nothing.

mod common;

use std::collections::BTreeSet;

use common::{Command, Harness, key, ternary};
use softswitch_pipeline::{
    ActionCall, ActionId, CloneSession, CounterValue, Entry, EntryAction, Group, GroupMember,
    MatchField, MeterConfig, ProfileId, Program, Replica, StateError, TableId, Value,
    WeightedAction,
};

fn wide_entry(h: &Harness, wide: u128, prefix_len: u32, arg: u128) -> Entry {
    let fields = vec![
        MatchField::Lpm {
            value: wide.into(),
            prefix_len,
        },
        MatchField::Exact(Value::from(1u64)),
    ];
    let action = h.call("I.wide_routes", "I.set_wide", &[wide, arg]);
    Entry {
        key: key(fields, 0),
        action,
        idle_timeout: 0,
    }
}

#[test]
fn longest_prefix_of_128_bits_wins() {
    let mut h = Harness::new();
    let t = h.info.table("I.wide_routes").unwrap();
    let net = 0x2001_0db8u128 << 96;
    for (wide, len, arg) in [
        (0, 0, 1),
        (net, 32, 2),
        (net | 1 << 64, 64, 3),
        (net | 1 << 64 | 5, 128, 4),
    ] {
        let e = wide_entry(&h, wide, len, arg);
        h.pipeline.insert_entry(t, e, 0).unwrap();
    }
    let mut arg = |wide| {
        h.run(Command {
            wide,
            ..Command::op(99)
        })
        .arg
    };
    assert_eq!(
        [
            arg(7),
            arg(net | 9),
            arg(net | 1 << 64 | 6),
            arg(net | 1 << 64 | 5)
        ],
        [1, 2, 3, 4]
    );
}

#[test]
fn entries_read_back_as_written() {
    let mut h = Harness::new();
    let t = h.info.table("I.wide_routes").unwrap();
    let e = Entry {
        idle_timeout: 5,
        ..wide_entry(&h, 0xffu128 << 120, 8, 9)
    };
    h.pipeline.insert_entry(t, e.clone(), 100).unwrap();
    let state = h.pipeline.entry(t, &e.key).unwrap();
    assert_eq!(
        (state.entry, state.last_hit, state.counter),
        (e.clone(), 100, None)
    );
    let m = Entry {
        action: h.call("I.wide_routes", "I.set_wide", &[1, 2]),
        ..e.clone()
    };
    h.pipeline.modify_entry(t, m.clone(), 200).unwrap();
    assert_eq!(h.pipeline.entries(t).unwrap()[0].entry, m);
    h.pipeline.delete_entry(t, &e.key).unwrap();
    assert_eq!(h.pipeline.entry_count(t).unwrap(), 0);
    assert!(matches!(
        h.pipeline.delete_entry(t, &e.key),
        Err(StateError::NotFound { .. })
    ));
    assert!(matches!(
        h.pipeline.modify_entry(t, m, 0),
        Err(StateError::NotFound { .. })
    ));
}

#[test]
fn pages_return_every_entry_once() {
    let mut h = Harness::new();
    let t = h.info.table("I.wide_routes").unwrap();
    for i in 0..100u128 {
        let e = wide_entry(&h, i, 128, 1);
        h.pipeline.insert_entry(t, e, 0).unwrap();
    }
    for i in (0..100u128).step_by(3) {
        let k = wide_entry(&h, i, 128, 1).key;
        h.pipeline.delete_entry(t, &k).unwrap();
    }
    let (mut seen, mut from) = (Vec::new(), Some(0));
    while let Some(at) = from {
        let (page, next) = h.pipeline.entries_page(t, at, 7).unwrap();
        assert!(page.len() <= 7);
        seen.extend(page);
        from = next;
    }
    assert_eq!(seen.len(), 66);
    assert_eq!(seen, h.pipeline.entries(t).unwrap());
}

#[test]
fn refused_entry_leaves_table_unchanged() {
    let mut h = Harness::new();
    let t = h.info.table("I.wide_routes").unwrap();
    let good = wide_entry(&h, 1, 128, 1);
    h.pipeline.insert_entry(t, good.clone(), 0).unwrap();
    let insert = |h: &mut Harness, e: Entry| h.pipeline.insert_entry(t, e, 0).unwrap_err();
    let with_fields = |fields| Entry {
        key: key(fields, 0),
        ..good.clone()
    };
    assert!(matches!(
        insert(&mut h, good.clone()),
        StateError::AlreadyExists { .. }
    ));
    let one = || MatchField::Exact(Value::from(1u64));
    let lpm = |value: u128, prefix_len| MatchField::Lpm {
        value: value.into(),
        prefix_len,
    };
    assert!(matches!(
        insert(&mut h, with_fields(vec![one()])),
        StateError::BadKey { .. }
    ));
    assert!(matches!(
        insert(&mut h, with_fields(vec![one(), one()])),
        StateError::BadKey { .. }
    ));
    assert!(matches!(
        insert(&mut h, with_fields(vec![lpm(1, 64), one()])),
        StateError::BadKey { .. }
    ));
    assert!(matches!(
        insert(&mut h, with_fields(vec![lpm(0, 129), one()])),
        StateError::BadKey { .. }
    ));
    let two = MatchField::Exact(Value::from(2u64));
    assert!(matches!(
        insert(&mut h, with_fields(vec![lpm(0, 0), two])),
        StateError::TooWide { .. }
    ));
    let e = Entry {
        key: key(good.key.fields.clone(), 1),
        ..good.clone()
    };
    assert!(matches!(insert(&mut h, e), StateError::BadKey { .. }));
    let other = wide_entry(&h, 2, 128, 1);
    let act = |action| Entry {
        action,
        ..other.clone()
    };
    let call = |action, args| EntryAction::Direct(ActionCall { action, args });
    assert!(matches!(
        insert(&mut h, act(call(ActionId(9999), vec![]))),
        StateError::BadAction { .. }
    ));
    let forward = h.action("I.fixed", "I.forward", &[1]);
    assert!(matches!(
        insert(&mut h, act(EntryAction::Direct(forward))),
        StateError::BadAction { .. }
    ));
    let set_wide = h.action("I.wide_routes", "I.set_wide", &[1, 1]).action;
    let short = call(set_wide, vec![Value::from(1u64)]);
    assert!(matches!(
        insert(&mut h, act(short)),
        StateError::BadAction { .. }
    ));
    let wide = call(set_wide, vec![Value::from(1u64), Value::from(256u64)]);
    assert!(matches!(
        insert(&mut h, act(wide)),
        StateError::TooWide { .. }
    ));
    assert!(matches!(
        insert(&mut h, act(EntryAction::Member(1))),
        StateError::BadAction { .. }
    ));
    let unknown = h.pipeline.insert_entry(TableId(9999), good.clone(), 0);
    assert!(matches!(unknown, Err(StateError::NoSuchObject { .. })));
    assert_eq!(h.pipeline.entries(t).unwrap().len(), 1);
    assert_eq!(h.pipeline.entries(t).unwrap()[0].entry, good);
}

#[test]
fn table_refuses_entries_beyond_its_size() {
    let mut h = Harness::new();
    let t = h.info.table("I.wide_routes").unwrap();
    let size = h.info.tables[t.index()].size;
    for i in 0..size as u128 {
        let e = wide_entry(&h, i, 128, 1);
        h.pipeline.insert_entry(t, e, 0).unwrap();
    }
    let e = wide_entry(&h, 1 << 100, 128, 1);
    let full = h.pipeline.insert_entry(t, e.clone(), 0).unwrap_err();
    assert_eq!(
        full,
        StateError::Full {
            what: "table I.wide_routes".to_owned(),
            size
        }
    );
    let k = wide_entry(&h, 3, 128, 1).key;
    h.pipeline.delete_entry(t, &k).unwrap();
    h.pipeline.insert_entry(t, e, 0).unwrap();
}

#[test]
fn constant_entries_and_defaults_are_read_only() {
    let mut h = Harness::new();
    let t = h.info.table("I.fixed").unwrap();
    let entries = h.pipeline.entries(t).unwrap();
    assert_eq!(
        entries
            .iter()
            .map(|e| e.entry.key.priority)
            .collect::<Vec<_>>(),
        [2, 1]
    );
    let e = entries[0].entry.clone();
    assert!(matches!(
        h.pipeline.insert_entry(t, e.clone(), 0),
        Err(StateError::Constant { .. })
    ));
    assert!(matches!(
        h.pipeline.modify_entry(t, e.clone(), 0),
        Err(StateError::Constant { .. })
    ));
    assert!(matches!(
        h.pipeline.delete_entry(t, &e.key),
        Err(StateError::Constant { .. })
    ));
    // Its default action is not constant.
    let action = h.call("I.fixed", "I.forward", &[6]);
    h.pipeline
        .set_default_action(t, Some(action.clone()))
        .unwrap();
    assert_eq!(h.pipeline.default_action(t).unwrap(), Some(action));
    assert_eq!(h.send(&Command::op(0).frame())[0].0, 6);
    h.pipeline.set_default_action(t, None).unwrap();
    assert_eq!(h.send(&Command::op(0).frame())[0].0, 1);
}

#[test]
fn idle_entry_is_reported_once_per_time_out() {
    let mut h = Harness::new();
    let t = h.info.table("I.wide_routes").unwrap();
    let e = Entry {
        idle_timeout: 100,
        ..wide_entry(&h, 7, 128, 1)
    };
    h.pipeline.insert_entry(t, e.clone(), 1000).unwrap();
    assert!(h.pipeline.poll_idle(1099).is_empty());
    let idle = h.pipeline.poll_idle(1100).remove(0);
    assert_eq!((idle.table, &idle.key), (t, &e.key));
    assert_eq!(h.pipeline.entry_of_handle(t, idle.handle).unwrap().entry, e);
    assert!(!idle.is_repeated);
    assert!(h.pipeline.poll_idle(1101).is_empty());
    assert!(h.pipeline.poll_idle(1300).remove(0).is_repeated);
    h.send_at(
        &Command {
            wide: 7,
            ..Command::op(99)
        }
        .frame(),
        1350,
    );
    assert!(h.pipeline.poll_idle(1420).is_empty());
    assert_eq!(h.pipeline.entry(t, &e.key).unwrap().last_hit, 1350);
    assert!(!h.pipeline.poll_idle(1450).remove(0).is_repeated);
    // Tables without the property refuse idle time-outs.
    let acl = h.info.table("I.acl").unwrap();
    let fields = vec![
        ternary(0, 0),
        MatchField::Range {
            low: 0u64.into(),
            high: 0xffffu64.into(),
        },
        MatchField::Optional(None),
    ];
    let action = h.call("I.acl", "NoAction", &[]);
    let e = Entry {
        key: key(fields, 1),
        action,
        idle_timeout: 5,
    };
    assert!(matches!(
        h.pipeline.insert_entry(acl, e, 0),
        Err(StateError::Invalid { .. })
    ));
}

fn ports_entry(action: EntryAction) -> Entry {
    let fields = vec![MatchField::Exact(0x0200_0000_0002u64.into())];
    Entry {
        key: key(fields, 0),
        action,
        idle_timeout: 0,
    }
}

fn member(id: u32, weight: u32, watch_port: Option<u32>) -> GroupMember {
    GroupMember {
        member: id,
        weight,
        watch_port,
    }
}

/// Counts packets from many sources by egress port.
fn spread(h: &mut Harness) -> std::collections::BTreeMap<u32, usize> {
    let mut ports = std::collections::BTreeMap::new();
    for i in 0..1000u32 {
        let mut frame = Command::op(99).frame();
        frame[8..12].copy_from_slice(&i.wrapping_mul(0x9e37_79b1).to_be_bytes());
        for (port, _) in h.send(&frame) {
            *ports.entry(port).or_insert(0) += 1;
        }
    }
    ports
}

#[test]
fn selector_spreads_by_weight_and_skips_ports_that_are_down() {
    let mut h = Harness::new();
    let (t, p) = (h.info.table("I.ports").unwrap(), ProfileId(0));
    for id in 1..=3 {
        let call = h.action("I.ports", "I.forward", &[id + 100]);
        h.pipeline.insert_member(p, id as u32, call).unwrap();
    }
    let members = vec![member(1, 1, Some(101)), member(2, 3, Some(102))];
    let group = Group {
        members,
        max_size: 8,
    };
    h.pipeline.insert_group(p, 1, group.clone()).unwrap();
    assert_eq!(h.pipeline.group(p, 1).unwrap(), group);
    h.pipeline
        .insert_entry(t, ports_entry(EntryAction::Group(1)), 0)
        .unwrap();
    let ports = spread(&mut h);
    assert!(
        (180..320).contains(&ports[&101]) && (680..820).contains(&ports[&102]),
        "{ports:?}"
    );
    h.pipeline.set_port_up(102, false);
    assert_eq!(spread(&mut h), [(101, 1000)].into());
    h.pipeline.set_port_up(101, false);
    assert_eq!(
        spread(&mut h),
        [(1, 1000)].into(),
        "without a member that is up, the packet keeps its port"
    );
    h.pipeline.set_port_up(102, true);
    let forward = h.action("I.ports", "I.forward", &[33]);
    h.pipeline.modify_member(p, 2, forward).unwrap();
    assert_eq!(spread(&mut h), [(33, 1000)].into());
    // Referenced members and groups cannot be deleted.
    assert!(matches!(
        h.pipeline.delete_member(p, 2),
        Err(StateError::InUse { .. })
    ));
    assert!(matches!(
        h.pipeline.delete_group(p, 1),
        Err(StateError::InUse { .. })
    ));
    let bad = Group {
        members: vec![member(1, 1, None), member(9, 1, None)],
        max_size: 0,
    };
    assert!(matches!(
        h.pipeline.modify_group(p, 1, bad),
        Err(StateError::NotFound { .. })
    ));
    let bad = Group {
        members: vec![member(1, 9, None)],
        max_size: 8,
    };
    assert!(matches!(
        h.pipeline.modify_group(p, 1, bad),
        Err(StateError::Full { .. })
    ));
    assert_eq!(h.pipeline.group(p, 1).unwrap(), group);
    h.pipeline
        .modify_entry(t, ports_entry(EntryAction::Member(3)), 0)
        .unwrap();
    assert_eq!(spread(&mut h), [(103, 1000)].into());
    h.pipeline.delete_group(p, 1).unwrap();
    h.pipeline.delete_member(p, 2).unwrap();
    assert!(matches!(
        h.pipeline.delete_member(p, 3),
        Err(StateError::InUse { .. })
    ));
    assert_eq!(h.pipeline.members(p).unwrap().len(), 2);
}

#[test]
fn deleted_one_shot_action_set_frees_its_members() {
    let mut h = Harness::new();
    let (t, p) = (h.info.table("I.ports").unwrap(), ProfileId(0));
    let action = |h: &Harness, port| WeightedAction {
        call: h.action("I.ports", "I.forward", &[port]),
        weight: 1,
        watch_port: None,
    };
    let set = EntryAction::OneShot(vec![action(&h, 40), action(&h, 41)]);
    let e = ports_entry(set.clone());
    h.pipeline.insert_entry(t, e.clone(), 0).unwrap();
    assert_eq!(h.pipeline.entry(t, &e.key).unwrap().entry, e);
    assert_eq!(spread(&mut h).keys().copied().collect::<Vec<_>>(), [40, 41]);
    assert!(h.pipeline.members(p).unwrap().is_empty());
    let one = ports_entry(EntryAction::OneShot(vec![action(&h, 50)]));
    h.pipeline.modify_entry(t, one, 0).unwrap();
    assert_eq!(spread(&mut h).keys().copied().collect::<Vec<_>>(), [50]);
    h.pipeline.delete_entry(t, &e.key).unwrap();
    assert_eq!(spread(&mut h).keys().copied().collect::<Vec<_>>(), [1]);
}

#[test]
fn random_action_set_spreads_packets_of_one_flow_by_weight() {
    let mut h = Harness::new();
    let t = h.info.table("I.ports").unwrap();
    let action = |port, weight, watch_port| WeightedAction {
        call: h.action("I.ports", "I.forward", &[port]),
        weight,
        watch_port,
    };
    let set = vec![action(40, 1, None), action(41, 3, Some(9))];
    let e = ports_entry(EntryAction::RandomOneShot(set));
    h.pipeline.insert_entry(t, e.clone(), 0).unwrap();
    assert_eq!(h.pipeline.entry(t, &e.key).unwrap().entry, e);
    let frame = Command::op(99).frame();
    let count = |h: &mut Harness, port| {
        let sent = (0..1000).filter(|_| h.send(&frame)[0].0 == port);
        sent.count()
    };
    let rare = count(&mut h, 40);
    assert!((190..310).contains(&rare), "{rare} of 1000");
    h.pipeline.set_port_up(9, false);
    assert_eq!(count(&mut h, 40), 1000);
    h.pipeline.set_port_up(9, true);
    assert!(count(&mut h, 41) > 600);
}

#[test]
fn rewritten_one_shot_set_selects_the_same_members() {
    let mut h = Harness::new();
    let t = h.info.table("I.ports").unwrap();
    let action = |port| WeightedAction {
        call: h.action("I.ports", "I.forward", &[port]),
        weight: 1,
        watch_port: None,
    };
    let e = ports_entry(EntryAction::OneShot((40..45).map(action).collect()));
    let chosen = |h: &mut Harness| -> Vec<u32> {
        let frame = |i: u8| {
            let mut frame = Command::op(99).frame();
            frame[8] = i;
            frame
        };
        (0..50).map(|i| h.send(&frame(i))[0].0).collect()
    };
    h.pipeline.insert_entry(t, e.clone(), 0).unwrap();
    let before = chosen(&mut h);
    h.pipeline.delete_entry(t, &e.key).unwrap();
    h.pipeline.insert_entry(t, e, 0).unwrap();
    assert_eq!(chosen(&mut h), before);
    assert_eq!(before.into_iter().collect::<BTreeSet<_>>().len(), 5);
}

#[test]
fn arrays_check_index_and_width() {
    let mut h = Harness::new();
    let sums = h.info.register("I.sums").unwrap();
    h.pipeline
        .set_register(sums, 2, &Value::from(5u64))
        .unwrap();
    let wide = h.pipeline.set_register(sums, 2, &Value::from(1u64 << 32));
    assert!(matches!(wide, Err(StateError::TooWide { .. })));
    let beyond = h.pipeline.set_register(sums, 16, &Value::from(0u64));
    assert!(matches!(beyond, Err(StateError::IndexOutOfRange { .. })));
    assert_eq!(h.pipeline.register(sums, 2).unwrap(), Value::from(5u64));
    h.pipeline.reset_register(sums).unwrap();
    assert_eq!(h.pipeline.register(sums, 2).unwrap(), Value::from(0u64));
    let ops = h.info.counter("I.ops").unwrap();
    let value = CounterValue {
        packets: 3,
        bytes: 4,
    };
    h.pipeline.set_counter(ops, 7, value).unwrap();
    assert_eq!(h.pipeline.counter(ops, 7).unwrap(), value);
    assert!(h.pipeline.set_counter(ops, 8, value).is_err());
    let rate = h.info.meter("I.rate").unwrap();
    let config = MeterConfig {
        cir: 2,
        cburst: 1,
        pir: 1,
        pburst: 1,
        eburst: 0,
    };
    assert!(matches!(
        h.pipeline.set_meter(rate, 0, Some(config)),
        Err(StateError::Invalid { .. })
    ));
    assert_eq!(h.pipeline.meter(rate, 0).unwrap(), None);
}

#[test]
fn replication_checks_ids_and_replicas() {
    let mut h = Harness::new();
    let r = Replica {
        port: 1,
        instance: 1,
    };
    assert!(h.pipeline.insert_multicast_group(0, vec![]).is_err());
    assert!(h.pipeline.insert_multicast_group(1, vec![r, r]).is_err());
    h.pipeline.insert_multicast_group(1, vec![r]).unwrap();
    let again = h.pipeline.insert_multicast_group(1, vec![]);
    assert!(matches!(again, Err(StateError::AlreadyExists { .. })));
    assert_eq!(h.pipeline.multicast_groups(), [(1, vec![r])]);
    h.pipeline.delete_multicast_group(1).unwrap();
    assert!(matches!(
        h.pipeline.delete_multicast_group(1),
        Err(StateError::NotFound { .. })
    ));
    let session = CloneSession {
        replicas: vec![r],
        truncate_to: 0,
        class_of_service: 0,
    };
    assert!(
        h.pipeline
            .insert_clone_session(1 << 15, session.clone())
            .is_err()
    );
    let missing = h.pipeline.modify_clone_session(1, session.clone());
    assert!(matches!(missing, Err(StateError::NotFound { .. })));
    h.pipeline.insert_clone_session(1, session.clone()).unwrap();
    assert_eq!(h.pipeline.clone_sessions(), [(1, session)]);
}

#[test]
fn load_errors_name_the_json_path() {
    let text = include_str!("programs/everything.json");
    let error = |json: &str| Program::load(json).expect_err("refused").to_string();
    assert!(error("{").contains("not JSON"));
    assert!(error("[]").starts_with(".: expected an object"));
    let edit = |from: &str, to: &str| error(&text.replacen(from, to, 1));
    let e = edit("\"op\":\"mark_to_drop\"", "\"op\":\"explode\"");
    assert!(
        e.contains("primitives[") && e.contains("unknown primitive explode"),
        "{e}"
    );
    let e = edit("\"algo\":\"crc32\"", "\"algo\":\"md5\"");
    assert!(e.starts_with("calculations[") && e.contains("md5"), "{e}");
    let e = edit("\"init_table\":\"", "\"init_table\":\"x");
    assert!(e.starts_with("pipelines[0].init_table: no table"), "{e}");
}
