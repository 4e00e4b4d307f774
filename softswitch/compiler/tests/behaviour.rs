// SPDX-License-Identifier: Apache-2.0
//! Runs compiled programs in the pipeline, and checks their packets against the language's semantics.

mod common;

use softswitch_pipeline::{
    EgressOutcome, EgressOutput, IngressOutcome, MatchField, Options, Pipeline, Program, QueueInfo,
    Value,
};

fn load(name: &str) -> Pipeline {
    pipeline(common::compile_program(name))
}

fn pipeline(output: softswitch_p4c::Output) -> Pipeline {
    let program = Program::load(&output.json.unwrap().to_string()).unwrap();
    Pipeline::new(program, Options::default())
}

/// A program that answers with two bytes `h` and a stack `s` of three more.
fn small(parsing: &str, ingress: &str) -> Pipeline {
    pipeline(common::compile_frame(
        "header h_t { bit<8> a; bit<8> b; }\nstruct headers { h_t h; h_t[3] s; }\nstruct metadata { }\n",
        parsing,
        ingress,
    ))
}

/// Sends a frame into port 0; the answer, if it is not dropped.
fn send(pipeline: &mut Pipeline, frame: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let outcome = pipeline.ingress(0, frame, 1_000_000, &mut out);
    if !matches!(outcome, IngressOutcome::Unicast) {
        return None;
    }
    let mut egress = EgressOutput::default();
    match pipeline.egress(
        out.swap_remove(0),
        QueueInfo::default(),
        1_000_000,
        &mut egress,
    ) {
        EgressOutcome::Transmit { .. } => Some(egress.frame.into()),
        _ => None,
    }
}

/// The result of one operation of a calculator program, with both operands as they are after it.
fn calculate(pipeline: &mut Pipeline, op: u8, a: u32, b: u32) -> Option<(u32, u32, u32)> {
    let mut frame = vec![op];
    frame.extend(a.to_be_bytes());
    frame.extend(b.to_be_bytes());
    frame.extend([0; 4]);
    let answer = send(pipeline, &frame)?;
    let word = |i: usize| u32::from_be_bytes(answer[i..i + 4].try_into().expect("four bytes"));
    Some((word(9), word(1), word(5)))
}

fn result(pipeline: &mut Pipeline, op: u8, a: u32, b: u32) -> u32 {
    calculate(pipeline, op, a, b).expect("an answer").0
}

#[test]
fn instances_have_separate_registers_tables_and_constants() {
    let mut p = load("instances");
    // Level 1: 0 + 5 + 1 = 6; level 2: 0 + 6 + 10 = 16.
    assert_eq!(result(&mut p, 1, 5, 0), 16);
    // Level 1: 6 + 5 + 1 = 12; level 2: 16 + 12 + 10 = 38.
    assert_eq!(result(&mut p, 1, 5, 0), 38);
    // Both tables hit: level 1: 12 + 0 + 101 = 113; level 2: 38 + 113 + 110 = 261.
    assert_eq!(result(&mut p, 2, 0, 0), 261);
}

#[test]
fn instance_applied_in_several_places_uses_each_argument() {
    let mut p = load("instances");
    assert_eq!(calculate(&mut p, 8, 3, 5), Some((26, 6, 20)));
}

#[test]
fn exit_in_table_action_copies_out() {
    let mut p = load("instances");
    // Outputs are copied back in order, so the second one stays; exit skips what follows.
    assert_eq!(result(&mut p, 7, 0, 1), 5);
    assert_eq!(result(&mut p, 7, 0, 2), 6 + 100);
}

#[test]
fn resubmission_preserves_only_annotated_fields() {
    let mut p = load("instances");
    assert_eq!(result(&mut p, 9, 7, 9), 7);
}

#[test]
fn functions_are_inlined_by_value() {
    let mut p = load("language");
    assert_eq!(result(&mut p, 1, 3, 8), 3 + 8);
    assert_eq!(result(&mut p, 1, 4, 2), 9 + 4);
}

