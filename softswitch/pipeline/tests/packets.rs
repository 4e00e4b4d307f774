// SPDX-License-Identifier: Apache-2.0
//! Packet processing: parser, arithmetic, externs, and the paths around the traffic manager.

mod common;

use common::{COMMAND_BYTES, Command, DST, Harness, ethernet, key, options, ternary};
use softswitch_pipeline::{
    CloneSession, EgressOutput, Entry, IngressOutcome, MAX_FRAME, MatchField, MeterConfig, Options,
    QueueInfo, Replica, Value,
};

fn replica(port: u32, instance: u16) -> Replica {
    Replica { port, instance }
}

fn session(replicas: Vec<Replica>) -> CloneSession {
    CloneSession {
        replicas,
        truncate_to: 0,
        class_of_service: 0,
    }
}

#[test]
fn unmodified_packet_is_forwarded_unchanged() {
    let mut h = Harness::new();
    for frame in [
        ethernet(0x1234),
        Command {
            p: 5,
            q: 1 << 60,
            ..Command::op(99)
        }
        .frame(),
    ] {
        assert_eq!(h.send(&frame), [(1, frame)]);
    }
}

#[test]
fn ingress_without_copy_gives_the_same_packet() {
    let (mut copies, mut keeps) = (Harness::new(), Harness::new());
    let (mut queue, mut out) = (Vec::new(), EgressOutput::default());
    for op in [3, 99, 4] {
        let frame = Command::op(op).frame();
        let mut buffer = frame.clone();
        keeps
            .pipeline
            .ingress_keeping(7, &mut buffer, 0, &mut queue);
        for descriptor in queue.drain(..) {
            let info = QueueInfo::default();
            keeps.pipeline.egress(descriptor, info, 0, &mut out);
        }
        assert_eq!(copies.send(&frame), [(1, out.frame.to_vec())], "op {op}");
    }
    let mut long = vec![0; MAX_FRAME + 1];
    let outcome = keeps.pipeline.ingress_keeping(7, &mut long, 0, &mut queue);
    assert_eq!((outcome, queue.len()), (IngressOutcome::TooLong, 0));
}

#[test]
fn parser_stops_at_truncated_header() {
    let mut h = Harness::new();
    let frame = Command::op(1).frame();
    for len in 14..14 + COMMAND_BYTES {
        assert_eq!(
            h.send(&frame[..len]),
            [(1, frame[..len].to_vec())],
            "{len} bytes"
        );
    }
    assert_eq!(h.send(&frame[..5]), [(1, frame[..5].to_vec())]);
    assert_eq!(h.send(&[]), [(1, vec![])]);
}

#[test]
fn header_stacks_extract_push_pop_and_overflow() {
    let mut h = Harness::new();
    let tags = |tags: &[[u8; 2]]| [ethernet(0x9000), tags.concat(), b"rest".to_vec()].concat();
    let (first, last) = ([0x04, 1], [0x07, 2]);
    // Label 2 is popped, after a saturating addition to its value.
    assert_eq!(h.send(&tags(&[first, last]))[0].1, tags(&[last]));
    // A new tag with label 9 pushes label 1 down.
    let pushed = tags(&[[0x12, 0], [0x02, 251], last]);
    assert_eq!(h.send(&tags(&[[0x02, 1], last]))[0].1, pushed);
    // A fifth tag does not fit: it stays in the payload.
    let five = [[0x08, 9]; 5];
    let mut kept = five;
    kept[0][1] = 255;
    assert_eq!(h.send(&tags(&five))[0].1, tags(&kept));
}

#[test]
fn variable_length_field_is_extracted_and_emitted() {
    let mut h = Harness::new();
    for len in [0, 1, 40] {
        let frame = [
            ethernet(0x9001),
            vec![len],
            vec![0xab; len.into()],
            b"x".to_vec(),
        ]
        .concat();
        assert_eq!(h.send(&frame), [(1, frame)], "{len}");
    }
    // verify rejects 41, and the frame is too short for 39.
    for len in [41, 39] {
        let frame = [ethernet(0x9001), vec![len], vec![0xab; 20]].concat();
        assert_eq!(h.send(&frame), [(1, frame)], "{len}");
    }
}

#[test]
fn valid_union_member_invalidates_the_other() {
    let mut h = Harness::new();
    let frame = [
        ethernet(0x9002),
        vec![1, 0xaa, 0xbb, 0xcc],
        b"data".to_vec(),
    ]
    .concat();
    let sent = h.send(&frame);
    // The checksum over kind, c and the payload replaces b.
    let sum = !(0x0200u32 + 0x6461 + 0x7461) as u16;
    let [hi, lo] = sum.to_be_bytes();
    let expected = [
        ethernet(0x9002),
        vec![2, hi, lo, 0, 0, 0, 0, 0],
        b"data".to_vec(),
    ]
    .concat();
    assert_eq!(sent, [(1, expected)]);
}

