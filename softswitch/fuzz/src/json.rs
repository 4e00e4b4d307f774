// SPDX-License-Identifier: Apache-2.0
//! Loads BMv2 JSON and runs packets through the loaded program.

use softswitch_pipeline::{
    EgressOutcome, EgressOutput, Engine, Info, Options, Pipeline, Program, QueueInfo,
};

/// Maximum number of register, counter and meter cells. Larger programs are valid, but exceed the fuzzer's memory limit.
const MAX_CELLS: usize = 1 << 20;

/// Loads a program. If it loads, native code and the interpreter must produce the same packets for frames of every length.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(program) = Program::load(text) else {
        return;
    };
    if cells(program.info()) > MAX_CELLS {
        return;
    }
    let sent = |engine| packets(program.clone(), engine, data);
    assert!(
        sent(Engine::Native) == sent(Engine::Interpreter),
        "native code and interpreter produced different packets"
    );
}

/// Sends frames made of the JSON text, so that the fuzzer controls the bytes, and returns the transmitted frames.
fn packets(program: Program, engine: Engine, data: &[u8]) -> Vec<Vec<u8>> {
    let options = Options {
        engine,
        max_resubmits: 16,
        max_parser_states: 1000,
        max_iterations: 1000,
        ..Options::default()
    };
    let mut pipeline = Pipeline::new(program, options);
    let (mut queue, mut out) = (Vec::new(), EgressOutput::default());
    let mut sent = Vec::new();
    for (now, len) in (0..160).step_by(10).enumerate() {
        let now = now as u64;
        let frame: Vec<u8> = data.iter().copied().cycle().take(len).collect();
        pipeline.ingress(1, &frame, now, &mut queue);
        for descriptor in queue.drain(..) {
            let outcome = pipeline.egress(descriptor, QueueInfo::default(), now, &mut out);
            if matches!(outcome, EgressOutcome::Transmit { .. }) {
                sent.push(out.frame.to_vec());
            }
        }
    }
    sent
}

fn cells(info: &Info) -> usize {
    let registers = info
        .registers
        .iter()
        .map(|r| r.size.saturating_mul(r.width as usize / 64 + 1));
    let counters = info.counters.iter().map(|c| c.size);
    let meters = info.meters.iter().map(|m| m.size);
    registers
        .chain(counters)
        .chain(meters)
        .fold(0, usize::saturating_add)
}
