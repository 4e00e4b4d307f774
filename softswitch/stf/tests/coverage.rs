// SPDX-License-Identifier: Apache-2.0
//! `--coverage`: lines, functions and branches of a program, added up over runs.
//!
//! `UPDATE=1 cargo test -p softswitch-stf` rewrites the expected file.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use softswitch_coverage::Tracefile;
use test_requirements::require;

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")
}

/// A folder with a copy of the program and its script.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["coverage.p4", "coverage.stf"] {
        std::fs::copy(scripts().join(name), folder.path().join(name)).unwrap();
    }
    folder
}

/// Runs the script, and adds its coverage to `coverage.info`.
fn run(folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_softswitch-stf"))
        .current_dir(folder)
        .args(["--coverage", "coverage.info", "coverage.p4", "coverage.stf"])
        .output()
        .unwrap()
}

fn passes(folder: &Path) -> String {
    let out = run(folder);
    let messages = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(0), "{messages}");
    messages
}

fn text(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("coverage.info")).unwrap()
}

#[test]
fn lines_functions_and_branches_are_counted() {
    let folder = folder();
    assert_eq!(passes(folder.path()), "");
    let path = folder.path().canonicalize().unwrap();
    let text = text(folder.path()).replace(&format!("{}/", path.display()), "");
    let expected = scripts().join("coverage.info");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&expected, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&expected).unwrap());
    let page = std::fs::read_to_string(folder.path().join("coverage.html")).unwrap();
    assert!(page.contains("<span class=\"miss\">=&gt; never: 0</span>"));
    assert!(page.contains("<span class=\"hit\">hit: 3</span>"));
}

#[test]
fn runs_add_up() {
    let folder = folder();
    passes(folder.path());
    let once = Tracefile::parse(&text(folder.path())).unwrap();
    passes(folder.path());
    let twice = Tracefile::parse(&text(folder.path())).unwrap();
    let (file, once) = once.files.iter().next().unwrap();
    for (line, count) in &twice.files[file].lines {
        assert_eq!(*count, 2 * once.lines[line], "line {line}");
    }
}

#[test]
fn concurrent_runs_lose_no_counts() {
    let folder = folder();
    passes(folder.path());
    let once = Tracefile::parse(&text(folder.path())).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..5).for_each(|_| drop(passes(folder.path()))));
        }
    });
    let all = Tracefile::parse(&text(folder.path())).unwrap();
    let (file, once) = once.files.iter().next().unwrap();
    assert_eq!(
        all.files[file].functions["start"].1,
        21 * once.functions["start"].1
    );
}

#[test]
fn edit_of_the_program_drops_its_earlier_counts() {
    let folder = folder();
    passes(folder.path());
    let program = folder.path().join("coverage.p4");
    let edited = format!("\n{}", std::fs::read_to_string(&program).unwrap());
    std::fs::write(&program, edited).unwrap();
    let message = passes(folder.path());
    assert!(
        message.contains("coverage.p4 has changed: its earlier counts are dropped"),
        "{message}"
    );
    let all = Tracefile::parse(&text(folder.path())).unwrap();
    assert_eq!(all.files.len(), 1);
    assert!(
        all.files
            .values()
            .all(|file| file.functions["start"] == (23, 4))
    );
}

#[test]
fn other_file_is_refused_and_kept() {
    let folder = folder();
    std::fs::write(folder.path().join("coverage.info"), "TN:\nmy notes\n").unwrap();
    let out = run(folder.path());
    assert_eq!(out.status.code(), Some(2));
    let message = String::from_utf8(out.stderr).unwrap();
    assert!(
        message.contains("coverage.info: line 2: invalid record 'my notes'"),
        "{message}"
    );
    assert_eq!(text(folder.path()), "TN:\nmy notes\n");
}

/// The totals of `lcov`, the tool that defines the format.
#[test]
fn lcov_reads_the_file() {
    let folder = folder();
    passes(folder.path());
    let summary = Command::new("lcov")
        .args([
            "--rc",
            "lcov_branch_coverage=1",
            "--summary",
            "coverage.info",
        ])
        .current_dir(folder.path())
        .output();
    let Ok(summary) = summary else {
        require(false, "lcov", "apt install lcov");
        return;
    };
    let text = String::from_utf8_lossy(&summary.stdout).into_owned();
    let text = text + &String::from_utf8_lossy(&summary.stderr);
    assert!(summary.status.success(), "{text}");
    let all = Tracefile::parse(&self::text(folder.path())).unwrap();
    let file = all.files.values().next().unwrap();
    let (covered, lines) = file.line_totals();
    assert!(
        text.contains(&format!("({covered} of {lines} lines)")),
        "{text}"
    );
    let (covered, functions) = file.function_totals();
    assert!(
        text.contains(&format!("({covered} of {functions} functions)")),
        "{text}"
    );
}