#[test]
fn arithmetic_wraps_saturates_and_shifts() {
    let mut h = Harness::new();
    assert_eq!(
        h.run(Command {
            x: 3,
            z: 5,
            ..Command::op(1)
        })
        .z,
        5
    );
    assert_eq!(
        h.run(Command {
            x: 3,
            z: u32::MAX,
            ..Command::op(1)
        })
        .z,
        4
    );
    let shifted = h.run(Command {
        arg: 5,
        y: 0xfff,
        q: 1 << 60,
        ..Command::op(2)
    });
    assert_eq!((shifted.y, shifted.q), (0xfe0, 1 << 55));
    let shifted = h.run(Command {
        arg: 200,
        y: 0xfff,
        q: 1 << 60,
        ..Command::op(2)
    });
    assert_eq!((shifted.y, shifted.q), (0, 0));
    let signed = h.run(Command {
        s: -3,
        x: 2,
        ..Command::op(3)
    });
    assert_eq!((signed.s, signed.x), (-2, 0));
    let w = 0x8000_0000_0000_0000_0000_0000_0000_0001u128;
    let wide = h
        .run(Command {
            arg: 1,
            wide: w,
            ..Command::op(4)
        })
        .wide;
    assert_eq!(wide, w.wrapping_add(w << 1) ^ !w);
    assert_eq!(
        h.run(Command {
            arg: 200,
            wide: w,
            ..Command::op(4)
        })
        .wide,
        w ^ !w
    );
    let z = 0xdead_beefu32;
    let product = z.wrapping_mul(z).wrapping_sub(9);
    assert_eq!(
        h.run(Command {
            arg: 9,
            z,
            ..Command::op(14)
        })
        .z,
        product
    );
}

#[test]
fn stack_index_may_be_computed_at_run_time() {
    let mut h = Harness::new();
    let frame = Command {
        p: 2,
        arg: 0x55,
        ..Command::op(13)
    }
    .frame();
    let sent = h.send(&frame);
    // The tag comes before the command in the deparser.
    let expected = [&frame[..14], &[0, 0x55], &frame[14..]].concat();
    assert_eq!(sent, [(1, expected)]);
}

#[test]
fn registers_counters_and_hashes_work_together() {
    let mut h = Harness::new();
    h.run(Command {
        x: 9,
        z: 7,
        p: 3,
        wide: u128::MAX,
        ..Command::op(1)
    });
    let sums = h.info.register("I.sums").unwrap();
    assert_eq!(h.pipeline.register(sums, 9).unwrap(), Value::from(7u64));
    let wides = h.info.register("I.wides").unwrap();
    assert_eq!(
        h.pipeline.register(wides, 3).unwrap(),
        Value::from(u128::MAX)
    );
    let ops = h.info.counter("I.ops").unwrap();
    let count = h.pipeline.counter(ops, 1).unwrap();
    assert_eq!(
        (count.packets, count.bytes),
        (1, 14 + COMMAND_BYTES as u64 + 7)
    );
    // CRC-32 over 48 + 3 + 61 + 128 bits, modulo 1000.
    let c = Command {
        p: 5,
        q: 0x1234_5678_9abc,
        wide: 42,
        ..Command::op(15)
    };
    let input = [
        &common::SRC[..],
        &(5u64 << 61 | c.q).to_be_bytes(),
        &c.wide.to_be_bytes(),
    ]
    .concat();
    assert_eq!(h.run(c).z, crc32fast::hash(&input) % 1000);
}

#[test]
fn random_numbers_depend_only_on_seed() {
    let draw = |seed| {
        let mut h = Harness::with(Options { seed, ..options() });
        (0..50)
            .map(|_| h.run(Command::op(11)).z)
            .collect::<Vec<_>>()
    };
    let draws = draw(1);
    assert!(draws.iter().all(|z| (10..=20).contains(z)));
    assert_eq!(draws, draw(1));
    assert_ne!(draws, draw(2));
}

#[test]
fn meter_colour_depends_on_given_time() {
    let mut h = Harness::new();
    let rate = h.info.meter("I.rate").unwrap();
    let config = MeterConfig {
        cir: 1,
        cburst: 1,
        pir: 2,
        pburst: 2,
        eburst: 0,
    };
    h.pipeline.set_meter(rate, 4, Some(config)).unwrap();
    let mut color = |now| {
        let sent = h.send_at(
            &Command {
                arg: 4,
                ..Command::op(5)
            }
            .frame(),
            now,
        );
        Command::parse(&sent[0].1).p
    };
    assert_eq!([color(0), color(0), color(0)], [0, 1, 2]);
    assert_eq!(color(1_000_000_000), 0);
}

