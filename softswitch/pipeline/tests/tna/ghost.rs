// SPDX-License-Identifier: Apache-2.0
//! `programs/tofino_ghost.p4`: the ghost thread of Tofino 2.

use softswitch_pipeline::{Options, Pipeline};

use super::common::{options, through};
use super::program;

/// The registers that a pipe has for a queue.
#[derive(Debug, PartialEq, Eq)]
struct Known {
    length: u32,
    pipe: u8,
    changes: u32,
}

/// Asks a pipe for a queue, and for the number of changes of a version.
fn ask(p: &mut Pipeline, port: u32, queue: u16, version: u8) -> Known {
    let frame = [&queue.to_be_bytes()[..], &[0; 5], &[version], &[0; 4]].concat();
    let sent = through(p, port, &frame, 0);
    let number =
        |at: usize| u32::from_be_bytes(sent[0].1[at..at + 4].try_into().expect("four bytes"));
    Known {
        length: number(2),
        pipe: sent[0].1[6],
        changes: number(8),
    }
}

fn pipeline(pipes: u32) -> Pipeline {
    let program = program("tofino_ghost");
    assert_eq!(program.native_blocks(), (7, 7), "also the ghost thread");
    let options = Options { pipes, ..options() };
    Pipeline::new(program, options)
}

#[test]
fn ghost_thread_learns_the_lengths_of_queues() {
    let mut p = pipeline(1);
    assert!(p.has_ghost());
    p.queue_changed(3, 2, 7, 0);
    p.queue_changed(3, 1, 5, 0);
    assert_eq!(ask(&mut p, 1, 3 << 4 | 2, 0).length, 7);
    assert_eq!(ask(&mut p, 1, 3 << 4 | 1, 0).length, 5);
    p.queue_changed(3, 2, 6, 0);
    assert_eq!(ask(&mut p, 1, 3 << 4 | 2, 0).length, 6);
}

#[test]
fn ghost_threads_of_all_pipes_learn_the_lengths() {
    let mut p = pipeline(2);
    // Port 3 of pipe 1.
    p.queue_changed(1 << 7 | 3, 0, 9, 0);
    for port in [1, 1 << 7 | 1] {
        let Known { length, pipe, .. } = ask(&mut p, port, 3 << 4, 0);
        assert_eq!((length, pipe), (9, 1));
    }
}

#[test]
fn ghost_thread_updates_both_versions() {
    let mut p = pipeline(1);
    p.queue_changed(3, 2, 7, 0);
    for version in [0, 1] {
        assert_eq!(ask(&mut p, 1, 0, version).changes, 1);
    }
}

#[test]
fn programs_without_a_ghost_thread_ignore_queues() {
    let mut p = super::compiled("tofino_queues");
    assert!(!p.has_ghost());
    p.queue_changed(3, 2, 7, 0);
}
