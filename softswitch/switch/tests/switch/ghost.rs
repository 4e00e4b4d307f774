// SPDX-License-Identifier: Apache-2.0
//! The ghost thread of a program for Tofino 2 learns the lengths of the switch's queues.

use std::time::Instant;

use softswitch::p4rt::deployment::LoadedProgram;
use softswitch_p4c::diag::{Diagnostics, SourceMap};

use crate::common::port::Wire;
use crate::common::{TEST_TIMEOUT, TestSwitch};

/// The number of queue 0 of port 1.
const QUEUE: u8 = 1 << 4;

fn program() -> LoadedProgram {
    let text = include_str!("../../../pipeline/tests/programs/tofino_ghost.p4").to_owned();
    let (sources, diags) = (SourceMap::default(), Diagnostics::default());
    let options = softswitch_p4c::Options::default();
    let output = softswitch_p4c::compile("tofino_ghost.p4", text, &options, &sources, &diags);
    let output = output.unwrap_or_else(|| panic!("{}", diags.render(&sources)));
    LoadedProgram::load(output.json.unwrap().to_string()).unwrap()
}

/// Returns the length of a queue that the ingress knows; the answer leaves through the port of the wire.
fn length(wire: &Wire) -> u32 {
    wire.send(&[0, QUEUE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let answer = wire.receive();
    u32::from_be_bytes(answer[2..6].try_into().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn ghost_thread_learns_the_lengths_of_queues() {
    // A packet takes more than a minute, so all but the first wait.
    let switch = TestSwitch::start_with(2, &["1:rate=1bit"], |config| softswitch::switch::Config {
        program: Some(program()),
        ..config
    })
    .await;
    assert_eq!(length(&switch.wires[1]), 0);
    for _ in 0..4 {
        switch.wires[0].send(&[0; 12]);
    }
    let deadline = Instant::now() + TEST_TIMEOUT;
    while length(&switch.wires[1]) != 3 {
        assert!(Instant::now() < deadline, "no length in time");
    }
}
