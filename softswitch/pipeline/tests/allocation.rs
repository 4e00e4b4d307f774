// SPDX-License-Identifier: Apache-2.0
//! A packet in the steady state allocates nothing.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Command, Harness, ethernet};
use softswitch_pipeline::{CloneSession, EgressOutput, QueueInfo, Replica};

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
    let mut h = Harness::new();
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
    let (mut queue, mut out) = (Vec::new(), EgressOutput::default());
    let mut round = |h: &mut Harness, frame: &[u8]| {
        h.pipeline.ingress(1, frame, 0, &mut queue);
        while let Some(d) = queue.pop() {
            let outcome = h.pipeline.egress(d, QueueInfo::default(), 0, &mut out);
            queue.append(&mut out.clones);
            if let softswitch_pipeline::EgressOutcome::Recirculate(r) = outcome {
                h.pipeline.ingress_recirculated(r, 0, &mut queue);
            }
        }
    };
    for _ in 0..100 {
        frames.iter().for_each(|f| round(&mut h, f));
    }
    for frame in &frames {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        for _ in 0..100 {
            round(&mut h, frame);
        }
        let allocated = ALLOCATIONS.load(Ordering::Relaxed) - before;
        assert_eq!(allocated, 0, "{:02x?}", &frame[12..]);
    }
}
