//! Scripts on a router: one that holds, and one of which nothing does.
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
fn a_script_that_holds_says_nothing() {
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
fn the_trace_of_a_packet_is_shown_once_with_the_places_in_the_source() {
    check(&["--trace"], "wrong-trace.txt");
}

#[test]
fn what_cannot_be_run_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let bad = dir.path().join("bad.stf");
    std::fs::write(&bad, "add I.route x:1 a()\n").unwrap();
    let out = stf(&[], "router.p4", bad.to_str().unwrap());
    assert_eq!(out.status.code(), Some(2));
    let text = String::from_utf8(out.stderr).unwrap();
    assert!(
        text.ends_with("bad.stf: line 1: no table I.route\n"),
        "{text}"
    );

    let program = dir.path().join("bad.p4");
    std::fs::write(&program, "control C() { apply { x = 1; } }").unwrap();
    let out = stf(&[], program.to_str().unwrap(), "router.stf");
    assert_eq!(out.status.code(), Some(2));
    let text = String::from_utf8(out.stderr).unwrap();
    assert!(text.contains("bad.p4") && text.contains("x = 1"), "{text}");
}
