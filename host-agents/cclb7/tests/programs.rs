// SPDX-License-Identifier: Apache-2.0
//! The packet programs on synthetic packets, without a network.

mod common;

use std::os::fd::AsFd as _;

use aya::maps::HashMap;
use aya::programs::SchedClassifier;
use common::lab::{BASE, PacketLab, V4, V6, flow};
use frontage_cclb7::abi::{Connection, Handshake, Retransmission, Server};
use frontage_cclb7::frame::{
    self, ACK, Segment, build, is_checksum_valid, tcp_offset, timestamps, word,
};
use frontage_cclb7::{agent, bpf};
use frontage_cookie::vectors::Vectors;

const CK: u8 = 0x08;

fn vectors() -> Vectors {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/cookie-vectors.json"
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn egress_writes_the_dynamic_cookie_of_every_vector() {
    for side in [V4, V6] {
        let Some(mut lab) = PacketLab::new(side) else {
            return;
        };
        lab.configure(u64::MAX >> 1, 1);
        for case in vectors().tcp_dynamic {
            let mut flow = flow();
            flow.expected = case.rpt_us / 8;
            lab.set_flow(flow);
            lab.set_server(Server {
                n_af: case.n_af,
                n_ff: case.n_ff,
            });
            let packet = lab.egress(&lab.data(0, 100, case.ts));
            let tcp = tcp_offset(&packet);
            assert_eq!(word(&packet, tcp + 24), case.tsval, "{case:?}");
            assert_eq!(packet[tcp + 12], 0x80 | CK);
            assert!(is_checksum_valid(&packet), "{case:?}");
        }
    }
}

#[test]
fn quantisation_matches_every_vector() {
    let Some(mut lab) = PacketLab::new(V4) else {
        return;
    };
    lab.configure(u64::MAX >> 1, 1);
    for case in vectors().quantisation {
        let mut flow = flow();
        let code = match case.field.as_str() {
            "tcp_count" => {
                lab.set_server(Server {
                    n_af: case.value,
                    n_ff: case.value,
                });
                lab.set_flow(flow);
                let tsval = lab.tsval(&lab.data(0, 1, 0));
                assert_eq!(tsval & 0x1f, tsval >> 5 & 0x1f);
                tsval & 0x1f
            }
            "tcp_rpt" => {
                flow.expected = case.value;
                lab.set_flow(flow);
                lab.tsval(&lab.data(0, 1, 0)) >> 10 & 0x3f
            }
            _ => continue,
        };
        assert_eq!(code, case.code, "{case:?}");
    }
}

#[test]
fn timestamp_is_found_in_any_order_of_options() {
    let ts = [8, 10, 0, 0, 0x20, 0, 0, 0, 0, 1];
    let before: [&[u8]; 6] = [
        &[],
        &[1],
        &[1, 1],
        &[2, 4, 5, 0xb4, 4, 2],
        &[5, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4],
        &[30, 7, 1, 2, 3, 4, 5, 1, 1, 1],
    ];
    for side in [V4, V6] {
        let Some(mut lab) = PacketLab::new(side) else {
            return;
        };
        for prefix in before {
            lab.set_flow(flow());
            let options = [prefix, &ts].concat();
            let packet = lab.egress(&Segment {
                options,
                ..lab.data(0, 9, 0)
            });
            let tcp = tcp_offset(&packet);
            assert_eq!(
                word(&packet, tcp + 22 + prefix.len()),
                0x2000 >> 10 << 16,
                "{prefix:?}"
            );
            assert!(is_checksum_valid(&packet), "{prefix:?}");
        }
    }
}

#[test]
fn packets_of_other_connections_stay_unchanged() {
    let Some(mut lab) = PacketLab::new(V4) else {
        return;
    };
    lab.set_flow(flow());
    let ours = lab.data(0, 50, 7_000);
    let mut fragment = build(&ours);
    fragment[20] = 0x20;
    let mut short = build(&ours);
    short[46] = 0x40;
    let elsewhere = Segment {
        source: "192.0.2.1:81".parse().unwrap(),
        ..ours.clone()
    };
    let before_us = Segment {
        destination: "198.51.100.1:4".parse().unwrap(),
        ..ours.clone()
    };
    let no_timestamp = Segment {
        options: vec![1, 1, 1, 0],
        ..ours.clone()
    };
    let signature = [[19, 18].as_slice(), &[7; 16]].concat();
    let signed = Segment {
        options: [timestamps(7_000, 1), signature].concat(),
        ..ours.clone()
    };
    let endless = Segment {
        options: vec![30, 0, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0],
        ..ours.clone()
    };
    let overlong = Segment {
        options: vec![30, 99, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0],
        ..ours
    };
    let cases = [
        ("fragment", fragment),
        ("data offset below 5", short),
        ("another port", build(&elsewhere)),
        ("a connection older than the agent", build(&before_us)),
        ("no timestamp", build(&no_timestamp)),
        ("a signature (TCP-MD5) behind the timestamp", build(&signed)),
        ("option of length zero", build(&endless)),
        ("option longer than the header", build(&overlong)),
    ];
    for (name, packet) in cases {
        assert_eq!(lab.run("cclb7_egress", &packet), packet, "{name}");
    }
}

#[test]
fn timestamp_of_the_syn_ack_is_restored_exactly() {
    for side in [V4, V6] {
        let Some(mut lab) = PacketLab::new(side) else {
            return;
        };
        let mut options = vec![2, 4, 5, 0xb4, 4, 2];
        options.extend(&timestamps(0x1234_5678, 1)[2..]);
        let syn_ack = Segment {
            flags: frame::SYN | ACK,
            options,
            payload: 0,
            ..lab.data(0, 0, 0)
        };
        let packet = lab.egress(&syn_ack);
        assert_eq!(
            word(&packet, tcp_offset(&packet) + 28),
            0x1234_5678 >> 10 << 16
        );
        assert!(is_checksum_valid(&packet));
        assert_eq!(lab.tsecr(&lab.acknowledgement(1, 0xaaaa_5555)), 0x1234_5678);
        // The packet acknowledges another sequence number, whose timestamp is unknown.
        assert_eq!(lab.tsecr(&lab.acknowledgement(2, 0xaaaa_5555)), 0);
        // The mark keeps a response without a socket (TIME_WAIT) in the cookie's form.
        assert_eq!(
            lab.tsval(&lab.data(0, 0, 0x1234_5678)),
            0x1234_5678 >> 10 << 16
        );
    }
}

#[test]
fn ack_echoes_the_segment_with_its_first_byte() {
    let Some(mut lab) = PacketLab::new(V4) else {
        return;
    };
    lab.set_flow(flow());
    for (offset, ts) in [
        (0, 5_000),
        (1_000, 5_001),
        (2_000, 5_003),
        (3_000, 5_003),
        (4_000, 5_009),
    ] {
        lab.egress(&lab.data(offset, 1_000, ts));
    }
    // Two segments and one delayed acknowledgment: the first segment's timestamp.
    assert_eq!(lab.tsecr(&lab.acknowledgement(2_000, 9)), 5_000);
    assert_eq!(lab.tsecr(&lab.acknowledgement(3_000, 9)), 5_003);
    // The segment at 3000 is retransmitted, and then acknowledged together with the next one.
    lab.egress(&lab.data(3_000, 1_000, 5_200));
    assert_eq!(lab.tsecr(&lab.acknowledgement(5_000, 9)), 5_200);
    // Acknowledgments above what was sent, and below: no progress.
    assert_eq!(lab.flow().acked, 5_000);
    lab.ingress(&lab.acknowledgement(50_000, 9));
    lab.ingress(&lab.acknowledgement(10, 9));
    assert_eq!(lab.flow().acked, 5_000);
}

#[test]
fn forgotten_retransmissions_yield_no_measurement() {
    let Some(mut lab) = PacketLab::new(V4) else {
        return;
    };
    lab.set_flow(flow());
    for i in 0..40 {
        lab.egress(&lab.data(i * 100, 100, 5_000));
    }
    for i in (0..40).step_by(2) {
        lab.egress(&lab.data(i * 100, 100, 5_100));
    }
    assert_eq!(lab.tsecr(&lab.acknowledgement(100, 9)), 0);
    let kept: [Retransmission; 16] = lab.flow().retransmissions;
    assert!(kept.iter().all(|r| r.end.wrapping_sub(r.begin) == 100));
}

#[test]
fn responses_beyond_4_gib_are_counted_until_they_are_sent() {
    let Some(mut lab) = PacketLab::new(V4) else {
        return;
    };
    let mut flow = flow();
    let far = 10 << 30;
    flow.expected = far;
    flow.ends[0] = far << 16 | 1;
    flow.ends[1] = (far - 2_000_000) << 16 | 2;
    lab.set_flow(flow);
    let mut send = |to| {
        // Only the last byte is sent, because the test is about the flow's arithmetic.
        let mut flow = lab.flow();
        flow.sent = to - 1;
        lab.set_flow(flow);
        lab.egress(&lab.data(to - 1, 1, 9));
        lab.loads()
    };
    for to in (1..far).step_by(1 << 29) {
        assert_eq!(send(to), (3, 3), "at {to}");
    }
    assert_eq!(send(far - 1_500_000), (1, 1));
    assert_eq!(send(far - 1_000_000), (1, 0));
    assert_eq!(send(far - 1), (1, 0));
    assert_eq!(send(far), (0, 0));
    // A retransmission.
    lab.egress(&lab.data(far - 1, 1, 9));
    assert_eq!(lab.loads(), (0, 0));
}

#[test]
fn response_of_unknown_length_loses_priority_as_it_grows() {
    let Some(mut lab) = PacketLab::new(V4) else {
        return;
    };
    lab.configure(50_000, 100);
    let mut flow = flow();
    flow.open = 1;
    flow.open_unknown = 1;
    lab.set_flow(flow);
    let mut last = 0;
    for i in 0..100 {
        let rpt = lab.tsval(&lab.data(i * 1_000, 1_000, 5_000)) >> 10 & 0x3f;
        assert!(rpt >= last);
        last = rpt;
        assert_eq!(
            lab.loads(),
            (1, u64::from((i + 1) * 1_000 > 50_000)),
            "after {i} segments"
        );
    }
    assert_eq!(
        last,
        frontage_cookie::quant::TCP_RPT.encode(990),
        "99 kB before the last segment are 990 units of 100 bytes"
    );
}

#[test]
fn flow_without_cookies_is_counted() {
    let Some(mut lab) = PacketLab::new(V4) else {
        return;
    };
    let mut flow = flow();
    flow.cookies = 0;
    flow.expected = 100;
    flow.ends[0] = 100 << 16 | 1;
    lab.set_flow(flow);
    for (offset, length, n_af) in [(0, 60, 1), (60, 40, 0)] {
        lab.egress(&Segment {
            options: vec![],
            ..lab.data(offset, length, 0)
        });
        assert_eq!(lab.loads(), (n_af, 0));
    }
}

#[test]
fn ten_thousand_mutated_packets_are_survived() {
    let Some(mut lab) = PacketLab::new(V4) else {
        return;
    };
    let mut seed = 0x5eed_u64;
    let mut random = move || {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize
    };
    for side in [V4, V6] {
        (lab.server, lab.client) = (side.0.parse().unwrap(), side.1.parse().unwrap());
        lab.set_flow(flow());
        for i in 0..5_000 {
            let mut packet = build(&lab.data(0, 40, 5_000));
            for _ in 0..1 + random() % 4 {
                let at = frame::ETHERNET + random() % (packet.len() - frame::ETHERNET);
                packet[at] = random() as u8;
            }
            if i % 4 == 0 {
                packet.truncate(frame::ETHERNET + 1 + random() % (packet.len() - frame::ETHERNET));
            }
            for program in ["cclb7_egress", "cclb7_ingress"] {
                let program: &mut SchedClassifier = agent::program(&mut lab.ebpf, program).unwrap();
                // The kernel does not run a program on a frame without a network header.
                if let Ok(outcome) = bpf::test_run(program.fd().unwrap().as_fd(), &packet, 1) {
                    assert_eq!(outcome.packet.len(), packet.len());
                }
            }
        }
    }
}

#[test]
fn syn_flood_does_not_evict_flows() {
    let Some(mut lab) = PacketLab::new(V4) else {
        return;
    };
    lab.set_flow(flow());
    for port in 1_000..3_000 {
        let mut client = lab.client;
        client.set_port(port);
        let flags = frame::SYN | ACK;
        let syn_ack = Segment {
            destination: client,
            flags,
            payload: 0,
            ..lab.data(0, 0, 5_000)
        };
        lab.egress(&syn_ack);
    }
    let handshakes: HashMap<_, Connection, Handshake> =
        lab.ebpf.map_mut("handshakes").unwrap().try_into().unwrap();
    assert!(handshakes.keys().count() <= 64);
    assert_eq!(lab.flow().base, BASE);
    assert_eq!(lab.flow().ring[0] >> 32, 0);
}
