// SPDX-License-Identifier: Apache-2.0
//! PSA: the paths around the traffic manager, the metadata on each of them, and the externs.

mod common;

use std::path::Path;

use common::{compile, ethernet, options, through};
use softswitch_pipeline::{
    ActionCall, CloneSession, CounterValue, Entry, EntryAction, EntryKey, MatchField, MeterConfig,
    Options, Pipeline, Replica,
};

const COMMAND: u16 = 0x9003;
/// The packet paths as the program numbers them in the trail.
const UNICAST: u8 = 1;
const MULTICAST: u8 = 2;
const CLONE_I2E: u8 = 3;
const CLONE_E2E: u8 = 4;

fn pipeline() -> Pipeline {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/portable.p4");
    let program = compile(&path, path.parent().expect("a folder")).expect("valid program");
    let options = Options {
        max_resubmits: 5,
        ..options()
    };
    Pipeline::new(program, options)
}

/// A packet as the program sends it: the command, and what egress saw.
#[derive(Debug, PartialEq, Eq)]
struct Sent {
    port: u32,
    op: u8,
    value: u16,
    path: u8,
    class_of_service: u8,
    instance: u16,
    handed: u16,
}

fn command(op: u8, arg: u8, value: u16) -> Vec<u8> {
    let [high, low] = value.to_be_bytes();
    [&ethernet(COMMAND)[..], &[op, arg, high, low, 0, 0]].concat()
}

fn send(p: &mut Pipeline, op: u8, arg: u8, value: u16) -> Vec<Sent> {
    let sent = through(p, 7, &command(op, arg, value), 0);
    sent.into_iter()
        .map(|(port, frame)| parse(port, &frame))
        .collect()
}

fn parse(port: u32, frame: &[u8]) -> Sent {
    let f = &frame[14..];
    assert_eq!(f.len(), 6 + 10, "{frame:02x?}");
    let word = |at: usize| u16::from_be_bytes([f[at], f[at + 1]]);
    assert_eq!(u32::from_be_bytes([f[10], f[11], f[12], f[13]]), port);
    Sent {
        port,
        op: f[0],
        value: word(2),
        path: f[6],
        class_of_service: f[7],
        instance: word(8),
        handed: word(14),
    }
}

/// A unicast packet with the metadata that ingress hands to egress.
fn unicast(port: u32, op: u8, value: u16) -> Sent {
    Sent {
        port,
        op,
        value,
        path: UNICAST,
        class_of_service: 0,
        instance: 0,
        handed: 7,
    }
}

fn session(replicas: &[(u32, u16)], truncate_to: u32) -> CloneSession {
    CloneSession {
        replicas: replicas
            .iter()
            .map(|&(port, instance)| Replica { port, instance })
            .collect(),
        truncate_to,
        class_of_service: 5,
    }
}

/// The value of a command that egress gets as one packet to port 1.
fn value(p: &mut Pipeline, op: u8, arg: u8, value: u16) -> u16 {
    let sent = send(p, op, arg, value);
    assert_eq!(sent, [unicast(1, op, sent[0].value)]);
    sent[0].value
}

#[test]
fn packet_is_dropped_unless_ingress_decides_otherwise() {
    let mut p = pipeline();
    assert_eq!(send(&mut p, 0, 4, 9), [unicast(4, 0, 9)]);
    assert_eq!(send(&mut p, 1, 0, 0), []);
    // Too short: ingress exits without a decision.
    assert_eq!(through(&mut p, 7, &ethernet(COMMAND), 0), []);
}

#[test]
fn control_sees_parser_errors() {
    let mut p = pipeline();
    let frame = ethernet(0x1234);
    assert_eq!(through(&mut p, 7, &frame, 0), [(9, frame)]);
}

#[test]
fn multicast_copies_have_their_instances() {
    let mut p = pipeline();
    let replicas = session(&[(3, 30), (4, 40)], 0).replicas;
    p.insert_multicast_group(6, replicas).unwrap();
    let copy = |port, instance| Sent {
        path: MULTICAST,
        instance,
        ..unicast(port, 2, 0)
    };
    assert_eq!(send(&mut p, 2, 6, 0), [copy(3, 30), copy(4, 40)]);
    assert_eq!(send(&mut p, 2, 5, 0), [], "an unknown group");
}

