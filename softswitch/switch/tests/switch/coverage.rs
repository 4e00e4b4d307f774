// SPDX-License-Identifier: Apache-2.0
//! `--coverage`.

use std::path::Path;

use softswitch::coverage::CoverageFile;
use softswitch::proto::p4::v1 as p4;
use softswitch::switch::Config;
use softswitch_coverage::{FileCounts, Tracefile};

use crate::common::features::{frame, l2};
use crate::common::{TEST_TIMEOUT, TestSwitch};
use crate::sources::compile_text;

/// Compiles `features.p4`.
fn program() -> p4::ForwardingPipelineConfig {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/features.p4");
    let text = std::fs::read_to_string(&path).unwrap();
    compile_text(&path.display().to_string(), text)
}

/// Returns the counts of `features.p4`.
fn counts(path: &Path) -> FileCounts {
    let text = std::fs::read_to_string(path).unwrap();
    let all = Tracefile::parse(&text).unwrap();
    let mut files = all.files.into_iter();
    let (_, counts) = files
        .find(|(path, _)| path.ends_with("features.p4"))
        .unwrap();
    counts
}

/// Forwards a packet through a switch with coverage.
async fn forward(path: &Path) -> TestSwitch {
    let file = CoverageFile::create(path.to_owned(), None).unwrap();
    let configure = |config: Config| Config {
        coverage: Some(file),
        ..config
    };
    let switch = TestSwitch::start_with(2, &[], configure).await;
    let mut controller = switch.controller_with(program()).await;
    controller.insert(l2(1, 2, "forward", &[2])).await.unwrap();
    switch.wires[0].send(&frame(2, 1, 0x1234, b"hello"));
    assert!(switch.wires[1].receive_within(TEST_TIMEOUT).is_some());
    // The counts are saved when a program is replaced.
    controller.set_pipeline(program()).await.unwrap();
    switch
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_are_saved_when_the_program_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("coverage.info");
    let _switch = forward(&path).await;
    let counts = counts(&path);
    assert_eq!(counts.functions["FeaturesIngress.forward"].1, 1);
    assert_eq!(counts.functions["FeaturesIngress.drop"].1, 0);
    assert!(dir.path().join("coverage.html").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_of_several_switches_add_up() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("coverage.info");
    let _first = forward(&path).await;
    let _second = forward(&path).await;
    assert_eq!(counts(&path).functions["FeaturesIngress.forward"].1, 2);
}

#[test]
fn file_of_something_else_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notes");
    std::fs::write(&path, "notes\n").unwrap();
    let error = CoverageFile::create(path, None).unwrap_err().to_string();
    assert!(
        error.contains("notes: line 1: invalid record 'notes'"),
        "{error}"
    );
}
