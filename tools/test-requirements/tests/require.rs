// SPDX-License-Identifier: Apache-2.0
//! Runs this test program's own ignored test with and without `ALLOW_SKIPS`.

use std::process::{Command, Output};

use test_requirements::{ALLOW_SKIPS, require};

/// Runs `needs_a_tool` in a process of its own.
fn needs_a_tool_with(value: Option<&str>) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "needs_a_tool"]);
    match value {
        Some(value) => command.env(ALLOW_SKIPS, value),
        None => command.env_remove(ALLOW_SKIPS),
    };
    command.output().unwrap()
}

#[test]
#[ignore = "the other tests run it"]
fn needs_a_tool() {
    assert!(!require(false, "no-tool", "install it"));
}

#[test]
fn test_that_cannot_run_fails() {
    for value in [None, Some("")] {
        let output = needs_a_tool_with(value);
        assert!(!output.status.success());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            text.contains("no-tool: missing: install it, or set ALLOW_SKIPS=1"),
            "{text}"
        );
    }
}

#[test]
fn allowed_skip_is_printed() {
    let output = needs_a_tool_with(Some("1"));
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "skipped needs_a_tool: no-tool: missing: install it\n"
    );
}

#[test]
fn present_tool_is_not_reported() {
    assert!(require(true, "tool", "install it"));
}
