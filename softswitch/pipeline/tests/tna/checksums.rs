// SPDX-License-Identifier: Apache-2.0
//! Checksums in parsers and deparsers.

use serde_json::{Value as Json, json};

use super::common::through;
use super::common::tna::{Tna, assign, call, field, list, number, object, packet};
use super::{forwarding, result};

const HDR: [(&str, &str); 4] = [("hdr", "op"), ("hdr", "arg"), ("hdr", "x"), ("hdr", "y")];

fn checksum(method: &str, parameters: Vec<Json>) -> Json {
    let parameters = [vec![object("c")], parameters].concat();
    call(&format!("_Checksum_{method}"), parameters)
}

fn program() -> Tna {
    forwarding().object("c", "Checksum", &[])
}

#[test]
fn verification_reports_wrong_sums() {
    let mut p = program()
        .parser(vec![
            checksum("add", vec![list(&HDR)]),
            checksum("verify", vec![field("meta", "b")]),
        ])
        .ingress(vec![assign(("hdr", "y"), field("meta", "b"))])
        .pipeline();
    // 0x0102 + 0x0003 + 0xfefa = 0xffff
    assert_eq!(result(&mut p, &packet(1, 2, 3, 0xfefa)), 0);
    assert_eq!(result(&mut p, &packet(1, 2, 3, 0xfefb)), 1);
    assert_eq!(result(&mut p, &packet(0, 0, 0, 0)), 1, "no sum is zero");
}

#[test]
fn residual_keeps_the_checksum_right_after_a_change() {
    // The checksum in the low half of `y` covers the header and the payload.
    let mut p = program()
        .parser(vec![
            checksum(
                "subtract",
                vec![list(&[("hdr", "op"), ("hdr", "arg"), ("hdr", "y")])],
            ),
            checksum("get", vec![field("meta", "a")]),
        ])
        .ingress(vec![
            assign(("hdr", "arg"), number(0x77)),
            assign(("hdr", "y"), number(0)),
        ])
        .with("/deparsers/1/primitives", json!([]))
        .ingress_deparser(vec![checksum(
            "update",
            vec![
                field("hdr", "y"),
                list(&[("hdr", "op"), ("hdr", "arg"), ("meta", "a")]),
                number(0),
            ],
        )])
        .pipeline();
    let total = |frame: &[u8]| {
        let words = frame
            .chunks(2)
            .map(|w| u32::from(w[0]) << 8 | w.get(1).map_or(0, |&b| b.into()));
        let sum = words.sum::<u32>();
        (sum & 0xffff) + (sum >> 16)
    };
    let mut frame = packet(1, 2, 3, 0);
    let right = !total(&frame) as u16;
    frame[6..8].copy_from_slice(&right.to_be_bytes());
    assert_eq!(total(&frame), 0xffff);
    let sent = through(&mut p, 7, &frame, 0).swap_remove(0).1;
    assert_eq!((sent[1], total(&sent)), (0x77, 0xffff));
}

#[test]
fn update_may_encode_zero_as_ones() {
    for (zeros_as_ones, expected) in [(0, 0), (1, 0xffff)] {
        let fields = list(&[("hdr", "x")]);
        let update = checksum(
            "update",
            vec![field("hdr", "y"), fields, number(zeros_as_ones)],
        );
        let mut p = program()
            .ingress(vec![assign(
                ("ig_intr_md_for_tm", "ucast_egress_port"),
                number(3),
            )])
            .ingress_deparser(vec![update])
            .pipeline();
        assert_eq!(result(&mut p, &packet(0, 0, 0xffff, 9)), expected);
        assert_eq!(result(&mut p, &packet(0, 0, 1, 9)), 0xfffe);
    }
}

/// The Internet checksum of numbers with their widths, one behind the other. Zeros fill up the first byte and the last word.
fn checksum_of_bits(pieces: &[(u64, usize)]) -> u32 {
    let mut bits: String = pieces
        .iter()
        .map(|&(value, width)| format!("{value:0width$b}"))
        .collect();
    bits.insert_str(0, &"0".repeat(bits.len().next_multiple_of(8) - bits.len()));
    bits.push_str(&"0".repeat(bits.len().next_multiple_of(16) - bits.len()));
    let word = |first: usize| u32::from_str_radix(&bits[first..first + 16], 2).expect("binary");
    let sum: u32 = (0..bits.len()).step_by(16).map(word).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) & 0xffff
}

#[test]
fn update_adds_pieces_at_any_bit() {
    let constant = |value: u64, width: u32| json!({"type": "hexstr", "value": format!("{value:#x}"), "bitwidth": width});
    let wide = 0xfedc_ba98_7654_3210;
    let pieces = [
        field("hdr", "op"),
        constant(0xb, 4),
        field("meta", "wide"),
        field("ig_intr_md", "ingress_port"),
        field("data", "value"),
        constant(0x1_2345, 21),
        field("hdr", "x"),
        constant(0x7_89ab_cdef_0123, 51),
        field("hdr", "arg"),
    ];
    for first in 0..pieces.len() {
        let pieces = json!({"type": "field_list", "value": pieces[first..]});
        let mut p = program()
            .ingress(vec![assign(("meta", "wide"), number(wide))])
            .ingress_deparser(vec![checksum(
                "update",
                vec![field("hdr", "y"), pieces, number(0)],
            )])
            .pipeline();
        for (op, arg, x) in [(0, 0, 0), (1, 2, 3), (0xff, 0xff, 5), (0x80, 0x7f, 2)] {
            // `data` is invalid: it counts as zeros.
            let values = [
                (u64::from(op), 8),
                (0xb, 4),
                (wide, 64),
                (7, 9),
                (0, 64),
                (0x1_2345, 21),
                (u64::from(x), 16),
                (0x7_89ab_cdef_0123, 51),
                (u64::from(arg), 8),
            ];
            let expected = checksum_of_bits(&values[first..]);
            assert_eq!(result(&mut p, &packet(op, arg, x, 9)), expected, "{first}");
        }
    }
}

#[test]
fn residual_is_deposited_without_the_bytes_extracted_after_it() {
    let extract = |header: &str| json!({"op": "extract", "parameters": [{"type": "regular", "value": header}]});
    let mut p = program()
        .parser(vec![
            checksum("add", vec![number_list(0x1234)]),
            checksum("subtract_all_and_deposit", vec![field("meta", "a")]),
        ])
        .and("/parsers/0/parse_states/3/parser_ops", extract("data"))
        .ingress(vec![assign(("hdr", "y"), field("meta", "a"))])
        .with("/deparsers/0/order", json!(["hdr"]))
        .pipeline();
    let mut frame = packet(0, 0, 3, 0);
    frame.truncate(8);
    frame.extend([0, 1, 0, 2, 0, 3, 0, 4]);
    assert_eq!(result(&mut p, &frame), 0x1234 - 10);
}

fn number_list(value: u64) -> Json {
    let constant = json!({"type": "hexstr", "value": format!("{value:#x}"), "bitwidth": 16});
    json!({"type": "field_list", "value": [constant]})
}