#[test]
fn clone_from_ingress_is_the_received_packet_also_of_a_dropped_one() {
    let mut p = pipeline();
    p.insert_clone_session(2, session(&[(5, 50), (6, 60)], 0))
        .unwrap();
    let clone = |op, port, instance| Sent {
        path: CLONE_I2E,
        class_of_service: 5,
        instance,
        handed: 0x1234,
        ..unicast(port, op, 77)
    };
    let clones = |op| [clone(op, 5, 50), clone(op, 6, 60)];
    let sent = send(&mut p, 3, 2, 77);
    assert_eq!(sent[..2], clones(3));
    assert_eq!(sent[2..], [unicast(1, 3, 77)]);
    assert_eq!(send(&mut p, 16, 2, 77), clones(16));
    assert_eq!(
        send(&mut p, 3, 1, 77),
        [unicast(1, 3, 77)],
        "an unknown session"
    );
}

#[test]
fn clone_from_egress_is_the_sent_packet_also_of_a_dropped_one() {
    let mut p = pipeline();
    p.insert_clone_session(2, session(&[(5, 50)], 0)).unwrap();
    for (op, original) in [(6, vec![unicast(1, 6, 77)]), (7, vec![])] {
        let mut sent = through(&mut p, 7, &command(op, 2, 77), 0);
        let (port, clone) = sent.pop().expect("a clone");
        // It has the original's trail, and its own in front of that.
        let (own, trail) = clone.split_at(14 + 6 + 10);
        let clone = Sent {
            path: CLONE_E2E,
            class_of_service: 5,
            instance: 50,
            handed: 0x5678,
            ..unicast(5, op, 77)
        };
        assert_eq!(parse(port, own), clone);
        assert_eq!(trail.len(), 10);
        let sent: Vec<Sent> = sent.iter().map(|(port, f)| parse(*port, f)).collect();
        assert_eq!(sent, original);
    }
}

#[test]
fn clone_session_truncates() {
    let mut p = pipeline();
    p.insert_clone_session(2, session(&[(5, 50)], 20)).unwrap();
    let long = [command(3, 2, 77), vec![0; 100]].concat();
    let sent = through(&mut p, 7, &long, 0);
    let lengths: Vec<usize> = sent.iter().map(|(_, f)| f.len()).collect();
    assert_eq!(lengths, [20 + 10, 120 + 10]);
}

#[test]
fn resubmitted_packet_is_the_received_one_with_handed_metadata() {
    let mut p = pipeline();
    assert_eq!(send(&mut p, 4, 3, 500), [unicast(1, 4, 3)]);
    assert_eq!(send(&mut p, 4, 6, 500), [], "too many rounds");
}

#[test]
fn recirculated_packet_is_the_sent_one_with_handed_metadata() {
    let mut p = pipeline();
    assert_eq!(send(&mut p, 5, 3, 0), [unicast(1, 5, 4)]);
}

#[test]
fn digest_of_a_deparser_is_kept() {
    let mut p = pipeline();
    assert_eq!(send(&mut p, 8, 0, 0x1234), [unicast(1, 8, 0x1234)]);
    send(&mut p, 0, 0, 0);
    let digests = p.take_digests();
    assert_eq!(digests.len(), 1);
    assert_eq!(digests[0].fields, [8u32.into(), 0x1234u32.into()]);
    let name = &p.program().info().digests[digests[0].id.index()].name;
    assert_eq!(name, "IngressDeparserImpl.notes");
}

#[test]
fn internet_checksum_covers_the_command() {
    let mut p = pipeline();
    for value in [0u16, 1, 0x8000, 0xffff] {
        // Each packet begins a new sum.
        let (_, frame) = through(&mut p, 7, &command(0, 4, value), 0).remove(0);
        let words = frame[14..20].chunks(2);
        let sum: u32 = words.map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "{value:#x}");
    }
}

