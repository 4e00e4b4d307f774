// SPDX-License-Identifier: Apache-2.0
//! A packet in the steady state allocates nothing, unless its path is noted.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Command, Harness, compile, ethernet, options};
use softswitch_pipeline::{CloneSession, EgressOutput, Options, Pipeline, QueueInfo, Replica};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn packets_in_the_steady_state_allocate_nothing() {
    let mut h = Harness::with(steady());
    let replicas = vec![
        Replica {
            port: 3,
            instance: 1,
        },
        Replica {
            port: 4,
            instance: 2,
        },
    ];
    h.pipeline
        .insert_multicast_group(2, replicas.clone())
        .unwrap();
    let session = CloneSession {
        replicas,
        truncate_to: 0,
        class_of_service: 0,
    };
    h.pipeline.insert_clone_session(2, session).unwrap();
    // All but digests, whose values are handed out.
    let ops = [
        1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 20, 21, 22, 23,
    ];
    let mut frames: Vec<Vec<u8>> = ops
        .iter()
        .map(|&op| {
            Command {
                arg: 2,
                ..Command::op(op)
            }
            .frame()
        })
        .collect();
    frames.push([ethernet(0x9000), vec![2, 1, 3, 1]].concat());
    frames.push([ethernet(0x9000), vec![4, 1, 3, 1]].concat());
    frames.push([ethernet(0x9001), vec![5; 30]].concat());
    frames.push([ethernet(0x9002), vec![1; 30]].concat());
    run(&mut h.pipeline, &frames);
    run_tna();
}

/// Returns options with which no paths are noted.
fn steady() -> Options {
    Options {
        adapt_every: 0,
        ..options()
    }
}

/// Runs every path around the traffic manager of TNA, except digests.
fn run_tna() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/tofino_paths.p4");
    let program = compile(&path, path.parent().expect("a folder")).expect("valid program");
    let mut p = Pipeline::new(program, steady());
    let replicas = vec![Replica {
        port: 3,
        instance: 1,
    }];
    p.insert_multicast_group(2, replicas.clone()).unwrap();
    let session = CloneSession {
        replicas,
        truncate_to: 0,
        class_of_service: 0,
    };
    p.insert_clone_session(2, session).unwrap();
    let ops = [0, 1, 2, 3, 4, 5, 6, 9, 10];
    let frame = |&op: &u8| [ethernet(0x9003), vec![op, 2, 0, 2, 5, 5]].concat();
    run(&mut p, &ops.iter().map(frame).collect::<Vec<_>>());
}

/// Fails if packets allocate after a while.
fn run(p: &mut Pipeline, frames: &[Vec<u8>]) {
    let (mut queue, mut out) = (Vec::new(), EgressOutput::default());
    let mut round = |frame: &[u8]| {
        p.ingress(1, frame, 0, &mut queue);
        while let Some(d) = queue.pop() {
            let outcome = p.egress(d, QueueInfo::default(), 0, &mut out);
            queue.append(&mut out.clones);
            if let softswitch_pipeline::EgressOutcome::Recirculate(r) = outcome {
                p.ingress_recirculated(r, 0, &mut queue);
            }
        }
    };
    for _ in 0..100 {
        frames.iter().for_each(|f| round(f));
    }
    for frame in frames {
        // With other packets in between, each buffer has another purpose, and another size.
        for _ in 0..100 {
            round(frame);
        }
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        for _ in 0..100 {
            round(frame);
        }
        let allocated = ALLOCATIONS.load(Ordering::Relaxed) - before;
        assert_eq!(allocated, 0, "{:02x?}", &frame[12..]);
    }
}
