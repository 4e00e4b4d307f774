// SPDX-License-Identifier: Apache-2.0
//! Mirrored and resubmitted packets.

use serde_json::json;
use softswitch_pipeline::{CloneSession, Pipeline};

use super::common::through;
use super::common::tna::{HEADER_BYTES, Tna, assign, call, field, list, number, packet, unless_op};
use super::{TM, forwarding, ports, replicas, to_port};

const INGRESS_DEPARSER: &str = "ig_intr_md_for_dprsr";

/// Mirrors packets whose `op` is 1 to the session in `hdr.arg`, with these fields in front.
fn mirror(fields: &[(&str, &str)]) -> Vec<serde_json::Value> {
    let emit = call("_Mirror_emit", vec![field("hdr", "arg"), list(fields)]);
    vec![unless_op(1, 2), emit]
}

fn with_session(program: &Tna, truncate_to: u32) -> Pipeline {
    let mut p = program.pipeline();
    let session = CloneSession {
        replicas: replicas(&[(9, 90)]),
        truncate_to,
        class_of_service: 3,
    };
    p.insert_clone_session(5, session).unwrap();
    p
}

/// Egress parses the mirror header of 8 bytes for packets to port 9.
fn parsing_mirrors(program: Tna) -> Tna {
    let case = |value: &str, next: &str| json!({"type": "hexstr", "value": value, "mask": null, "next_state": next});
    let state = |name: &str, header: &str, next: Option<&str>| {
        json!({
            "name": name, "id": 1, "transition_key": [],
            "parser_ops": [{"op": "extract", "parameters": [{"type": "regular", "value": header}]}],
            "transitions": [{"type": "default", "value": null, "mask": null, "next_state": next}],
        })
    };
    let start = json!({
        "name": "start", "id": 0,
        "parser_ops": [{"op": "extract", "parameters": [{"type": "regular", "value": "eg_intr_md"}]}],
        "transition_key": [{"type": "field", "value": ["eg_intr_md", "egress_port"]}],
        "transitions": [case("0x0009", "mirrored"), case("default", "packet")],
    });
    let states = json!([
        start,
        state("mirrored", "data", Some("packet")),
        state("packet", "hdr", None)
    ]);
    program.with("/parsers/1/parse_states", states)
}

#[test]
fn ingress_mirror_is_the_received_packet_also_of_a_dropped_one() {
    let program = forwarding()
        .ingress(vec![
            assign(("meta", "wide"), number(0x1234)),
            assign((INGRESS_DEPARSER, "drop_ctl"), field("hdr", "y")),
            assign(("hdr", "y"), number(0xffff)),
        ])
        .ingress_deparser(mirror(&[("meta", "wide")]));
    let mut p = with_session(&parsing_mirrors(program), 0);
    let header = 0x1234u64.to_be_bytes();
    let clone = |y| (9, [&header[..], &packet(1, 5, 3, y)].concat());
    let sent = through(&mut p, 7, &packet(1, 5, 3, 0), 0);
    assert_eq!(sent, [clone(0), (3, packet(1, 5, 3, 0xffff))]);
    assert_eq!(through(&mut p, 7, &packet(1, 5, 3, 1), 0), [clone(1)]);
    assert_eq!(ports(&mut p, &packet(1, 5, 3, 4)), [3], "no mirror");
    assert_eq!(ports(&mut p, &packet(0, 5, 3, 0)), [3], "not reached");
    assert_eq!(
        ports(&mut p, &packet(1, 6, 3, 0)),
        [3],
        "an unknown session"
    );
}

#[test]
fn egress_mirror_is_the_sent_packet() {
    let program = forwarding()
        .egress(vec![assign(("hdr", "y"), number(8))])
        .egress(vec![assign(
            ("eg_intr_md_for_dprsr", "drop_ctl"),
            number(0),
        )])
        .egress_deparser(mirror(&[("meta", "wide")]));
    let mut p = with_session(&parsing_mirrors(program), 0);
    // The mirrored packet is mirrored again; its class of service and instance are those of the session.
    let sent = through(&mut p, 7, &packet(1, 5, 3, 0), 0);
    assert_eq!(sent[0], (3, packet(1, 5, 3, 8)));
    assert_eq!(sent[1], (9, [&[0; 8][..], &packet(1, 5, 3, 8)].concat()));
}

#[test]
fn mirror_session_truncates_with_the_front() {
    let program = forwarding().ingress_deparser(mirror(&[("meta", "wide")]));
    let mut p = with_session(&parsing_mirrors(program), 18);
    let sent = through(&mut p, 7, &packet(1, 5, 3, 0), 0);
    assert_eq!(
        sent[0],
        (9, [&[0; 8][..], &packet(1, 5, 3, 0)[..10]].concat())
    );
}

#[test]
fn tofino_2_selects_which_packet_is_mirrored() {
    let program = to_port("t2na")
        .and(
            "/header_types/3/fields",
            json!(["mirror_io_select", 1, false]),
        )
        .ingress(vec![
            assign((INGRESS_DEPARSER, "mirror_io_select"), field("hdr", "y")),
            assign(("hdr", "y"), number(0xff)),
        ])
        .ingress_deparser(mirror(&[("meta", "wide")]));
    let mut p = with_session(&parsing_mirrors(program), 0);
    let clone = |y| [&[0; 8][..], &packet(1, 5, 3, y)].concat();
    let sent = |p: &mut Pipeline, y| through(p, 7, &packet(1, 5, 3, y), 0).swap_remove(0).1;
    assert_eq!((sent(&mut p, 0), sent(&mut p, 1)), (clone(0), clone(0xff)));
}

/// Resubmits packets whose `op` is 1 with `meta.wide` and `meta.a`, and sends the data back to `hdr.x`.
fn resubmitting(architecture: &str) -> Tna {
    let emit = call(
        "_Resubmit_emit",
        vec![list(&[("meta", "wide"), ("meta", "a")])],
    );
    Tna::new(architecture)
        .ingress(vec![
            assign(("meta", "wide"), number(0x1234_0000_5678)),
            assign(("meta", "a"), number(0x9abc)),
            assign((TM, "ucast_egress_port"), field("hdr", "arg")),
            assign(("hdr", "y"), field("ig_intr_md", "ingress_port")),
            assign((INGRESS_DEPARSER, "drop_ctl"), field("hdr", "x")),
        ])
        .ingress_deparser(vec![unless_op(1, 2), emit])
}

#[test]
fn packet_is_resubmitted_once_with_data_in_front() {
    for architecture in ["tna", "t2na"] {
        let mut p = resubmitting(architecture)
            .with("/deparsers/1/order", json!(["hdr"]))
            .pipeline();
        // The first pass neither changes nor sends the packet. `data` is bridged to egress, whose `hdr` it fills.
        let sent = through(&mut p, 7, &packet(1, 3, 0, 0), 0);
        let data = 0x1234_0000_5678u64.to_be_bytes();
        assert_eq!(sent, [(3, [&data[..], &packet(1, 3, 0, 7)].concat())]);
        assert_eq!(sent[0].1[..HEADER_BYTES], data);
        let sent = through(&mut p, 7, &packet(0, 3, 0, 0), 0);
        assert_eq!(sent, [(3, packet(0, 3, 0, 7))]);
    }
}

#[test]
fn dropped_packet_is_not_resubmitted() {
    let mut p = resubmitting("tna").pipeline();
    assert!(ports(&mut p, &packet(1, 3, 1, 0)).is_empty());
}
