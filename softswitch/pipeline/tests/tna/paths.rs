// SPDX-License-Identifier: Apache-2.0
//! The paths around the traffic manager, and the bytes in front of packets on each of them.

use super::common::tna::{HEADER_BYTES, Tna, assign, field, number, packet};
use super::common::{options, through};
use super::{TM, forwarding, ports, replicas, result, to_port, y};
use serde_json::json;
use softswitch_pipeline::{IngressOutcome, Options, Pipeline};

/// The port of packets that `through` sends.
const FROM: u64 = 7;
/// No ports.
const NOWHERE: [u32; 0] = [];
#[test]
fn packet_without_destination_is_dropped() {
    let mut p = Tna::new("tna").pipeline();
    let frame = packet(0, 0, 0, 0);
    assert_eq!(
        p.ingress(7, &frame, 0, &mut Vec::new()),
        IngressOutcome::Dropped
    );
}

#[test]
fn unicast_packet_passes_both_gresses() {
    let mut p = forwarding().pipeline();
    let frame = packet(1, 2, 300, 4);
    assert_eq!(through(&mut p, 7, &frame, 0), [(300, frame)]);
}

#[test]
fn header_that_becomes_valid_keeps_what_was_written_before() {
    let header = |op: &str| json!({"op": op, "parameters": [{"type": "header", "value": "hdr"}]});
    let mut p = Tna::new("tna")
        .ingress(vec![
            assign((TM, "ucast_egress_port"), number(3)),
            header("remove_header"),
            assign(("hdr", "x"), number(5)),
            header("add_header"),
        ])
        .pipeline();
    let sent = through(&mut p, 7, &packet(1, 2, 300, 4), 0);
    assert_eq!(sent, [(3, packet(1, 2, 5, 4))]);
}

#[test]
fn ingress_parser_receives_intrinsic_header() {
    for architecture in ["tna", "t2na"] {
        let mut p = Tna::new(architecture)
            .ingress(vec![
                assign(
                    (TM, "ucast_egress_port"),
                    field("ig_intr_md", "ingress_port"),
                ),
                assign(("hdr", "y"), field("ig_intr_md", "ingress_mac_tstamp")),
            ])
            .pipeline();
        let sent = through(&mut p, 7, &packet(0, 0, 0, 0), 123);
        assert_eq!(sent, [(7, packet(0, 0, 0, 123))]);
    }
}

#[test]
fn egress_parser_receives_intrinsic_header_and_no_metadata() {
    let mut p = forwarding()
        .ingress(vec![
            assign(("meta", "a"), number(9)),
            assign((TM, "qid"), number(11)),
        ])
        .egress(vec![
            assign(("hdr", "op"), field("eg_intr_md", "egress_qid")),
            assign(("hdr", "x"), field("eg_intr_md", "egress_port")),
            assign(("hdr", "y"), field("eg_intr_md", "deq_timedelta")),
            assign(("hdr", "arg"), field("eg_intr_md", "pkt_length")),
        ])
        .egress(vec![assign(("hdr", "op"), field("meta", "a"))])
        .pipeline();
    let frame = packet(1, 2, 300, 4);
    // The time in the queue is 42,000 ns in `through`. The length contains the frame check sequence.
    let length = frame.len() as u8 + 4;
    assert_eq!(
        through(&mut p, 7, &frame, 0),
        [(300, packet(0, length, 300, 42_000))]
    );
}

#[test]
fn bypass_skips_egress() {
    let mut p = forwarding()
        .ingress(vec![assign((TM, "bypass_egress"), field("hdr", "op"))])
        .egress(vec![assign(("hdr", "y"), number(5))])
        .pipeline();
    let sent = |p: &mut Pipeline, op| y(&through(p, 7, &packet(op, 0, 3, 4), 0)[0]);
    assert_eq!((sent(&mut p, 0), sent(&mut p, 1)), (5, 4));
}

#[test]
fn drop_control_drops_copies_separately() {
    let program = forwarding().ingress(vec![
        assign(("ig_intr_md_for_dprsr", "drop_ctl"), field("hdr", "op")),
        assign((TM, "copy_to_cpu"), field("hdr", "arg")),
    ]);
    let mut p = program.pipeline();
    assert_eq!(ports(&mut p, &packet(0, 0, 3, 0)), [3]);
    assert_eq!(ports(&mut p, &packet(1, 0, 3, 0)), NOWHERE);
    assert_eq!(ports(&mut p, &packet(0, 1, 3, 0)), [64, 3]);
    assert_eq!(ports(&mut p, &packet(1, 1, 3, 0)), [64]);
    assert_eq!(ports(&mut p, &packet(2, 1, 3, 0)), [3]);
    let mut p = program.pipeline_with(Options {
        cpu_port: Some(192),
        ..options()
    });
    assert_eq!(ports(&mut p, &packet(1, 1, 3, 0)), [192]);
}

#[test]
fn egress_drops() {
    let drop = assign(("eg_intr_md_for_dprsr", "drop_ctl"), field("hdr", "op"));
    let mut p = forwarding().egress(vec![drop]).pipeline();
    assert_eq!(ports(&mut p, &packet(0, 0, 3, 0)), [3]);
    assert_eq!(ports(&mut p, &packet(1, 0, 3, 0)), NOWHERE);
}

