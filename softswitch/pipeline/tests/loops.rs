// SPDX-License-Identifier: Apache-2.0
//! Loops of programs, and their limits.

mod common;

use common::ENGINES;
use common::source::{Source, ingress};
use softswitch_pipeline::{
    EgressOutcome, EgressOutput, Engine, IngressOutcome, Options, Pipeline, Program, QueueInfo,
};

/// A table whose default action increments `h.h.b`.
const TABLE: &str = "
    action inc() { h.h.b = h.h.b + 1; }
    table t { key = { h.h.a : exact; } actions = { inc; } const default_action = inc(); }";

fn pipeline(program: &Program, engine: Engine, options: Options) -> Pipeline {
    Pipeline::new(program.clone(), Options { engine, ..options })
}

/// Returns the second byte of the packet that results from the bytes 0 and 5.
fn result(program: &Program, engine: Engine) -> u8 {
    let mut p = pipeline(program, engine, Options::default());
    let sent = p.process(0, &[0, 5], 0);
    assert_eq!(sent.len(), 1, "{engine:?}");
    sent[0].1[1]
}

#[test]
fn tables_may_be_applied_several_times() {
    let twice = format!("{TABLE} apply {{ s.egress_spec = 1; t.apply(); t.apply(); }}");
    let in_loop =
        format!("{TABLE} apply {{ s.egress_spec = 1; for (bit<8> i in 1..20) {{ t.apply(); }} }}");
    let exiting = format!(
        "{TABLE} action stop() {{ exit; }}
         table u {{ key = {{ h.h.b : exact; }} actions = {{ stop; NoAction; }} default_action = NoAction();
                    const entries = {{ 9 : stop(); }} }}
         apply {{ s.egress_spec = 1; for (bit<8> i in 1..20) {{ t.apply(); u.apply(); }} }}"
    );
    for engine in ENGINES {
        assert_eq!(result(&ingress(&twice), engine), 7);
        assert_eq!(result(&ingress(&in_loop), engine), 25);
        assert_eq!(result(&ingress(&exiting), engine), 9);
    }
}

#[test]
fn iterations_of_tables_are_limited_by_option() {
    let text =
        format!("{TABLE} apply {{ s.egress_spec = 1; for (bit<8> i in 1..100) {{ t.apply(); }} }}");
    let program = ingress(&text);
    for engine in ENGINES {
        let ingress = |max_iterations| {
            let options = Options {
                max_iterations,
                ..Options::default()
            };
            let mut p = pipeline(&program, engine, options);
            p.ingress(0, &[0, 5], 0, &mut Vec::new())
        };
        assert_eq!(ingress(100), IngressOutcome::Unicast, "{engine:?}");
        assert_eq!(ingress(99), IngressOutcome::TooManyIterations, "{engine:?}");
    }
}

/// Returns the JSON of a program whose action jumps back to its beginning while `h.h.b` is not zero.
fn jumping(decrement: bool) -> String {
    let source = Source {
        ingress: "action a() { h.h.b = h.h.b - 1; }
         table t { actions = { a; } const default_action = a(); }
         apply { s.egress_spec = 1; t.apply(); }",
        ..Source::default()
    };
    let mut program: serde_json::Value = serde_json::from_str(&source.json()).unwrap();
    let actions = program["actions"].as_array_mut().unwrap();
    let action = actions.iter_mut().find(|a| a["name"] == "I.a").unwrap();
    let primitives = action["primitives"].as_array_mut().unwrap();
    let b = primitives[0]["parameters"][0].clone();
    if !decrement {
        primitives.clear();
    }
    let end = format!("{:#x}", primitives.len() + 2);
    let jump = |to: &str| serde_json::json!({"type": "hexstr", "value": to});
    primitives.push(serde_json::json!({"op": "_jump_if_zero", "parameters": [b, jump(&end)]}));
    primitives.push(serde_json::json!({"op": "_jump", "parameters": [jump("0x0")]}));
    program.to_string()
}

#[test]
fn iterations_of_actions_are_limited_by_option() {
    let counting = Program::load(&jumping(true)).unwrap();
    let endless = Program::load(&jumping(false)).unwrap();
    for engine in ENGINES {
        let mut p = pipeline(&counting, engine, Options::default());
        assert_eq!(p.process(0, &[0, 200], 0), [(1, vec![0, 0])]);
        let mut p = pipeline(&endless, engine, Options::default());
        let outcome = p.ingress(0, &[0, 200], 0, &mut Vec::new());
        assert_eq!(outcome, IngressOutcome::TooManyIterations, "{engine:?}");
        let outcome = p.ingress(0, &[0, 0], 0, &mut Vec::new());
        assert_eq!(outcome, IngressOutcome::Unicast, "{engine:?}");
    }
}

#[test]
fn endless_loop_in_deparser_drops_the_packet() {
    let source = Source {
        ingress: "apply { s.egress_spec = 1; }",
        ..Source::default()
    };
    let mut program: serde_json::Value = serde_json::from_str(&source.json()).unwrap();
    let zero = serde_json::json!({"type": "hexstr", "value": "0x0"});
    program["deparsers"][0]["primitives"] =
        serde_json::json!([{"op": "_jump", "parameters": [zero]}]);
    let program = Program::load(&program.to_string()).unwrap();
    for engine in ENGINES {
        let mut p = pipeline(&program, engine, Options::default());
        let mut queue = Vec::new();
        p.ingress(0, &[0, 0], 0, &mut queue);
        let descriptor = queue.pop().unwrap();
        let mut out = EgressOutput::default();
        let outcome = p.egress(descriptor, QueueInfo::default(), 0, &mut out);
        assert!(
            matches!(outcome, EgressOutcome::TooManyIterations),
            "{engine:?} {outcome:?}"
        );
    }
}

#[test]
fn resubmissions_are_limited_by_option() {
    let source = Source {
        metadata: "@field_list(1) bit<16> n;",
        ingress: "apply {
            s.egress_spec = 1;
            h.h.b = m.n[7:0];
            m.n = m.n + 1;
            if (m.n <= 40) { resubmit_preserving_field_list(1); }
         }",
        ..Source::default()
    };
    let program = source.compile();
    for engine in ENGINES {
        let process = |max_resubmits| {
            let options = Options {
                max_resubmits,
                ..Options::default()
            };
            pipeline(&program, engine, options).process(0, &[0, 5], 0)
        };
        assert_eq!(process(1000), [(1, vec![0, 40])]);
        assert_eq!(process(40), [(1, vec![0, 40])]);
        assert_eq!(process(39), []);
    }
}

#[test]
fn recirculations_are_limited_by_option() {
    let source = Source {
        ingress: "apply { s.egress_spec = 1; }",
        egress: "apply {
            h.h.b = h.h.b + 1;
            if (h.h.b < 200) { recirculate_preserving_field_list(0); }
         }",
        ..Source::default()
    };
    let program = source.compile();
    let process = |max_recirculations| {
        let options = Options {
            max_recirculations,
            ..Options::default()
        };
        Pipeline::new(program.clone(), options).process(0, &[0, 99], 0)
    };
    assert_eq!(process(1000), [(1, vec![0, 200])]);
    assert_eq!(process(100), [(1, vec![0, 200])]);
    assert_eq!(process(99), []);
}