const METER: MeterConfig = MeterConfig {
    cir: 1,
    cburst: 1,
    pir: 2,
    pburst: 3,
    eburst: 0,
};

#[test]
fn meters_are_coloured_in_the_order_of_psa() {
    let mut p = pipeline();
    let meter = p
        .program()
        .info()
        .meter("IngressImpl.meter")
        .expect("the program has it");
    p.set_meter(meter, 3, Some(METER)).unwrap();
    // Green, yellow, red; the unconfigured cell is green.
    let colors: Vec<u16> = (0..4).map(|_| value(&mut p, 9, 3, 0)).collect();
    assert_eq!(colors, [0, 1, 1, 2]);
    assert_eq!(value(&mut p, 9, 2, 0), 0);
}

#[test]
fn coloured_packet_becomes_no_better() {
    let mut p = pipeline();
    let meter = p
        .program()
        .info()
        .meter("IngressImpl.meter")
        .expect("the program has it");
    assert_eq!(value(&mut p, 10, 3, 0), 1, "without configuration");
    p.set_meter(meter, 3, Some(METER)).unwrap();
    // Yellow three times, then red.
    let yellow: Vec<u16> = (0..4).map(|_| value(&mut p, 10, 3, 0)).collect();
    assert_eq!(yellow, [1, 1, 1, 0]);
}

#[test]
fn direct_counter_and_direct_meter_belong_to_the_table() {
    let mut p = pipeline();
    let info = p.program().info();
    let table = info
        .table("IngressImpl.forward")
        .expect("the program has it");
    let action = info.tables[table.index()]
        .action("IngressImpl.send")
        .expect("it has it");
    let key = EntryKey {
        fields: vec![MatchField::Exact(20u32.into())],
        priority: 0,
    };
    let entry = Entry {
        key: key.clone(),
        action: EntryAction::Direct(ActionCall {
            action,
            args: vec![8u32.into(), 6u32.into()],
        }),
        idle_timeout: 0,
    };
    p.insert_entry(table, entry, 0).unwrap();
    let sent = Sent {
        class_of_service: 6,
        ..unicast(8, 20, 0)
    };
    assert_eq!(send(&mut p, 20, 0, 0), [sent]);
    p.set_direct_meter(table, Some(&key), Some(METER)).unwrap();
    let sent: Vec<usize> = (0..5).map(|_| send(&mut p, 20, 0, 0).len()).collect();
    assert_eq!(sent, [1, 1, 1, 0, 0], "red packets are dropped");
    let bytes = 6 * command(20, 0, 0).len() as u64;
    let counted = p.direct_counter(table, Some(&key)).unwrap();
    assert_eq!(counted, Some(CounterValue { packets: 6, bytes }));
}

#[test]
fn state_and_hashes_are_those_of_the_externs() {
    let mut p = pipeline();
    let values: Vec<u16> = (0..3).map(|_| value(&mut p, 11, 3, 5)).collect();
    assert_eq!(values, [0, 5, 10]);
    // CRC-16/ARC of 0x0456: hashes have their padding in front.
    assert_eq!(value(&mut p, 12, 0, 0xf456), 0xfe82);
    let hash = value(&mut p, 13, 0, 0x0456);
    assert_eq!(hash, 1000 + 0xfe82 % 10);
    let random: Vec<u16> = (0..50).map(|_| value(&mut p, 14, 0, 0)).collect();
    assert!(random.iter().all(|v| (100..=200).contains(v)), "{random:?}");
    assert!(random.iter().any(|v| *v != random[0]));
    value(&mut p, 15, 3, 0);
    value(&mut p, 15, 200, 0);
    let counter = p
        .program()
        .info()
        .counter("IngressImpl.counter")
        .expect("it has it");
    let bytes = command(15, 3, 0).len() as u64;
    assert_eq!(
        p.counter(counter, 3).unwrap(),
        CounterValue { packets: 1, bytes }
    );
}
