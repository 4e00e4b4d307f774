// SPDX-License-Identifier: Apache-2.0
//! Traces of known packets, as text and as JSON.
//!
//! `UPDATE=1 cargo test -p softswitch-pipeline --test trace` rewrites the expected files.

mod common;

use std::collections::BTreeSet;
use std::path::PathBuf;

use common::{Command, Harness, key};
use softswitch_pipeline::{
    ActionCall, CloneSession, Entry, EntryAction, Group, GroupMember, MatchField, Options, Outcome,
    Paragraphs, Pipeline, ProfileId, Program, Replica, Step, Trace,
};

/// Returns a router with one route, via next hop 1 and port 2.
fn router() -> Pipeline {
    let program = Program::load(include_str!("programs/router.json")).expect("the program");
    let mut pipeline = Pipeline::new(program, Options::default());
    let insert = |p: &mut Pipeline, table: &str, field, action: &str, args: &[u64]| {
        let info = p.program().info();
        let table = info.table(table).unwrap();
        let action = info.tables[table.index()].action(action).unwrap();
        let args = args.iter().map(|&a| a.into()).collect();
        let call = ActionCall { action, args };
        let entry = Entry {
            key: key(vec![field], 0),
            action: EntryAction::Direct(call),
            idle_timeout: 0,
        };
        p.insert_entry(table, entry, 0).unwrap();
    };
    let route = MatchField::Lpm {
        value: 0x0a00_0000u32.into(),
        prefix_len: 8,
    };
    insert(&mut pipeline, "I.routes", route, "I.set_next_hop", &[1]);
    let hop = MatchField::Exact(1u32.into());
    let args = [2, 0x0200_0000_0001, 0x0200_0000_0002];
    insert(&mut pipeline, "I.next_hops", hop, "I.forward", &args);
    pipeline
}

/// An IPv4 packet from 192.0.2.1 to FIRST.1.2.3 with 6 bytes of payload.
fn ipv4(first: u8) -> Vec<u8> {
    let mut header = vec![
        0x45, 0, 0, 26, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, first, 1, 2, 3,
    ];
    let sum: u32 = header
        .chunks(2)
        .map(|w| u32::from(w[0]) << 8 | u32::from(w[1]))
        .sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    [common::ethernet(0x800), header, b"hello!".to_vec()].concat()
}

fn send(p: &mut Pipeline, frame: &[u8], now: u64) -> usize {
    let mut queue = Vec::new();
    p.ingress(1, frame, now, &mut queue);
    let mut out = Default::default();
    let count = queue.len();
    for d in queue {
        p.egress(d, Default::default(), now + 2_000, &mut out);
    }
    count
}

fn traces() -> Vec<Trace> {
    let mut p = router();
    p.set_tracing(true);
    assert_eq!(send(&mut p, &ipv4(10), 1_500_000), 1);
    assert_eq!(send(&mut p, &ipv4(11), 2_500_000), 0);
    let mut damaged = ipv4(10);
    damaged[22] = 63;
    assert_eq!(send(&mut p, &damaged, 3_500_000), 0);
    assert_eq!(send(&mut p, &damaged[..20], 4_500_000), 0);
    p.take_trace()
}

fn check(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/traces")
        .join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{}", path.display());
}

fn text(traces: &[Trace]) -> String {
    let (mut text, mut paragraphs) = (String::new(), Paragraphs::default());
    traces.iter().for_each(|t| paragraphs.push(&mut text, t));
    text
}

#[test]
fn text_of_routed_dropped_damaged_and_short_packets() {
    check("router.txt", &text(&traces()));
}

#[test]
fn json_of_routed_dropped_damaged_and_short_packets() {
    let line = |t: &Trace| serde_json::to_string(t).unwrap() + "\n";
    let text: Vec<String> = traces().iter().map(line).collect();
    check("router.jsonl", &text.concat());
}

