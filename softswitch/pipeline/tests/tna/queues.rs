// SPDX-License-Identifier: Apache-2.0
//! `programs/tofino_queues.p4`: registers of Tofino 2 as queues, stacks and logs, and cells that change all at once.

use softswitch_pipeline::{Pipeline, Value};

use super::common::through;
use super::compiled;

const ENQUEUE: u8 = 0;
const DEQUEUE: u8 = 1;
const PUSH: u8 = 2;
const POP: u8 = 3;
const LOG: u8 = 4;
const LARGEST: u8 = 5;
const SWEEP: u8 = 6;
const CLEAR: u8 = 7;
const READ: u8 = 8;
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

#[test]
fn sweep_runs_an_action_on_every_cell() {
    let mut p = compiled("tofino_queues");
    let read = |p: &mut Pipeline| [0, 1, 255].map(|index| run(p, READ, index));
    assert_eq!(read(&mut p), [5; 3]);
    run(&mut p, SWEEP, 10);
    run(&mut p, SWEEP, 1);
    assert_eq!(read(&mut p), [16; 3]);
}

#[test]
fn clear_writes_every_cell() {
    let mut p = compiled("tofino_queues");
    run(&mut p, CLEAR, 0);
    let cells = p
        .program()
        .info()
        .register("Ingress.cells")
        .expect("it has it");
    let values = [0, 150, 299].map(|index| p.register(cells, index).unwrap());
    assert_eq!(values, [9u32, 9, 9].map(Value::from));
}
