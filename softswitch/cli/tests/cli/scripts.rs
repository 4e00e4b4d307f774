// SPDX-License-Identifier: Apache-2.0
//! Files of commands, standard input, and the exit status of the program.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use softswitch_cli::script;

use crate::common::{TestSwitch, ok};

#[test]
fn commands_after_a_failed_one_are_executed() {
    let (_switch, mut session) = TestSwitch::with_features();
    let lines = "# comment\n\ntable_add l2 drop 1 2 =>\ntable_add l2 nosuch 1 2 =>\ntable_num_entries l2\nEOF\nnosuch\n";
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let succeeded = script::run(
        &mut session,
        "s1.txt",
        lines.as_bytes(),
        false,
        &mut out,
        &mut err,
    )
    .unwrap();
    assert!(!succeeded);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "Entry has been added with handle 0\n1\n"
    );
    let err = String::from_utf8(err).unwrap();
    assert!(
        err.starts_with("s1.txt:4: table_add: unknown action \"nosuch\""),
        "{err}"
    );
    assert_eq!(err.lines().count(), 1, "EOF ends the input: {err}");
}

/// Runs the program with this standard input.
fn run(args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_softswitch-cli"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The program may end before it reads the input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn exit_status_is_that_of_the_commands() {
    let (switch, session) = TestSwitch::with_features();
    drop(session);
    let args = ["--addr", &switch.address, "--election-id", "7"];
    let output = run(&args, "table_add l2 drop 1 2 =>\ntable_num_entries l2\n");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(output.stdout, b"Entry has been added with handle 0\n1\n");

    let output = run(&args, "table_dump nosuch\ntable_num_entries l2");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"1\n");
    assert!(
        output
            .stderr
            .starts_with(b"stdin:1: table_dump: unknown table"),
        "{output:?}"
    );

    let json = run(&[&args[..], &["--json"]].concat(), "table_dump l2\n");
    let data: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(
        data["entries"][0]["action"]["action"],
        "FeaturesIngress.drop"
    );

    assert_eq!(run(&["--addr", "127.0.0.1:1"], "").status.code(), Some(1));
    assert_eq!(run(&["--nosuch"], "").status.code(), Some(2));
    assert_eq!(run(&["/nosuch/file"], "").status.code(), Some(1));
}

#[test]
fn file_of_commands_is_an_argument() {
    let (switch, mut session) = TestSwitch::with_features();
    ok(&mut session, "table_add l2 drop 1 2 =>");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s1-commands.txt");
    std::fs::write(&file, "table_num_entries l2\nnosuch").unwrap();
    let path = file.display().to_string();
    let output = run(&["--addr", &switch.address, &path], "");
    assert_eq!(
        (output.status.code(), &output.stdout[..]),
        (Some(1), &b"1\n"[..])
    );
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.starts_with(&format!("{path}:2: unknown command")),
        "{error}"
    );
}
