// SPDX-License-Identifier: Apache-2.0
//! Scripts for a router: one that passes, and one in which every expectation fails.
//!
//! `UPDATE=1 cargo test -p softswitch-stf` rewrites the expected output.

use std::path::PathBuf;
use std::process::{Command, Output};

fn here(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn stf(options: &[&str], program: &str, script: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_softswitch-stf"))
        .current_dir(here("tests/scripts"))
        .args(options)
        .arg(here("../pipeline/tests/programs").join(program))
        .arg(script)
        .output()
        .unwrap()
}

#[test]
fn passing_script_prints_nothing() {
    for program in ["router.p4", "router.json"] {
        let out = stf(&["--trace"], program, "router.stf");
        assert_eq!(String::from_utf8(out.stdout).unwrap(), "", "{program}");
        assert_eq!(String::from_utf8(out.stderr).unwrap(), "", "{program}");
        assert_eq!(out.status.code(), Some(0));
    }
}

fn check(options: &[&str], expected: &str) {
    let out = stf(options, "router.p4", "wrong.stf");
    assert_eq!(out.status.code(), Some(1));
    let text = String::from_utf8(out.stdout).unwrap();
    let path = here("tests/scripts").join(expected);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(path).unwrap_or_default());
}

#[test]
fn differences_show_both_sides() {
    check(&[], "wrong.txt");
}

#[test]
fn trace_of_packet_is_printed_once_with_source_positions() {
    check(&["--trace"], "wrong-trace.txt");
}

#[test]
fn errors_name_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    let bad = dir.path().join("bad.stf");
    std::fs::write(&bad, "add I.route x:1 a()\n").unwrap();
    let out = stf(&[], "router.p4", bad.to_str().unwrap());
    assert_eq!(out.status.code(), Some(2));
    let text = String::from_utf8(out.stderr).unwrap();
    assert!(
        text.ends_with("bad.stf: line 1: unknown table I.route\n"),
        "{text}"
    );

    let program = dir.path().join("bad.p4");
    std::fs::write(&program, "control C() { apply { x = 1; } }").unwrap();
    let out = stf(&[], program.to_str().unwrap(), "router.stf");
    assert_eq!(out.status.code(), Some(2));
    let text = String::from_utf8(out.stderr).unwrap();
    assert!(text.contains("bad.p4") && text.contains("x = 1"), "{text}");
}

#[test]
fn entry_counters_are_checked_by_label() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("labels.stf");
    let entries = "add I.routes hdr.ipv4.dst:0x0a000000/8 I.set_next_hop(next_hop:1)\n\
                   add I.next_hops m.next_hop:1 I.forward(port:2, src:1, dst:2) = HOP\n\
                   add I.next_hops m.next_hop:2 I.forward(port:3, src:1, dst:2) = IDLE\n\
                   packet 1 02000000000202000000000108004500001a000100004011accdc00002010a01020368656c6c6f21\n\
                   expect 2\n";
    let run = |checks: &str| {
        std::fs::write(&script, format!("{entries}{checks}")).unwrap();
        let out = stf(&[], "router.p4", script.to_str().unwrap());
        let said = String::from_utf8([out.stdout, out.stderr].concat()).unwrap();
        (out.status.code(), said)
    };
    let right = "check_counter hops_counter($HOP) packets == 1\ncheck_counter hops_counter($HOP) bytes == 40\n\
                 check_counter hops_counter($IDLE) packets == 0\n";
    assert_eq!(run(right), (Some(0), String::new()));
    let (status, said) = run("check_counter hops_counter($IDLE) packets == 1\n");
    assert_eq!(status, Some(1));
    assert!(
        said.contains("counter hops_counter($IDLE) has 0 packets, expected == 1"),
        "{said}"
    );
    for wrong in ["hops_counter($NONE)", "other($HOP)"] {
        let (status, said) = run(&format!("check_counter {wrong} packets == 1\n"));
        assert_eq!(status, Some(2));
        assert!(
            said.contains(&format!("line 6: unknown counter {wrong}")),
            "{said}"
        );
    }
}