#[test]
fn loops_run_with_known_and_unknown_iterations() {
    let mut p = load("language");
    let fixed = (1 + 2 + 4) + ((1 + 2 + 3) << 8);
    assert_eq!(result(&mut p, 2, 7, 100), fixed + (4 << 16));
    assert_eq!(result(&mut p, 2, 700, 5), fixed + (5 << 16));
    assert_eq!(result(&mut p, 2, 0, 5), fixed);
}

#[test]
fn signed_and_saturating_arithmetic_is_correct() {
    let mut p = load("language");
    let minus_four = -4i32 as u32;
    assert_eq!(result(&mut p, 3, minus_four, 1), (-2i32) as u32 + 1);
    assert_eq!(result(&mut p, 3, 6, 9), 3);
}

#[test]
fn slices_are_read_and_written() {
    let mut p = load("language");
    let expected = 0x5678_0000 | 0xbbcc | 0x78;
    assert_eq!(result(&mut p, 4, 0x1234_5678, 0xaabb_ccdd), expected);
}

#[test]
fn operands_are_evaluated_from_left_to_right() {
    let mut p = load("language");
    assert_eq!(result(&mut p, 5, 10, 0), 10 + 11 * 16 + 11);
}

#[test]
fn actions_copy_in_and_out_and_return_early() {
    let mut p = load("language");
    // a and b change places first, so the key is the old a.
    assert_eq!(calculate(&mut p, 6, 0x15, 11), Some((5, 11, 0x15)));
    assert_eq!(calculate(&mut p, 6, 0x15, 3), Some((6, 3, 0x15)));
    assert_eq!(calculate(&mut p, 6, 0x20, 3), Some((0, 3, 0x20)));
}

#[test]
fn structs_and_tuples_are_copied_by_value() {
    let mut p = load("language");
    assert_eq!(result(&mut p, 7, 30, 100), 70);
}

/// A part of a struct that is itself an argument keeps its value, although the struct is not copied.
#[test]
fn overlapping_arguments_are_read_before_the_call() {
    let output = common::compile_frame(
        "header h_t { bit<8> a; bit<8> b; }\nstruct headers { h_t h; }\nstruct metadata { bit<8> unused; bit<8> a; bit<8> b; }\n\
         control Add(inout metadata m, in bit<8> x) { apply { m.a = m.a + x; m.b = m.b + x; } }\n",
        "meta.a = hdr.h.a; meta.b = hdr.h.b;",
        "Add() add;
         apply {
             std.egress_spec = 1;
             add.apply(meta, meta.a);
             hdr.h.a = meta.a;
             hdr.h.b = meta.b;
         }",
    );
    let json = output.json.clone().unwrap().to_string();
    assert_eq!(json.matches("unused").count(), 1, "{json}");
    assert_eq!(send(&mut pipeline(output), &[5, 30]), Some(vec![10, 35]));
}

#[test]
fn exit_copies_out_and_ends_the_pipeline() {
    let mut p = load("language");
    assert_eq!(result(&mut p, 8, 0, 0), 77);
}

#[test]
fn default_of_a_switch_drops() {
    let mut p = load("language");
    assert_eq!(calculate(&mut p, 200, 0, 0), None);
}

#[test]
fn stacks_are_filled_by_a_loop_in_a_subparser() {
    let mut p = load("parsing");
    let answer = send(&mut p, &[1, 0, 0x10, 0x12, 0x15, 9, 9, 7]).expect("an answer");
    // The count of labels, and a new first label that pushes the rest back.
    assert_eq!(answer, [1, 0, 0xaa, 0x10, 0x12, 0x15, 0, 3, 7]);
    let answer =
        send(&mut p, &[1, 0, 0x10, 0x12, 0x14, 0x16, 0x18, 0x15, 9, 9, 7]).expect("an answer");
    assert_eq!(answer[6..9], [0, 0, 0xee], "too many labels: {answer:?}");
}

#[test]
fn variable_length_options_are_extracted_and_emitted() {
    let mut p = load("parsing");
    let answer = send(&mut p, &[2, 3, 0xa, 0xb, 0xc, 1, 2, 3]).expect("an answer");
    assert_eq!(answer, [2, 3, 0xaa, 0xa, 0xb, 0xc, 0, 0, 3]);
    // The length is cut to 8 by the branch in the parser.
    let answer = send(&mut p, &[2, 9, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3]).expect("an answer");
    assert_eq!(answer[..2], [2, 8]);
}