/// Covers the operations of `everything.p4` that call externs, add headers or make copies.
#[test]
fn text_of_externs_and_copies() {
    let mut h = Harness::new();
    let replica = |port, instance| Replica { port, instance };
    let copies = vec![replica(4, 1), replica(5, 2)];
    h.pipeline
        .insert_multicast_group(9, copies.clone())
        .unwrap();
    let session = CloneSession {
        replicas: copies,
        truncate_to: 60,
        class_of_service: 0,
    };
    h.pipeline.insert_clone_session(9, session).unwrap();
    h.pipeline.set_tracing(true);
    for op in [5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 20, 22] {
        let arg = if op == 16 { 0 } else { 9 };
        h.send(
            &Command {
                arg,
                ..Command::op(op)
            }
            .frame(),
        );
    }
    h.send(
        &Command {
            arg: 1,
            ..Command::op(21)
        }
        .frame(),
    );
    check("everything.txt", &text(&h.pipeline.take_trace()));
}

#[test]
fn table_step_contains_selected_member() {
    let mut h = Harness::new();
    let (t, p) = (h.info.table("I.ports").unwrap(), ProfileId(0));
    for id in [21, 22] {
        let call = h.action("I.ports", "I.forward", &[u128::from(id) + 100]);
        h.pipeline.insert_member(p, id, call).unwrap();
    }
    let member = |member| GroupMember {
        member,
        weight: 1,
        watch_port: None,
    };
    let group = Group {
        members: vec![member(21), member(22)],
        max_size: 0,
    };
    h.pipeline.insert_group(p, 1, group).unwrap();
    let entry = Entry {
        key: key(vec![MatchField::Exact(0x0200_0000_0002u64.into())], 0),
        action: EntryAction::Group(1),
        idle_timeout: 0,
    };
    h.pipeline.insert_entry(t, entry, 0).unwrap();
    h.pipeline.set_tracing(true);
    let mut chosen = BTreeSet::new();
    for i in 0..20 {
        let mut frame = Command::op(99).frame();
        frame[8] = i;
        let port = h.send(&frame)[0].0;
        let traces = h.pipeline.take_trace();
        let member = traces.iter().flat_map(|t| &t.steps).find_map(|s| match s {
            Step::Table { table, member, .. } if table == "I.ports" => *member,
            _ => None,
        });
        assert_eq!(member.map(|m| m + 100), Some(port));
        assert!(text(&traces).contains(&format!("\n    member {}\n", port - 100)));
        chosen.insert(port);
    }
    assert_eq!(chosen.len(), 2);
}

#[test]
fn disabled_tracing_records_nothing() {
    let mut p = router();
    send(&mut p, &ipv4(10), 0);
    assert!(p.take_trace().is_empty());
    p.set_tracing(true);
    send(&mut p, &ipv4(10), 0);
    assert_eq!(p.take_trace().len(), 2);
    assert!(p.take_trace().is_empty());
    p.set_tracing(false);
    send(&mut p, &ipv4(10), 0);
    assert!(p.take_trace().is_empty());
}

#[test]
fn tail_drop_is_recorded() {
    let mut p = router();
    p.set_tracing(true);
    let mut queue = Vec::new();
    p.ingress(1, &ipv4(10), 7, &mut queue);
    p.recycle(queue.remove(0));
    let traces = p.take_trace();
    assert_eq!(traces.len(), 2);
    let dropped = &traces[1];
    assert_eq!((dropped.packet, dropped.port, dropped.time_ns), (1, 2, 7));
    assert_eq!(dropped.outcome, Outcome::TailDrop);
}

#[test]
fn tracing_does_not_change_packets() {
    let (mut plain, mut traced) = (Harness::new(), Harness::new());
    traced.pipeline.set_tracing(true);
    for op in 0..=255 {
        let command = Command {
            arg: op / 3,
            y: 7,
            z: 0x1234_5678,
            wide: 0x0102_0304_0506_0708_090a,
            q: 5,
            ..Command::op(op)
        };
        let frame = command.frame();
        assert_eq!(plain.send(&frame), traced.send(&frame), "op {op}");
        assert!(!traced.pipeline.take_trace().is_empty());
    }
}
