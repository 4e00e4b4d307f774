//! Inputs to begin with: the hand-off's test vectors, so that the fuzzer starts behind the first checks.

use frontage_handoff::vectors::{self, bytes};

/// The seeds of a target.
pub fn of(target: &str) -> Vec<Vec<u8>> {
    let vectors = vectors::generate();
    let valid = match target {
        "to_server" => vectors.to_server,
        "to_balancer" => vectors.to_balancer,
        other => panic!("no target is called {other}"),
    };
    let invalid = vectors.invalid.into_iter();
    let invalid = invalid.filter(|case| case.direction == target);
    let wires = valid.into_iter().map(|case| case.wire);
    let wires = wires.chain(invalid.map(|case| case.wire));
    wires.map(|wire| bytes(&wire).into()).collect()
}