#[test]
fn lookahead_does_not_consume() {
    let mut p = load("parsing");
    let answer = send(&mut p, &[7, 0, 1, 2, 0xff, 4]).expect("an answer");
    assert_eq!(answer, [7, 0, 0, 0, 0xff, 0xff, 4]);
}

#[test]
fn value_sets_are_filled_at_run_time() {
    let mut p = load("parsing");
    let frame = [0x20, 0, 1, 2, 3];
    assert_eq!(
        send(&mut p, &frame).expect("an answer"),
        [0x20, 0, 0, 0, 0, 1, 2, 3]
    );
    let set = p
        .program()
        .info()
        .value_set("P.kinds")
        .expect("the value set is known");
    p.set_value_set(set, vec![vec![MatchField::Exact(Value::from(0x20u32))]])
        .expect("a member fits");
    assert_eq!(
        send(&mut p, &frame).expect("an answer"),
        [0x20, 0, 0xaa, 0, 0, 3]
    );
}

#[test]
fn externs_compute_expected_values() {
    let mut p = load("externs");
    let (result, _, _) = calculate(&mut p, 2, 1, 2).expect("an answer");
    // CRC-32 of 00 00 00 01, 01, 02.
    assert_eq!(result, 0x4715_9bf9);
    let digests = {
        calculate(&mut p, 1, 1, 2).expect("an answer");
        p.take_digests()
    };
    assert_eq!(digests.len(), 1);
}

#[test]
fn loop_range_may_be_known_only_at_run_time() {
    let mut p = load("corners");
    let mut sum = |low, high| send(&mut p, &[1, low, high, 0]).expect("an answer")[1];
    assert_eq!(sum(5, 9), 5 + 6 + 8 + 9);
    assert_eq!(sum(9, 5), 0);
    assert_eq!(
        sum(254, 255),
        254,
        "the loop ends at the largest value, too"
    );
    assert_eq!(sum(60, 90), 60 + 61);
}

#[test]
fn elements_are_extracted_by_a_computed_index() {
    let mut p = load("corners");
    let answer = send(&mut p, &[2, 9, 0, 0, 8, 0, 5]).expect("an answer");
    assert_eq!(answer, [2, 0, 0, 0, 8, 0, 5]);
    let answer = send(&mut p, &[2, 9, 0, 0, 8, 8, 8, 8]).expect("an answer");
    assert_eq!(answer[1], 1, "the stack does not have a fourth element");
}

#[test]
fn constants_convert_to_parameters_and_new_types() {
    let mut p = load("corners");
    assert_eq!(send(&mut p, &[3, 5, 0, 127]), Some(vec![3, 15, 0x40, 128]));
    assert_eq!(send(&mut p, &[3, 5, 1, 0xff]), Some(vec![3, 15, 5, 0]));
}

#[test]
fn next_header_of_stack_can_be_assigned() {
    let mut p = small(
        "p.extract(hdr.s.next); hdr.s.next = hdr.h;",
        "apply { hdr.s[1].b = 9; }",
    );
    assert_eq!(send(&mut p, &[1, 2, 3, 4]), Some(vec![1, 2, 3, 4, 1, 9]));
    let mut p = small(
        "hdr.s.next.setValid();",
        "apply { hdr.s[0].a = 7; hdr.s[0].b = 8; }",
    );
    assert_eq!(send(&mut p, &[1, 2]), Some(vec![1, 2, 7, 8]));
}

#[test]
fn first_of_entries_with_same_keys_wins() {
    for kind in ["exact", "lpm"] {
        let ingress = format!(
            "action set(bit<8> b) {{ hdr.h.b = b; }}\n\
             table t {{ key = {{ hdr.h.a: {kind}; }} actions = {{ set; }}\n\
             const entries = {{ 1: set(5); 1: set(6); 2: set(7); }} }} apply {{ t.apply(); }}"
        );
        let mut p = small("", &ingress);
        assert_eq!(send(&mut p, &[1, 0]), Some(vec![1, 5]));
        assert_eq!(send(&mut p, &[2, 0]), Some(vec![2, 7]));
    }
}

