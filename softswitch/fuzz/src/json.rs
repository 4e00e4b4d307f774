//! BMv2 JSON through the loader, and packets through what it makes.

use softswitch_pipeline::{
    EgressOutcome, EgressOutput, Engine, Info, Options, Pipeline, Program, QueueInfo,
};

/// Programs with more cells than this are valid, but take the memory that the fuzzer watches.
const MAX_CELLS: usize = 1 << 20;

/// Loads a program. What is not refused handles packets of every length, by machine code as by the interpreter.
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
        "machine code and interpreter gave other packets"
    );
}

/// Sends frames of the JSON itself, so that the fuzzer can choose the bytes; gives those that leave.
fn packets(program: Program, engine: Engine, data: &[u8]) -> Vec<Vec<u8>> {
    let options = Options {
        engine,
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
                sent.push(out.frame.clone());
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
