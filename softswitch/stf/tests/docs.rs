// SPDX-License-Identifier: Apache-2.0
//! Checks that the examples in docs/tracing.md are the programs' actual output.
//!
//! `UPDATE=1 cargo test -p softswitch-stf --test docs` rewrites them.

use std::path::PathBuf;

use softswitch_pipeline::{
    ActionCall, Entry, EntryAction, EntryKey, MatchField, Options, Paragraphs, Pipeline, Value,
};
use softswitch_stf::{compile, parse, run};

fn read(path: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Replaces the text between the fence ```LANGUAGE after `from` and the next fence by `body`; returns its end.
fn replace(text: &mut String, from: usize, language: &str, body: &str) -> usize {
    let fence = format!("```{language}\n");
    let begin = from + text[from..].find(&fence).expect("the fence") + fence.len();
    let end = begin + text[begin..].find("```").expect("its end");
    text.replace_range(begin..end, &format!("{}\n", body.trim_end()));
    begin + body.len()
}

fn insert(p: &mut Pipeline, table: &str, field: MatchField, action: &str, args: &[u64]) {
    let info = p.program().info();
    let table = info.table(table).unwrap();
    let action = info.tables[table.index()].action(action).unwrap();
    let args = args.iter().map(|&a| Value::from(a)).collect();
    let entry = Entry {
        key: EntryKey {
            fields: vec![field],
            priority: 0,
        },
        action: EntryAction::Direct(ActionCall { action, args }),
        idle_timeout: 0,
    };
    p.insert_entry(table, entry, 0).unwrap();
}

#[test]
fn examples_of_tracing_page_are_up_to_date() {
    let source = read("../pipeline/tests/programs/router.p4");
    let program = compile("router.p4", source, Vec::new(), Vec::new());
    let program = program.unwrap_or_else(|e| panic!("{e}")).program;
    let script = parse(&read("tests/scripts/wrong.stf")).unwrap();
    let difference = run(&program, &script).unwrap().remove(0);

    let mut p = Pipeline::new(program, Options::default());
    let route = MatchField::Lpm {
        value: 0x0a00_0000u32.into(),
        prefix_len: 8,
    };
    insert(&mut p, "I.routes", route, "I.set_next_hop", &[1]);
    let hop = MatchField::Exact(1u32.into());
    let args = [2, 0x0200_0000_0003, 0x0200_0000_0004];
    insert(&mut p, "I.next_hops", hop, "I.forward", &args);
    p.set_tracing(true);
    let frame = "02000000000202000000000108004500001a000100004011accdc00002010a01020368656c6c6f21";
    let byte = |i| u8::from_str_radix(&frame[i..i + 2], 16).unwrap();
    let frame: Vec<u8> = (0..frame.len()).step_by(2).map(byte).collect();
    p.process(1, &frame, 1_500_000_000);
    let traces = p.take_trace();
    let (mut text, mut paragraphs) = (String::new(), Paragraphs::default());
    traces.iter().for_each(|t| paragraphs.push(&mut text, t));

    let document = read("../../docs/tracing.md");
    let mut expected = document.clone();
    let at = replace(&mut expected, 0, "text", &text);
    let json = serde_json::to_string(&traces[0]).unwrap();
    let at = replace(&mut expected, at, "json", &json);
    replace(
        &mut expected,
        at,
        "text",
        &format!("router.stf:{difference}"),
    );
    if std::env::var_os("UPDATE").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tracing.md");
        std::fs::write(path, &expected).unwrap();
    }
    assert_eq!(read("../../docs/tracing.md"), expected);
}
