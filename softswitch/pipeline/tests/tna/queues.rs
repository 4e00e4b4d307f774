// SPDX-License-Identifier: Apache-2.0
//! `programs/tofino_queues.p4`: registers of Tofino 2 as queues, stacks and logs.

use softswitch_pipeline::Pipeline;

use super::common::through;
use super::compiled;

const ENQUEUE: u8 = 0;
const DEQUEUE: u8 = 1;
const PUSH: u8 = 2;
const POP: u8 = 3;
const LOG: u8 = 4;
const LARGEST: u8 = 5;
const FULL: u32 = 0xffff_ffff;
const EMPTY: u32 = 0xeeee_eeee;

/// The result of a method.
fn run(p: &mut Pipeline, op: u8, value: u32) -> u32 {
    let frame = [&[op][..], &value.to_be_bytes()].concat();
    let sent = through(p, 7, &frame, 0);
    u32::from_be_bytes(sent[0].1[1..5].try_into().expect("four bytes"))
}

#[test]
fn queue_returns_its_values_in_order() {
    let mut p = compiled("tofino_queues");
    assert_eq!(run(&mut p, DEQUEUE, 0), EMPTY);
    // Two rounds, so that the queue wraps around.
    for first in [10, 20] {
        assert_eq!([first, first + 1].map(|v| run(&mut p, ENQUEUE, v)), [0, 0]);
        assert_eq!(run(&mut p, DEQUEUE, 0), first);
        assert_eq!(
            [first + 2, first + 3].map(|v| run(&mut p, ENQUEUE, v)),
            [0, 0]
        );
        assert_eq!(run(&mut p, ENQUEUE, 99), FULL);
        let rest = [1, 2, 3].map(|n| first + n);
        assert_eq!([(); 3].map(|()| run(&mut p, DEQUEUE, 0)), rest);
        assert_eq!(run(&mut p, DEQUEUE, 0), EMPTY);
    }
}

#[test]
fn stack_returns_its_last_value_first() {
    let mut p = compiled("tofino_queues");
    assert_eq!(
        [5, 6, 7].map(|v| run(&mut p, PUSH, v)),
        [1, 1, 0],
        "the third does not fit"
    );
    assert_eq!([(); 3].map(|()| run(&mut p, POP, 0)), [6, 5, EMPTY]);
    assert_eq!((run(&mut p, PUSH, 8), run(&mut p, POP, 0)), (1, 8));
}

#[test]
fn log_visits_one_cell_after_the_other() {
    let mut p = compiled("tofino_queues");
    let results = [1, 2, 3, 4, 5].map(|v| run(&mut p, LOG, v));
    assert_eq!(results, [0, 0, 0, 1, 2]);
}

#[test]
fn largest_selected_part_of_a_wide_cell_is_found() {
    let mut p = compiled("tofino_queues");
    assert_eq!(run(&mut p, LARGEST, 0xff12_3420), 0x34);
}
