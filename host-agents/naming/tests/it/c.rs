// SPDX-License-Identifier: Apache-2.0
//! `client.c`, a C program linked with the library.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use test_requirements::require;

/// Return the library's path, which is beside the test's executable.
fn library() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    here.parent().unwrap().join("libartemis.so")
}

fn compiled(folder: &Path) -> Option<PathBuf> {
    let (source, program) = (
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/client.c"),
        folder.join("client"),
    );
    let mut cc = Command::new("cc");
    cc.args([
        "-Wall",
        "-Wextra",
        "-Werror",
        "-I",
        concat!(env!("CARGO_MANIFEST_DIR"), "/include"),
        source,
        "-o",
    ]);
    let output = cc.arg(&program).arg(library()).output();
    let Ok(output) = output else {
        require(false, "cc", "apt install gcc");
        return None;
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(program)
}

fn run(program: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command
        .env_clear()
        .envs(environment.iter().copied())
        .args(arguments);
    command.env("LD_LIBRARY_PATH", library().parent().unwrap());
    command.output().unwrap()
}

#[test]
fn c_program_resolves_names() {
    let folder =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("c-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    if let Some(program) = compiled(&folder) {
        vectors(&program);
        results_and_errors(&program, &folder);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

fn vectors(program: &Path) {
    let vectors: Vec<serde_json::Value> =
        serde_json::from_str(include_str!("../../vectors.json")).unwrap();
    let mut by_prefix = std::collections::BTreeMap::<String, Vec<(&str, &str)>>::new();
    for vector in &vectors {
        let text = |field: &str| vector[field].as_str().unwrap();
        let prefix = format!("{}+{} = *", text("prefix"), vector["sid_bits"]);
        by_prefix
            .entry(prefix)
            .or_default()
            .push((text("name"), text("address")));
    }
    for (instance, cases) in by_prefix {
        let names: Vec<&str> = std::iter::once("vectors")
            .chain(cases.iter().map(|case| case.0))
            .collect();
        let output = run(program, &[("ARTEMIS", &instance)], &names);
        let said = String::from_utf8(output.stdout).unwrap();
        let expected: Vec<&str> = cases.iter().map(|case| case.1).collect();
        assert_eq!(said.lines().collect::<Vec<_>>(), expected, "{instance}");
    }
}

fn results_and_errors(program: &Path, folder: &Path) {
    let conf = folder.join("artemis.conf");
    std::fs::write(&conf, "198.51.100.0/24+0 = both.example, v4.example\n").unwrap();
    let cache = folder.join("cache");
    let environment = [
        ("ARTEMIS", "2001:db8:a::/48+0 = both.example, v6.example"),
        ("ARTEMIS_CONF", conf.to_str().unwrap()),
        ("ARTEMIS_CACHE", cache.to_str().unwrap()),
    ];
    let output = run(program, &environment, &["checks"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    assert_eq!(error, "");
    let output = run(program, &[("ARTEMIS", "2001:db8:a::/48 = a")], &["wrong"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(
        error
            .starts_with("libartemis: ARTEMIS:1: invalid prefix \"2001:db8:a::/48\": not a prefix")
    );
}