#[test]
fn digest_contains_values_at_end_of_ingress() {
    let mut h = Harness::new();
    h.run(Command {
        x: 1,
        y: 0x234,
        ..Command::op(6)
    });
    let digests = h.pipeline.take_digests();
    assert_eq!(digests.len(), 1);
    assert_eq!(h.info.digests[digests[0].id.index()].fields, [48, 16]);
    assert_eq!(
        digests[0].fields,
        [Value::from(0x0200_0000_0001u64), Value::from(0x2341u64)]
    );
    assert!(h.pipeline.take_digests().is_empty());
}

#[test]
fn ingress_clone_has_original_headers_and_preserved_metadata() {
    let mut h = Harness::new();
    let frame = Command {
        arg: 5,
        x: 1,
        ..Command::op(7)
    }
    .frame();
    assert_eq!(
        h.send(&frame),
        [(1, frame.clone())],
        "a clone without a session"
    );
    h.pipeline
        .insert_clone_session(5, session(vec![replica(20, 0), replica(21, 3)]))
        .unwrap();
    let sent = h.send(&frame);
    assert_eq!(sent.iter().map(|s| s.0).collect::<Vec<_>>(), [20, 21, 1]);
    let clone = Command::parse(&sent[0].1);
    assert_eq!(
        (clone.x, clone.z),
        (1, 77),
        "instance type 1, metadata kept"
    );
    // Truncated on egress, but parsed as a whole.
    let truncated = CloneSession {
        truncate_to: 20,
        ..session(vec![replica(20, 0)])
    };
    h.pipeline.modify_clone_session(5, truncated).unwrap();
    let sent = h.send(&frame);
    assert_eq!((sent[0].1.len(), sent[1].1.len()), (20, frame.len()));
}

#[test]
fn egress_clone_passes_egress_again() {
    let mut h = Harness::new();
    h.pipeline
        .insert_clone_session(6, session(vec![replica(30, 0)]))
        .unwrap();
    let sent = h.send(
        &Command {
            arg: 6,
            ..Command::op(20)
        }
        .frame(),
    );
    assert_eq!(sent.iter().map(|s| s.0).collect::<Vec<_>>(), [11, 30]);
    let clone = Command::parse(&sent[1].1);
    assert_eq!((clone.op, clone.x, clone.z), (0, 2, 99));
}

#[test]
fn resubmission_preserves_field_list_and_is_bounded() {
    let mut h = Harness::new();
    h.pipeline.insert_multicast_group(9, vec![]).unwrap();
    // Three passes with `passes` preserved, then a normal packet.
    let frame = Command::op(8).frame();
    assert_eq!(h.send(&frame), [(1, frame)]);
    let mut out = Vec::new();
    let outcome = h.pipeline.ingress(1, &Command::op(10).frame(), 0, &mut out);
    assert_eq!(outcome, IngressOutcome::TooManyResubmits);
    assert!(out.is_empty());
}

#[test]
fn recirculation_parses_emitted_packet() {
    let mut h = Harness::new();
    let ops = h.info.counter("I.ops").unwrap();
    // Op 21 is beyond the last counter cell, which has no effect.
    let sent = h.send(
        &Command {
            arg: 3,
            ..Command::op(21)
        }
        .frame(),
    );
    assert_eq!(sent.len(), 1);
    // The last pass begins with a recirculated packet and ends with a normal unicast packet.
    assert_eq!(Command::parse(&sent[0].1).op, 21);
    assert!(h.pipeline.counter(ops, 21).is_err());
}

#[test]
fn multicast_overrides_unicast_and_numbers_copies() {
    let mut h = Harness::new();
    let mut out = Vec::new();
    let frame = Command {
        arg: 3,
        ..Command::op(9)
    }
    .frame();
    assert_eq!(
        h.pipeline.ingress(1, &frame, 0, &mut out),
        IngressOutcome::Multicast(0)
    );
    h.pipeline
        .insert_multicast_group(3, vec![replica(5, 1), replica(6, 2)])
        .unwrap();
    let sent = h.send(&frame);
    assert_eq!(sent.iter().map(|s| s.0).collect::<Vec<_>>(), [5, 6]);
    assert_eq!(Command::parse(&sent[0].1).x, 5, "instance type");
}

