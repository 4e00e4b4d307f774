//! BMv2 JSON through the loader, and packets through what it makes.

use softswitch_pipeline::{EgressOutput, Info, Options, Pipeline, Program};

/// Programs with more cells than this are valid, but take the memory that the fuzzer watches.
const MAX_CELLS: usize = 1 << 20;

/// Loads a program. What is not refused handles packets of every length.
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
    let mut pipeline = Pipeline::new(program, Options::default());
    let (mut queue, mut out) = (Vec::new(), EgressOutput::default());
    for (now, len) in (0..160).step_by(10).enumerate() {
        // Of the JSON itself, so that the fuzzer can choose the bytes.
        let frame: Vec<u8> = data.iter().copied().cycle().take(len).collect();
        pipeline.ingress(1, &frame, now as u64, &mut queue);
        for descriptor in queue.drain(..) {
            pipeline.egress(descriptor, Default::default(), now as u64, &mut out);
        }
    }
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
