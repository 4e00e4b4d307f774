// SPDX-License-Identifier: Apache-2.0
//! `programs/tofino_paths.p4`: what egress sees of packets on every path.

use softswitch_pipeline::{CloneSession, IngressOutcome, Pipeline};

use super::common::{ethernet, through};
use super::{compiled, replicas};

const BRIDGED: u8 = 1;
const INGRESS_MIRROR: u8 = 2;
const EGRESS_MIRROR: u8 = 3;

fn pipeline() -> Pipeline {
    let mut p = compiled("tofino_paths");
    let session = |truncate_to| CloneSession {
        replicas: replicas(&[(5, 50), (6, 60)]),
        truncate_to,
        class_of_service: 0,
    };
    p.insert_clone_session(2, session(0)).unwrap();
    p.insert_clone_session(3, session(20)).unwrap();
    p.insert_multicast_group(6, replicas(&[(3, 30), (4, 40)]))
        .unwrap();
    p.insert_multicast_group(7, replicas(&[(8, 80)])).unwrap();
    p
}

fn command(op: u8, arg: u8, value: u16) -> Vec<u8> {
    [&ethernet(0x9003)[..], &[op, arg], &value.to_be_bytes()].concat()
}

/// A packet as the program sends it: the command, and what egress saw.
#[derive(Debug, PartialEq, Eq)]
struct Sent {
    port: u32,
    op: u8,
    value: u16,
    kind: u8,
    round: u8,
    handed: u16,
    instance: u16,
    is_first: u8,
}

fn send(p: &mut Pipeline, op: u8, arg: u8, value: u16) -> Vec<Sent> {
    let sent = through(p, 7, &command(op, arg, value), 0);
    let parse = |(port, frame): (u32, Vec<u8>)| {
        let f = &frame[14..];
        assert_eq!(f.len(), 4 + 8, "{frame:02x?}");
        let word = |at: usize| u16::from_be_bytes([f[at], f[at + 1]]);
        Sent {
            port,
            op: f[0],
            value: word(2),
            kind: f[4],
            round: f[5],
            handed: word(6),
            instance: word(8),
            is_first: f[10],
        }
    };
    sent.into_iter().map(parse).collect()
}

fn unicast(port: u32, op: u8, value: u16) -> Sent {
    Sent {
        port,
        op,
        value,
        kind: BRIDGED,
        round: 0,
        handed: 7,
        instance: 0,
        is_first: 0,
    }
}

fn mirrors(op: u8, value: u16, kind: u8, handed: u16) -> [Sent; 2] {
    [(5, 50), (6, 60)].map(|(port, instance)| Sent {
        kind,
        handed,
        instance,
        ..unicast(port, op, value)
    })
}

#[test]
fn bridged_header_crosses_the_traffic_manager() {
    let mut p = pipeline();
    assert_eq!(send(&mut p, 0, 4, 9), [unicast(4, 0, 9)]);
    assert_eq!(send(&mut p, 1, 0, 0), []);
    let bypassing = command(9, 0, 3);
    assert_eq!(through(&mut p, 7, &bypassing, 0), [(1, bypassing)]);
}

#[test]
fn multicast_and_copy_to_cpu_are_in_addition_to_unicast() {
    let mut p = pipeline();
    let copy = |port, instance, is_first| Sent {
        instance,
        is_first,
        ..unicast(port, 2, 7)
    };
    let copies = [
        copy(3, 30, 1),
        copy(4, 40, 0),
        copy(8, 80, 1),
        unicast(1, 2, 7),
    ];
    assert_eq!(send(&mut p, 2, 6, 7), copies);
    assert_eq!(send(&mut p, 6, 0, 7), [unicast(64, 6, 7), unicast(1, 6, 7)]);
}

#[test]
fn mirrors_carry_their_headers() {
    let mut p = pipeline();
    assert_eq!(send(&mut p, 3, 2, 5), mirrors(3, 5, INGRESS_MIRROR, 0x1234));
    // The mirror of egress is the packet as it would leave, with the trail that egress added.
    let sent = through(&mut p, 7, &command(10, 2, 5), 0);
    assert_eq!(sent.len(), 2);
    let (own, trail) = sent[0].1.split_at(14 + 4 + 8);
    assert_eq!(own[14..22], [10, 2, 0, 77, EGRESS_MIRROR, 0, 0x56, 0x78]);
    assert_eq!(trail[..4], [BRIDGED, 0, 0, 7]);
    // 20 bytes cut the command, after 3 bytes of the mirror header and 14 of Ethernet.
    let sent = through(&mut p, 7, &command(3, 3, 5), 0);
    assert!(sent.iter().all(|s| s.1.len() < 14 + 4 + 8), "{sent:?}");
}

#[test]
fn second_pass_of_ingress_knows_its_origin() {
    let mut p = pipeline();
    let resubmitted = Sent {
        round: 2,
        handed: 500,
        ..unicast(1, 4, 0)
    };
    assert_eq!(send(&mut p, 4, 0, 500), [resubmitted]);
    let recirculated = Sent {
        round: 1,
        ..unicast(3, 0, 9)
    };
    assert_eq!(send(&mut p, 5, 3, 9), [recirculated]);
}

#[test]
fn digest_of_the_ingress_deparser_is_kept() {
    let mut p = pipeline();
    send(&mut p, 8, 0, 0x1234);
    send(&mut p, 0, 1, 0);
    let digests = p.take_digests();
    assert_eq!(digests.len(), 1);
    assert_eq!(digests[0].fields, [8u32.into(), 0x1234u32.into()]);
}

#[test]
fn unmatched_packet_is_a_parser_error() {
    let mut p = pipeline();
    let outcome = p.ingress(7, &ethernet(0x800), 0, &mut Vec::new());
    assert_eq!(outcome, IngressOutcome::ParserError);
}

#[test]
fn trace_and_coverage_contain_both_gresses() {
    let mut p = pipeline();
    p.set_tracing(true);
    p.set_coverage(true);
    assert_eq!(send(&mut p, 3, 2, 5), mirrors(3, 5, INGRESS_MIRROR, 0x1234));
    p.ingress(7, &ethernet(0x800), 0, &mut Vec::new());
    let text: Vec<String> = p.take_trace().iter().map(ToString::to_string).collect();
    assert_eq!(text.len(), 4, "{text:#?}");
    assert!(
        text[0].contains("mirror(session = 2)") && text[0].contains("dropped"),
        "{}",
        text[0]
    );
    assert!(text[1].contains("eg_intr_md"), "{}", text[1]);
    assert!(
        text[3].contains("dropped: the parser rejected it"),
        "{}",
        text[3]
    );
    let coverage = p.coverage().expect("it is on");
    assert!(
        coverage
            .functions
            .iter()
            .any(|f| f.name == "mirrored" && f.count == 2)
    );
}
