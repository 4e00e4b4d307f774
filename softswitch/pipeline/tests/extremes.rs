// SPDX-License-Identifier: Apache-2.0
//! Programs with extreme widths and depths.

mod common;

use common::ENGINES;
use common::source::{Source, ingress};
use softswitch_pipeline::{
    ActionCall, Engine, Entry, EntryAction, EntryKey, MatchField, Options, Pipeline, Program, Value,
};

fn pipeline(program: &Program, engine: Engine) -> Pipeline {
    let options = Options {
        engine,
        ..Options::default()
    };
    Pipeline::new(program.clone(), options)
}

/// Returns all ways to match a field of no bits.
fn matches(kind: &str) -> Vec<MatchField> {
    let zero = || Value::from(0u32);
    match kind {
        "exact" => vec![MatchField::Exact(zero())],
        "lpm" => vec![MatchField::Lpm {
            value: zero(),
            prefix_len: 0,
        }],
        "ternary" => vec![MatchField::Ternary {
            value: zero(),
            mask: zero(),
        }],
        "range" => vec![MatchField::Range {
            low: zero(),
            high: zero(),
        }],
        _ => vec![
            MatchField::Optional(None),
            MatchField::Optional(Some(zero())),
        ],
    }
}

#[test]
fn keys_of_no_bits_match() {
    for kind in ["exact", "lpm", "ternary", "range", "optional"] {
        for (key, others) in [("m.z", 0), ("m.w, m.z", 1), ("m.z, m.y", 1)] {
            let fields: String = key
                .split(", ")
                .map(|f| format!("{f} : {};", if f == "m.z" { kind } else { "exact" }))
                .collect();
            let text = format!(
                "action fwd() {{ s.egress_spec = 2; }}
                 table t {{ key = {{ {fields} }} actions = {{ fwd; NoAction; }} default_action = NoAction(); }}
                 apply {{ s.egress_spec = 1; t.apply(); }}"
            );
            let program = Source {
                metadata: "bit<0> z; bit<64> w; bit<0> y;",
                ingress: &text,
                ..Source::default()
            }
            .compile();
            for engine in ENGINES {
                for field in matches(kind) {
                    let mut p = pipeline(&program, engine);
                    assert_eq!(p.process(0, &[0, 0], 0)[0].0, 1, "{kind} {key}");
                    let id = p.program().info().table("I.t").unwrap();
                    let info = &p.program().info().tables[id.index()];
                    let zero = || MatchField::Exact(0u32.into());
                    let mut fields: Vec<MatchField> = (0..others).map(|_| zero()).collect();
                    let at = key.split(", ").position(|f| f == "m.z").unwrap();
                    fields.insert(at, field);
                    let priority = i32::from(info.needs_priority);
                    let call = ActionCall {
                        action: info.action("I.fwd").unwrap(),
                        args: vec![],
                    };
                    let entry = Entry {
                        key: EntryKey { fields, priority },
                        action: EntryAction::Direct(call),
                        idle_timeout: 0,
                    };
                    p.insert_entry(id, entry, 0).unwrap();
                    assert_eq!(p.process(0, &[0, 0], 0)[0].0, 2, "{kind} {key} {engine:?}");
                }
            }
        }
    }
}

#[test]
fn values_of_no_bits_are_zero() {
    let source = Source {
        metadata: "bit<0> z; bit<0> y;",
        ingress: "register<bit<0>>(4) r;
         action set(bit<0> v) { m.y = v; h.h.b = 8w7 + (bit<8>) v; }
         table t { key = { h.h.a : exact; } actions = { set; } const default_action = set(0); }
         apply {
            s.egress_spec = 1;
            t.apply();
            r.write(1, m.z);
            r.read(m.y, 1);
            m.z = m.y + m.z - (m.y ^ m.z) |+| m.y |-| m.z;
            hash(m.y, HashAlgorithm.crc16, 16w0, { m.z, h.h.a }, 16w200);
            random(m.y, 0, 0);
            if (m.z == m.y && (m.z ++ h.h.a) == h.h.a) { h.h.a = h.h.a + (bit<8>) m.z + 1; }
         }",
        ..Source::default()
    };
    let program = source.compile();
    for engine in ENGINES {
        let sent = pipeline(&program, engine).process(0, &[3, 0], 0);
        assert_eq!(sent, [(1, vec![4, 7])], "{engine:?}");
    }
}

/// Returns an ingress control that adds `h.h.b` this often to `h.h.a`, and compares the sum.
fn sum(terms: usize) -> String {
    let sum = "(".repeat(terms) + "h.h.a" + &" + h.h.b)".repeat(terms);
    format!("apply {{ s.egress_spec = 1; h.h.a = {sum}; if (({sum} >> 1) == 0) {{ h.h.b = 9; }} }}")
}

#[test]
fn nested_expressions_are_loaded() {
    let chain = format!(
        "apply {{ s.egress_spec = 1; h.h.a = h.h.a{}; }}",
        " + h.h.b".repeat(3990)
    );
    for (terms, text) in [(30, sum(30)), (700, sum(700)), (3990, chain)] {
        let program = ingress(&text);
        for engine in ENGINES {
            let sent = pipeline(&program, engine).process(0, &[1, 1], 0);
            assert_eq!(sent[0].1[0], (terms + 1) as u8, "{engine:?}");
        }
    }
}

/// An operand under a mask that it exceeds is loaded once, or loading would take exponential time.
#[test]
fn nested_masks_are_loaded_in_linear_time() {
    let text = "((".repeat(100) + "h.h.a" + &" + h.h.b) >> 1)".repeat(100);
    let text = format!("apply {{ s.egress_spec = 1; if ({text} > 3) {{ h.h.b = 9; }} }}");
    let program = ingress(&text);
    for engine in ENGINES {
        let sent = pipeline(&program, engine).process(0, &[200, 1], 0);
        assert_eq!(sent, [(1, vec![200, 1])], "{engine:?}");
    }
}