#[test]
fn backups_replace_replicas_while_their_ports_are_down() {
    let mut h = Harness::new();
    let frame = Command {
        arg: 3,
        ..Command::op(9)
    }
    .frame();
    let ports = |h: &mut Harness| h.send(&frame).iter().map(|s| s.0).collect::<Vec<_>>();
    let replicas = vec![replica(5, 1), replica(6, 2)];
    h.pipeline
        .insert_multicast_group(3, replicas.clone())
        .unwrap();
    // A port that is down already counts, too.
    h.pipeline.set_port_up(6, false);
    let backups = vec![vec![replica(7, 3), replica(8, 4)], vec![replica(9, 5)]];
    h.pipeline
        .set_multicast_backups(3, backups.clone())
        .unwrap();
    assert_eq!(ports(&mut h), [5, 9]);
    h.pipeline.set_port_up(5, false);
    assert_eq!(ports(&mut h), [7, 9]);
    h.pipeline.set_port_up(7, false);
    assert_eq!(ports(&mut h), [8, 9]);
    // Without a port that is up, the replica stays.
    h.pipeline.set_port_up(8, false);
    assert_eq!(ports(&mut h), [5, 9]);
    h.pipeline.set_port_up(7, true);
    assert_eq!(ports(&mut h), [7, 9]);
    assert_eq!(h.pipeline.multicast_groups(), [(3, replicas.clone())]);
    // A change of the group removes its backups.
    h.pipeline.modify_multicast_group(3, replicas).unwrap();
    assert_eq!(ports(&mut h), [5, 6]);
    assert!(
        h.pipeline
            .set_multicast_backups(4, backups.clone())
            .is_err()
    );
    assert!(h.pipeline.set_clone_backups(4, backups).is_err());
}

#[test]
fn egress_sees_queue_length_and_drop() {
    let mut h = Harness::new();
    let c = h.run(Command::op(23));
    assert_eq!(c.wide, 42, "microseconds in the queue");
    assert_eq!(c.z as usize, 14 + COMMAND_BYTES + 7);
    assert!(h.send(&Command::op(22).frame()).is_empty());
}

#[test]
fn truncation_shortens_and_failed_assertion_drops() {
    let mut h = Harness::new();
    assert_eq!(
        h.send(
            &Command {
                arg: 16,
                ..Command::op(12)
            }
            .frame()
        )[0]
        .1
        .len(),
        16
    );
    assert!(
        h.send(
            &Command {
                arg: 0,
                ..Command::op(16)
            }
            .frame()
        )
        .is_empty()
    );
    assert_eq!(
        h.send(
            &Command {
                arg: 1,
                ..Command::op(16)
            }
            .frame()
        )
        .len(),
        1
    );
}

#[test]
fn log_messages_are_kept_on_request() {
    let mut h = Harness::with(Options {
        keep_log: true,
        ..options()
    });
    let z = h
        .run(Command {
            wide: 77,
            ..Command::op(15)
        })
        .z;
    assert_eq!(h.pipeline.take_log(), [format!("hash {z} of 77")]);
}

#[test]
fn constant_entries_match_in_program_order() {
    let mut h = Harness::new();
    let port = |h: &mut Harness, op| h.send(&Command::op(op).frame())[0].0;
    assert_eq!([port(&mut h, 0x1a), port(&mut h, 0x30)], [11, 1]);
    let sent = h.send(
        &Command {
            arg: 1,
            ..Command::op(0x10)
        }
        .frame(),
    );
    assert_eq!(sent[0].0, 10);
}

#[test]
fn direct_meters_drop_and_direct_counters_count() {
    let mut h = Harness::new();
    let acl = h.info.table("I.acl").unwrap();
    let fields = vec![
        ternary(0x0200_0000_0001, 0xffff_ffff_ffff),
        MatchField::Range {
            low: 0x9000u64.into(),
            high: 0x9003u64.into(),
        },
        MatchField::Optional(None),
    ];
    let k = key(fields, 10);
    let action = h.call("I.acl", "I.note", &[1]);
    h.pipeline
        .insert_entry(
            acl,
            Entry {
                key: k.clone(),
                action,
                idle_timeout: 0,
            },
            0,
        )
        .unwrap();
    let config = MeterConfig {
        cir: 0,
        cburst: 1,
        pir: 0,
        pburst: 1,
        eburst: 0,
    };
    h.pipeline
        .set_direct_meter(acl, Some(&k), Some(config))
        .unwrap();
    let frame = Command::op(99).frame();
    assert_eq!(h.send(&frame).len(), 1);
    assert_eq!(h.send(&frame).len(), 0, "red");
    let state = h.pipeline.entry(acl, &k).unwrap();
    assert_eq!(
        (state.counter.unwrap().packets, state.meter),
        (2, Some(config))
    );
}

