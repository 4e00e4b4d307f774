// SPDX-License-Identifier: Apache-2.0
use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const KEYS: [Variable<'static>; 6] = [
    key("e", Kind::Exact, 16),
    key("t.a", Kind::Ternary, 8),
    key("o", Kind::Optional, 8),
    key("l", Kind::Lpm, 32),
    key("r", Kind::Range, 8),
    Variable {
        name: "s",
        r#type: None,
    },
];

const fn key(name: &'static str, kind: Kind, width: u32) -> Variable<'static> {
    Variable {
        name,
        r#type: Some(Type::Key(kind, width)),
    }
}

/// The numbers of an entry; absent ones are 0.
#[derive(Default)]
struct Numbers(HashMap<(usize, &'static str), i64>, i64);

impl Environment for Numbers {
    fn number(&self, input: Input) -> BigInt {
        let number = match input {
            Input::Priority => Some(&self.1),
            Input::Variable(index, part) => self.0.get(&(index, part_name(part))),
        };
        number.copied().unwrap_or(0).into()
    }
}

fn part_name(part: Part) -> &'static str {
    match part {
        Part::Value => "value",
        Part::Mask => "mask",
        Part::PrefixLength => "prefix_length",
        Part::Low => "low",
        Part::High => "high",
    }
}

fn entry(numbers: &[((usize, &'static str), i64)], priority: i64) -> Numbers {
    Numbers(numbers.iter().copied().collect(), priority)
}

fn parse(text: &str) -> Restriction {
    Restriction::new(text, &KEYS, true).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn holds(text: &str, entry: &Numbers) -> bool {
    parse(text).violation(entry).is_none()
}

#[test]
fn operators_bind_as_in_specification() {
    let empty = Numbers::default();
    for (text, expected) in [
        ("true", true),
        ("false;", false),
        ("true; false", false),
        ("!false", true),
        ("!!false", false),
        ("true || true && false", true),
        ("(true || true) && false", false),
        ("false -> false || false", true),
        ("true -> false; true", false),
        ("(true; false;) || true", true),
        ("false -> (true -> false)", true),
        (
            "1 < 2 && 2 <= 2 && 3 > 2 && 2 >= 2 && 1 == 1 && 1 != 2",
            true,
        ),
        ("true != false", true),
        ("(1 == 1) == true", true),
        ("--2 == 2 && -1 < 0", true),
        (
            "0x1F == 31 && 0b101 == 5 && 0o17 == 15 && 0d10 == 10 && 007 == 7",
            true,
        ),
        ("// comment\n 1 == 1 /* 2 == 1 */", true),
    ] {
        assert_eq!(holds(text, &empty), expected, "{text}");
    }
}

#[test]
fn parts_of_keys_and_priority_are_numbers() {
    let numbers = entry(
        &[
            ((0, "value"), 0x0800),
            ((1, "value"), 3),
            ((1, "mask"), 7),
            ((3, "prefix_length"), 24),
            ((4, "low"), 1),
            ((4, "high"), 9),
        ],
        5,
    );
    for (text, expected) in [
        ("e == 0x0800 && e::value == 0x0800", true),
        ("t.a::value == 3 && t.a::mask == 7", true),
        ("t.a :: mask != 7", false),
        ("l::prefix_length == 24 && l::prefix_length < 32", true),
        ("-l::prefix_length == -24", true),
        ("r::low == 1 && r::high == 9", true),
        ("::priority == 5 && ::priority > e", false),
    ] {
        assert_eq!(holds(text, &numbers), expected, "{text}");
    }
}

#[test]
fn key_equals_number_only_if_it_matches_nothing_else() {
    for (numbers, text, expected) in [
        (
            vec![((1, "value"), 3), ((1, "mask"), 255)],
            "t.a == 3",
            true,
        ),
        (vec![((1, "value"), 3), ((1, "mask"), 7)], "t.a == 3", false),
        (vec![((1, "value"), 3), ((1, "mask"), 7)], "t.a != 3", true),
        (vec![((2, "value"), 3), ((2, "mask"), 255)], "3 == o", true),
        (
            vec![((3, "value"), 3), ((3, "prefix_length"), 32)],
            "l == 3",
            true,
        ),
        (
            vec![((3, "value"), 3), ((3, "prefix_length"), 31)],
            "l == 3",
            false,
        ),
        (vec![((4, "low"), 3), ((4, "high"), 3)], "r == 3", true),
        (vec![((4, "low"), 3), ((4, "high"), 4)], "r == 3", false),
        (vec![((4, "low"), 3), ((4, "high"), 4)], "r == r", true),
    ] {
        assert_eq!(holds(text, &entry(&numbers, 0)), expected, "{text}");
    }
}

#[test]
fn numbers_wrap_to_width_of_key() {
    let ones = entry(&[((1, "mask"), 255), ((0, "value"), 0xffff)], 0);
    assert!(holds("t.a::mask == -1 && e == -1 && e == 0x1ffff", &ones));
    assert!(holds("-e == 1 && -t.a::mask == 1", &ones));
    // A priority is an integer, and does not wrap.
    assert!(!holds("::priority == 0x100000000", &ones));
}

#[test]
fn addresses_are_numbers() {
    let numbers = entry(&[((3, "value"), 0x0a00_0001)], 0);
    assert!(holds("l::value == ipv4('10.0.0.1')", &numbers));
    assert!(holds(
        "mac('00:00:00:00:01:02') == 0x102 && ipv6('::2') == 2",
        &numbers
    ));
}

#[test]
fn violation_names_clause_and_inputs() {
    let restriction = parse("true;\n  // why\n  t.a::mask != 0 ->\n    ::priority > 5 && e == e;");
    let numbers = entry(&[((1, "mask"), 1)], 3);
    let violation = restriction.violation(&numbers).unwrap();
    assert_eq!(
        violation.clause,
        "t.a::mask != 0 -> ::priority > 5 && e == e"
    );
    let e = Input::Variable(0, Part::Value);
    let expected = [Input::Variable(1, Part::Mask), Input::Priority, e];
    assert_eq!(violation.inputs, expected);
    // Each operand of `&&` is a clause.
    assert_eq!(
        parse("true && false").violation(&numbers).unwrap().clause,
        "false"
    );
}

#[test]
fn malformed_restrictions_are_errors_with_place_and_reason() {
    for (text, expected) in [
        ("", "1:1: expected an expression, not the end"),
        (
            "true;\n  x == 1",
            "2:3: unknown key `x`: use e, t.a, o, l, r, s",
        ),
        ("1 ==", "1:5: expected an expression, not the end"),
        ("e == 1 e == 2", "1:8: expected an operator or `;`, not `e`"),
        ("1 == 1 == 1", "1:8: comparisons cannot be chained"),
        ("true -> true -> true", "1:14: `->` cannot be chained"),
        ("e", "1:1: expected a condition, not bit<16>"),
        ("!e == 1", "1:2: expected a condition, not bit<16>"),
        (
            "t.a < 1",
            "1:1: cannot compare ternary match of 8 bits with int",
        ),
        (
            "e == t.a",
            "1:1: cannot compare bit<16> with ternary match of 8 bits",
        ),
        ("e == true", "1:1: cannot compare bit<16> with bool"),
        ("true < false", "1:1: cannot compare bool with bool"),
        ("e == r::low", "1:1: cannot compare bit<16> with bit<8>"),
        ("o == t.a", "1:1: cannot compare optional match"),
        (
            "t.a::prefix_length == 1",
            "1:1: `t.a` is ternary match of 8 bits, which has no part `prefix_length`: use value or mask",
        ),
        (
            "s == 1",
            "1:1: `s` cannot be used: its type is translated to strings",
        ),
        ("::name == 1", "1:1: unknown `::name`: use `::priority`"),
        ("(e == 1", "1:8: expected `)`, not the end"),
        ("e == 1)", "1:7: expected an operator or `;`, not `)`"),
        ("e == 0x", "1:6: invalid number `0x`"),
        ("e == 12a", "1:6: invalid number `12a`"),
        ("e ? 1", "1:3: unexpected character `?`"),
        ("e /* open", "1:3: the comment has no end"),
        ("e == ipv4('1.2.3')", "1:11: invalid ipv4 address '1.2.3'"),
        ("e == f('1')", "1:6: unknown function `f`"),
        ("e == mac(1)", "1:10: expected an address in single quotes"),
        ("e == mac('1", "1:10: the string has no end"),
        ("1::value == 1", "1:1: only keys have parts"),
        ("- true == 1", "1:3: expected a number after `-`"),
        ("\u{fc} == 1", "1:1: unexpected character"),
    ] {
        let error = Restriction::new(text, &KEYS, true).unwrap_err();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}

#[test]
fn actions_have_parameters_without_parts_and_no_priority() {
    let params = [Variable {
        name: "port",
        r#type: Some(Type::Bits(9)),
    }];
    let restriction = Restriction::new("port != 0", &params, false).unwrap();
    assert!(
        restriction
            .violation(&entry(&[((0, "value"), 0)], 0))
            .is_some()
    );
    assert!(
        restriction
            .violation(&entry(&[((0, "value"), 1)], 0))
            .is_none()
    );
    for (text, expected) in [
        ("port::value == 1", "1:1: `port` is a parameter"),
        ("::priority == 1", "1:1: an action does not have a priority"),
        ("x == 1", "1:1: unknown parameter `x`: use port"),
    ] {
        let error = Restriction::new(text, &params, false).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    let error = Restriction::new("x == 1", &[], false).unwrap_err();
    assert!(error.contains("there are none"), "{error}");
}

#[test]
fn deep_nesting_is_refused() {
    for text in [
        "(".repeat(100_000),
        "!".repeat(100_000),
        "-".repeat(100_000),
    ] {
        let error = Restriction::new(&text, &KEYS, true).unwrap_err();
        assert!(error.contains("nested"), "{error}");
    }
    let long = vec!["e == 1"; 10_000].join(" || ");
    assert!(Restriction::new(&long, &KEYS, true).is_ok());
}

/// A condition with its value for two variables.
#[derive(Debug, Clone)]
enum Model {
    Constant(bool),
    /// A comparison of `e` or `::priority` with a number.
    Compare(bool, &'static str, u16),
    Not(Box<Model>),
    Binary(&'static str, Box<Model>, Box<Model>),
}

impl Model {
    fn text(&self) -> String {
        match self {
            Self::Constant(value) => value.to_string(),
            Self::Compare(true, operator, number) => format!("e {operator} {number}"),
            Self::Compare(false, operator, number) => format!("{number:#x} {operator} ::priority"),
            Self::Not(operand) => format!("!({})", operand.text()),
            Self::Binary(operator, a, b) => format!("({}) {operator} ({})", a.text(), b.text()),
        }
    }

    fn value(&self, e: u16, priority: u16) -> bool {
        match self {
            Self::Constant(value) => *value,
            Self::Compare(is_e, operator, number) => {
                let (a, b) = if *is_e {
                    (e, *number)
                } else {
                    (*number, priority)
                };
                match *operator {
                    "==" => a == b,
                    "!=" => a != b,
                    "<" => a < b,
                    "<=" => a <= b,
                    ">" => a > b,
                    _ => a >= b,
                }
            }
            Self::Not(operand) => !operand.value(e, priority),
            Self::Binary(operator, a, b) => {
                let (a, b) = (a.value(e, priority), b.value(e, priority));
                match *operator {
                    "&&" | ";" => a && b,
                    "||" => a || b,
                    "->" => !a || b,
                    "==" => a == b,
                    _ => a != b,
                }
            }
        }
    }
}

fn models() -> impl Strategy<Value = Model> {
    let comparison = prop::sample::select(vec!["==", "!=", "<", "<=", ">", ">="]);
    let leaf = prop_oneof![
        any::<bool>().prop_map(Model::Constant),
        (any::<bool>(), comparison, 0..4u16).prop_map(|(e, o, n)| Model::Compare(e, o, n)),
    ];
    leaf.prop_recursive(6, 40, 2, |inner| {
        let operator = prop::sample::select(vec!["&&", "||", "->", "==", "!=", ";"]);
        let boxed = inner.clone().prop_map(Box::new);
        prop_oneof![
            boxed.clone().prop_map(Model::Not),
            (operator, boxed.clone(), boxed).prop_map(|(o, a, b)| Model::Binary(o, a, b)),
        ]
    })
}

proptest! {
    #[test]
    fn evaluation_agrees_with_model(model in models(), e in 0..4u16, priority in 0..4u16) {
        let numbers = entry(&[((0, "value"), e.into())], priority.into());
        prop_assert_eq!(holds(&model.text(), &numbers), model.value(e, priority), "{}", model.text());
    }

    #[test]
    fn arbitrary_text_is_parsed_or_refused(text in any::<String>()) {
        let _ = Restriction::new(&text, &KEYS, true);
    }

    #[test]
    fn arbitrary_tokens_are_parsed_or_refused(
        words in prop::collection::vec(prop::sample::select(vec![
            "e", "t.a", "::", "mask", "priority", "1", "0xff", "(", ")", "!", "-", "->", "&&", "||", ";", "==",
            "<", "true", "'", "//", "/*", "*/", "\n", "ipv4", "\u{e4}", "s", "low",
        ]), 0..24),
    ) {
        let numbers = entry(&[((0, "value"), 1)], 1);
        if let Ok(restriction) = Restriction::new(&words.join(" "), &KEYS, true) {
            restriction.violation(&numbers);
        }
    }
}
