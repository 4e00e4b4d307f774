// SPDX-License-Identifier: Apache-2.0
//! The programs that can run in parallel.

use softswitch_pipeline::Program;

use crate::{compile, program};

#[test]
fn report_names_locks_of_registers_and_meters() {
    let program = program();
    let parallelism = program.parallelism();
    assert!(parallelism.is_parallel());
    assert_eq!(parallelism.locks, [["I.seen", "I.total"]]);
    assert_eq!(parallelism.lock_free_registers, ["I.limits"]);
    assert_eq!(parallelism.meters, ["I.rates"]);
    let report = parallelism.to_string();
    assert!(
        report.starts_with("Packets of several threads can run in parallel.\n"),
        "{report}"
    );
    assert!(
        report.contains("\n  I.total\n") && report.contains("\n  I.rates\n"),
        "{report}"
    );
}

#[test]
fn router_filter_and_load_balancer_run_in_parallel() {
    let paths = [
        "softswitch/pipeline/tests/programs/router.p4",
        "bench/p4/acl.p4",
        "p4src/v1model/frontage.p4",
    ];
    for path in paths {
        let program = compile(path);
        let parallelism = program.parallelism();
        assert!(parallelism.is_parallel(), "{path}: {parallelism}");
    }
}

/// The registers of one part have one lock; those that a packet accesses once have none.
#[test]
fn locks_of_the_load_balancer_follow_its_parts() {
    let program = compile("p4src/v1model/frontage.p4");
    let parallelism = program.parallelism();
    let parts = |registers: &Vec<String>| {
        let mut parts: Vec<String> = registers
            .iter()
            .map(|name| name.split('.').take(2).collect::<Vec<_>>().join("."))
            .collect();
        parts.dedup();
        parts
    };
    let locks: Vec<_> = parallelism.locks.iter().map(parts).collect();
    assert!(locks.iter().all(|parts| parts.len() == 1), "{locks:?}");
    let tree = |registers: &&Vec<String>| registers.iter().any(|r| r.ends_with("leaf.leaves"));
    let tree = parallelism
        .locks
        .iter()
        .find(tree)
        .expect("the tree has a lock");
    assert!(tree.iter().any(|r| r.ends_with("level12.children")));
    let free = &parallelism.lock_free_registers;
    assert!(
        free.iter().any(|r| r.ends_with("server_loads.reports")),
        "{free:?}"
    );
}

#[test]
fn report_gives_reasons_against_parallel_packets() {
    let everything = Program::load(include_str!("../programs/everything.json")).unwrap();
    let report = everything.parallelism().to_string();
    assert!(
        report.starts_with("Packets run one after the other:\n"),
        "{report}"
    );
    assert!(report.contains("128 bits"), "{report}");
    let portable = compile("softswitch/pipeline/tests/programs/portable.p4");
    let report = portable.parallelism().to_string();
    assert!(
        report.contains("architecture psa: only programs of v1model"),
        "{report}"
    );
}