#[test]
fn both_multicast_groups_replicate_in_addition_to_unicast() {
    let mut p = forwarding()
        .ingress(vec![
            assign((TM, "mcast_grp_a"), field("hdr", "op")),
            assign((TM, "mcast_grp_b"), field("hdr", "arg")),
        ])
        .egress(vec![
            assign(("hdr", "op"), field("eg_intr_md", "egress_rid_first")),
            assign(("hdr", "y"), field("eg_intr_md", "egress_rid")),
        ])
        .pipeline();
    p.insert_multicast_group(5, replicas(&[(1, 10), (2, 20)]))
        .unwrap();
    p.insert_multicast_group(6, replicas(&[(3, 30)])).unwrap();
    let sent: Vec<_> = through(&mut p, 7, &packet(5, 6, 4, 0), 0)
        .iter()
        .map(|s| (s.0, y(s), s.1[0]))
        .collect();
    assert_eq!(sent, [(1, 10, 1), (2, 20, 0), (3, 30, 1), (4, 0, 0)]);
    let frame = packet(5, 6, 0x1ff, 0);
    assert_eq!(
        p.ingress(7, &frame, 0, &mut Vec::new()),
        IngressOutcome::Multicast(3)
    );
    let frame = packet(9, 0, 0x1ff, 0);
    assert_eq!(
        p.ingress(7, &frame, 0, &mut Vec::new()),
        IngressOutcome::Multicast(0)
    );
}

#[test]
fn recirculated_packet_arrives_from_recirculation_port() {
    let mut p = Tna::new("tna")
        .ingress(vec![
            assign(("hdr", "y"), field("ig_intr_md", "ingress_port")),
            assign((TM, "ucast_egress_port"), field("hdr", "x")),
            assign(("hdr", "x"), number(3)),
        ])
        .pipeline();
    for port in [68, 196] {
        let sent = through(&mut p, 7, &packet(0, 0, port, 0), 0);
        assert_eq!(sent, [(3, packet(0, 0, 3, port.into()))]);
    }
    let sent = through(&mut p, 7, &packet(0, 0, 6, 0), 0);
    assert_eq!(
        sent,
        [(6, packet(0, 0, 3, FROM as u32))],
        "a port of Tofino 2"
    );
}

#[test]
fn parser_error_drops_unless_program_reads_it() {
    let mut p = forwarding().pipeline();
    assert_eq!(
        p.ingress(7, &[1; 3], 0, &mut Vec::new()),
        IngressOutcome::ParserError
    );
    let mut p = Tna::new("tna")
        .ingress(vec![assign(
            (TM, "ucast_egress_port"),
            field("ig_intr_md_from_prsr", "parser_err"),
        )])
        .pipeline();
    // The header is partial.
    assert_eq!(through(&mut p, 7, &[1; 3], 0), [(2, vec![1; 3])]);
}

#[test]
fn transition_to_reject_is_a_parser_error() {
    let reject = json!([{"type": "default", "value": null, "mask": null, "next_state": "reject"}]);
    let mut p = forwarding()
        .with("/parsers/0/parse_states/3/transitions", reject)
        .pipeline();
    let frame = packet(0, 0, 3, 0);
    assert_eq!(
        p.ingress(7, &frame, 0, &mut Vec::new()),
        IngressOutcome::ParserError
    );
}

#[test]
fn advance_skips_whole_bytes_of_the_packet() {
    let mut p = forwarding()
        .and(
            "/parsers/0/parse_states/3/parser_ops",
            json!({"op": "advance", "parameters": [field("hdr", "arg")]}),
        )
        .pipeline();
    for (bits, payload) in [(0, "payload"), (8, "ayload"), (48, "d"), (56, "")] {
        let frame = packet(0, bits, 3, 4);
        let expected = [&frame[..HEADER_BYTES], payload.as_bytes()].concat();
        assert_eq!(through(&mut p, 7, &frame, 0), [(3, expected)]);
    }
    for bits in [1, 60, 64, 255] {
        assert_eq!(
            p.ingress(7, &packet(0, bits, 3, 4), 0, &mut Vec::new()),
            IngressOutcome::ParserError,
            "{bits}"
        );
    }
}

#[test]
fn intrinsic_headers_never_leave_without_parsers() {
    let mut p = forwarding()
        .with("/parsers/1/init_state", json!(null))
        .pipeline();
    let frame = packet(1, 2, 3, 4);
    assert_eq!(through(&mut p, 7, &frame, 0), [(3, frame)]);
}

#[test]
fn port_metadata_is_in_front_of_packets_from_the_port() {
    for (architecture, bytes) in [("tna", 8), ("t2na", 24)] {
        let steps = json!([
            {"op": "extract", "parameters": [{"type": "regular", "value": "data"}]},
            {"op": "advance", "parameters": [number((bytes - 8) * 8)]},
        ]);
        let mut p = to_port(architecture)
            .with("/parsers/0/parse_states/2/parser_ops", steps)
            .ingress(vec![assign(("hdr", "y"), field("data", "value"))])
            .with("/deparsers/0/order", json!(["hdr"]))
            .pipeline();
        assert_eq!(p.port_metadata_bytes() as u64, bytes);
        p.set_port_metadata(7, &[0, 0, 0, 0, 0, 0, 1, 2]).unwrap();
        p.set_port_metadata(7, &[0; 25]).unwrap_err();
        assert_eq!(result(&mut p, &packet(0, 0, 3, 0)), 0x102);
        p.set_port_metadata(7, &[]).unwrap();
        assert_eq!(result(&mut p, &packet(0, 0, 3, 0)), 0);
    }
}