#[test]
fn hash_includes_fields_of_invalid_headers() {
    let hash = |data: &str| {
        let ingress = format!(
            "apply {{
                bit<8> zero = 0;
                hash(hdr.h.b, HashAlgorithm.crc16, 8w0, {{ {data} }}, 9w256);
                hdr.s[0].a = 7;
                hash(hdr.h.a, HashAlgorithm.crc16, 8w0, {{ {data} }}, 9w256);
             }}"
        );
        send(&mut small("", &ingress), &[1, 2])
    };
    let invalid = hash("hdr.h.b, hdr.s[0].a").expect("a packet");
    // The first hash of (2, 0), then the hash of that and 7.
    let zeros = hash("hdr.h.b, zero").expect("a packet");
    let seven = hash("hdr.h.b, 8w7").expect("a packet");
    assert_eq!(invalid[1], zeros[1]);
    assert_ne!(invalid[0], zeros[0]);
    assert_ne!(zeros[1], seven[1]);
}

#[test]
fn quotients_by_constants_are_computed() {
    let mut p = small(
        "",
        "apply { hdr.h.b = hdr.h.a % 8 + hdr.h.a / 16; hdr.h.a = hdr.h.a / 1; }",
    );
    assert_eq!(send(&mut p, &[0xa7, 0]), Some(vec![0xa7, 17]));
    let mut p = small("", "apply { hdr.h.b = hdr.h.a % 7 + hdr.h.a / 10; }");
    assert_eq!(send(&mut p, &[100, 0]), Some(vec![100, 12]));
}

#[test]
fn conditional_expression_may_be_part_of_a_condition() {
    let condition = "((hdr.h.a < 4 ? hdr.h.b == 1 : hdr.h.b == 2) ? hdr.h.a != 3 : hdr.h.a == 9)
                     ? hdr.h.a > 1 : hdr.h.b == 3";
    let expected = |a: u8, b: u8| {
        let inner = if a < 4 { b == 1 } else { b == 2 };
        let outer = if inner { a != 3 } else { a == 9 };
        if outer { a > 1 } else { b == 3 }
    };
    let branch = format!("if ({condition}) {{ hdr.h.b = 100; }} else {{ hdr.h.b = 200; }}");
    let value = format!("bool c = {condition}; hdr.h.b = c ? 8w100 : 200;");
    for statement in [&branch, &value] {
        let in_control = format!("apply {{ {statement} }}");
        let in_action = format!(
            "action a() {{ {statement} }}
             table t {{ actions = {{ a; }} default_action = a; }} apply {{ t.apply(); }}"
        );
        for ingress in [in_control, in_action] {
            let mut p = small("", &ingress);
            for (a, b) in (0..12).flat_map(|a| (0..4).map(move |b| (a, b))) {
                let result = if expected(a, b) { 100 } else { 200 };
                assert_eq!(
                    send(&mut p, &[a, b]),
                    Some(vec![a, result]),
                    "{a} {b} {ingress}"
                );
            }
        }
    }
}

#[test]
fn conditional_expression_in_parser_decides() {
    let mut p = small(
        "if ((hdr.h.a == 1 ? hdr.h.b == 2 : hdr.h.b == 3) ? hdr.h.a < 5 : false) { hdr.h.a = 77; }",
        "apply { }",
    );
    assert_eq!(send(&mut p, &[1, 2]), Some(vec![77, 2]));
    assert_eq!(send(&mut p, &[1, 3]), Some(vec![1, 3]));
    assert_eq!(send(&mut p, &[4, 3]), Some(vec![77, 3]));
    assert_eq!(send(&mut p, &[9, 3]), Some(vec![9, 3]));
}

