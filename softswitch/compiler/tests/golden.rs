// SPDX-License-Identifier: Apache-2.0
//! Compares the outputs for the programs in `tests/programs` with recorded ones, so that a review shows every change.
//! `UPDATE_GOLDEN=1 cargo test -p softswitch-p4c --test golden` records the current outputs.

mod common;

use std::path::PathBuf;

fn check(name: &str, extension: &str, actual: &str) {
    let path: PathBuf = common::tests_dir()
        .join("golden")
        .join(format!("{name}.{extension}"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, actual).expect("the golden file can be written");
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    let difference = expected
        .lines()
        .zip(actual.lines())
        .position(|(a, b)| a != b);
    assert!(
        expected == actual,
        "{} differs from line {} on: if that is intended, run with UPDATE_GOLDEN=1",
        path.display(),
        difference.unwrap_or_else(|| expected.lines().count().min(actual.lines().count())) + 1
    );
}

/// Removes source positions, which change too often.
fn without_sources(v: &mut serde_json::Value) {
    match v {
        serde_json::Value::Object(o) => {
            o.remove("source_info");
            o.values_mut().for_each(without_sources);
        }
        serde_json::Value::Array(a) => a.iter_mut().for_each(without_sources),
        _ => {}
    }
}

#[test]
fn p4info_is_as_recorded() {
    for name in ["router", "instances", "language", "parsing", "externs"] {
        check(name, "p4info.txt", &common::compile_program(name).p4info);
    }
}

#[test]
fn json_is_as_recorded() {
    for name in ["router", "parsing"] {
        let mut json = common::compile_program(name).json.unwrap();
        without_sources(&mut json);
        check(name, "json", &format!("{json:#}\n"));
    }
}