#[test]
fn value_set_members_select_parser_state() {
    let mut h = Harness::new();
    let id = h
        .info
        .value_set("P.command_types")
        .or_else(|| h.info.value_set("ParserImpl.command_types"));
    let id = id.expect("the value set");
    let mut frame = Command {
        x: 1,
        z: 9,
        ..Command::op(1)
    }
    .frame();
    frame[12..14].copy_from_slice(&[0x77, 0x77]);
    h.run(Command {
        x: 1,
        z: 1,
        ..Command::op(1)
    });
    assert_eq!(h.send(&frame), [(1, frame.clone())], "not a command yet");
    h.pipeline
        .set_value_set(id, vec![vec![MatchField::Exact(0x7777u64.into())]])
        .unwrap();
    assert_eq!(Command::parse(&h.send(&frame)[0].1).z, 10);
    assert_eq!(h.pipeline.value_set(id).unwrap().len(), 1);
    let too_wide = vec![vec![MatchField::Exact(0x1_7777u64.into())]];
    assert!(h.pipeline.set_value_set(id, too_wide).is_err());
    assert_eq!(h.pipeline.value_set(id).unwrap().len(), 1);
}

#[test]
fn descriptor_has_port_priority_and_length() {
    let mut h = Harness::new();
    let mut out = Vec::new();
    let frame = [ethernet(0x9001), vec![2, 1, 1]].concat();
    h.pipeline.ingress(1, &frame, 0, &mut out);
    let d = out.pop().unwrap();
    assert_eq!(
        (d.egress_port, d.priority, d.len as usize),
        (1, 3, frame.len())
    );
    h.pipeline.recycle(d);
    assert_eq!(&frame[..6], &DST);
}

#[test]
fn mark_to_drop_writes_the_given_header() {
    use softswitch_pipeline::{Pipeline, Program};
    // The action marks a copy of the standard metadata and copies it back.
    let text = include_str!("programs/drop_copy.json");
    let mut p = Pipeline::new(Program::load(text).unwrap(), options());
    let mut out = Vec::new();
    assert_eq!(
        p.ingress(1, &ethernet(1), 0, &mut out),
        IngressOutcome::Dropped
    );
    assert_eq!(
        p.ingress(1, &ethernet(2), 0, &mut out),
        IngressOutcome::Unicast
    );
    assert_eq!(out[0].egress_port, 4);
}

#[test]
fn keys_and_conditions_may_use_computed_stack_elements() {
    use softswitch_pipeline::{Pipeline, Program};
    let text = include_str!("programs/stack_index.json");
    let mut p = Pipeline::new(Program::load(text).unwrap(), options());
    // Index, two items of a stack of three, result, port: 5 for a valid element.
    for (index, items, result, port) in [
        (0, [5, 7], 50, 5),
        (1, [5, 6], 60, 5),
        (1, [6, 7], 7, 5),
        // An unfilled element, and an index beyond the stack.
        (2, [5, 8], 8, 4),
        (3, [5, 9], 9, 4),
        (255, [5, 6], 6, 4),
    ] {
        let frame = [index, 0, items[0], items[1], 0xee];
        let expected = vec![index, result, items[0], items[1], 0xee];
        let sent = common::through(&mut p, 1, &frame, 0);
        assert_eq!(sent, [(port, expected)], "{frame:?}");
    }
}

#[test]
fn next_stack_element_can_be_assigned() {
    use softswitch_pipeline::{Pipeline, Program};
    let mut json: serde_json::Value =
        serde_json::from_str(include_str!("programs/stack_index.json")).unwrap();
    // hdr.items.next = hdr.items[0] in place of the second extraction, as p4c writes it.
    json["parsers"][0]["parse_states"][0]["parser_ops"][2] = serde_json::json!({
        "op": "primitive",
        "parameters": [{"op": "assign_header", "parameters": [
            {"type": "stack_field", "value": ["items", "next"]},
            {"type": "header", "value": "items[0]"},
        ]}],
    });
    let mut p = Pipeline::new(Program::load(&json.to_string()).unwrap(), options());
    // The element is filled, but the last extracted element is still the previous one.
    for (index, item, result, port) in [(0, 5, 50, 5), (1, 6, 60, 5), (2, 7, 7, 4)] {
        let sent = common::through(&mut p, 1, &[index, 0, item, 0xee], 0);
        assert_eq!(sent, [(port, vec![index, result, item, item, 0xee])]);
    }
}