#[test]
fn outcome_of_table_decides_compound_conditions() {
    type Decision = fn(hit: bool, b: u8) -> bool;
    let cases: [(&str, Decision); 11] = [
        ("true && t.apply().hit", |hit, _| hit),
        ("t.apply().hit == false", |hit, _| !hit),
        ("!(t.apply().hit ? false : true)", |hit, _| hit),
        ("false ? hdr.h.isValid() : t.apply().miss", |hit, _| !hit),
        ("t.apply().hit && hdr.h.b == 5", |hit, b| hit && b == 5),
        ("hdr.h.b == 5 || t.apply().hit", |hit, b| b == 5 || hit),
        ("hdr.h.b == 5 ? t.apply().hit : true", |hit, b| {
            b != 5 || hit
        }),
        ("t.apply().hit ? hdr.h.b == 5 : hdr.h.b == 6", |hit, b| {
            b == if hit { 5 } else { 6 }
        }),
        ("t.apply().hit && false", |_, _| false),
        ("t.apply().miss || true", |_, _| true),
        ("false && t.apply().hit", |_, _| false),
    ];
    for (condition, expected) in cases {
        let ingress = format!(
            "table t {{ key = {{ hdr.h.a: exact; }} actions = {{ NoAction; }} const entries = {{ 1: NoAction(); }} }}
             apply {{ if ({condition}) {{ hdr.h.b = 100; }} else {{ hdr.h.b = 200; }} }}"
        );
        let mut p = small("", &ingress);
        for (a, b) in [(1, 5), (1, 6), (2, 5), (2, 6)] {
            let result = if expected(a == 1, b) { 100 } else { 200 };
            assert_eq!(send(&mut p, &[a, b]), Some(vec![a, result]), "{condition}");
        }
    }
}

#[test]
fn algebraic_identities_keep_values() {
    type Value = fn(a: u8, b: u8) -> u8;
    let cases: [(&str, Value); 22] = [
        ("hdr.h.a - 3 + 5", |a, _| a.wrapping_add(2)),
        ("5 + hdr.h.a + 255", |a, _| a.wrapping_add(4)),
        ("hdr.h.a << 1 << 2", |a, _| a << 3),
        ("hdr.h.a >> 3 >> 2", |a, _| a >> 5),
        ("hdr.h.a << 4 << 5", |_, _| 0),
        ("(bit<8>) ((int<8>) hdr.h.a >> 3 >> 2)", |a, _| {
            (a as i8 >> 5) as u8
        }),
        ("hdr.h.a * 3 * 5", |a, _| a.wrapping_mul(15)),
        ("hdr.h.a & 0x3c & 0x0f", |a, _| a & 0x0c),
        ("hdr.h.a | 3 | 0x30", |a, _| a | 0x33),
        ("hdr.h.a ^ 3 ^ 9", |a, _| a ^ 10),
        ("~hdr.h.a | ~hdr.h.b", |a, b| !a | !b),
        ("~hdr.h.a & ~hdr.h.b", |a, b| !a & !b),
        ("0 - hdr.h.a", |a, _| a.wrapping_neg()),
        ("8w0 |-| hdr.h.a", |_, _| 0),
        ("(bit<8>) (8s0 |-| (int<8>) hdr.h.a)", |a, _| {
            (a as i8).saturating_neg() as u8
        }),
        ("hdr.h.a |-| hdr.h.a", |_, _| 0),
        ("hdr.h.a |+| 255", |_, _| 255),
        ("hdr.h.a == 1 ? hdr.h.b : hdr.h.b", |_, b| b),
        ("!(hdr.h.a < hdr.h.b) ? 8w1 : 0", |a, b| u8::from(a >= b)),
        ("!(hdr.h.a > hdr.h.b) ? 8w1 : 0", |a, b| u8::from(a <= b)),
        ("(int<8>) hdr.h.a > 127 ? 8w1 : 0", |_, _| 0),
        ("(int<8>) hdr.h.a >= 127 ? 8w1 : 0", |a, _| {
            u8::from(a == 127)
        }),
    ];
    for (expression, expected) in cases {
        let mut p = small("", &format!("apply {{ hdr.h.b = {expression}; }}"));
        for (a, b) in [
            (0, 0),
            (1, 7),
            (9, 9),
            (127, 128),
            (128, 127),
            (200, 255),
            (255, 1),
        ] {
            assert_eq!(
                send(&mut p, &[a, b]),
                Some(vec![a, expected(a, b)]),
                "{expression} of {a} and {b}"
            );
        }
    }
}
