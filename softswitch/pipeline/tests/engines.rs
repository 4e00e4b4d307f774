// SPDX-License-Identifier: Apache-2.0
//! Compares native code with the interpreter: random packets and entries, on every program.

mod common;

use std::path::{Path, PathBuf};

use common::damage::damage;
use common::frames::random_frame;
use common::furnish::{furnish, state};
use common::packets::packet;
use common::{compile, ethernet, through};
use serde_json::Value as Json;
use softswitch_pipeline::{Engine, Options, Pipeline, Program};
use softswitch_random::Rng;

/// Runs the same entries and packets through both engines and compares all output and state.
fn agree(
    program: &Program,
    seed: u64,
    packets: usize,
    frame: impl Fn(&mut Rng) -> Vec<u8>,
) -> usize {
    let options = |engine| Options {
        engine,
        seed,
        adapt_every: 3,
        keep_log: true,
        ..Options::default()
    };
    let [mut native, mut reference] = [Engine::Native, Engine::Interpreter]
        .map(|engine| Pipeline::new(program.clone(), options(engine)));
    furnish(&mut native, seed);
    furnish(&mut reference, seed);
    let mut rng = Rng::new(seed);
    let mut left = 0;
    for i in 0..packets {
        let frame = frame(&mut rng);
        if i == packets / 3 {
            native.adapt();
        }
        let (port, now) = (rng.below(6) as u32, i as u64 * 1000);
        let sent = through(&mut native, port, &frame, now);
        let expected = through(&mut reference, port, &frame, now);
        assert_eq!(sent, expected, "packet {i} of seed {seed}: {frame:02x?}");
        left += sent.len();
    }
    let (native, reference) = (state(&mut native), state(&mut reference));
    for (a, b) in native.iter().zip(&reference) {
        assert_eq!(a, b, "seed {seed}");
    }
    left
}

#[test]
fn engines_agree_on_everything_p4() {
    let program = Program::load(include_str!("programs/everything.json")).unwrap();
    let left: usize = (0..3)
        .map(|seed| agree(&program, seed, 4000, random_frame))
        .sum();
    assert!(left > 3000, "{left}");
}

#[test]
fn engines_agree_on_router() {
    let program = Program::load(include_str!("programs/router.json")).unwrap();
    let left: usize = (0..3).map(|seed| agree(&program, seed, 2000, packet)).sum();
    assert!(left > 100, "{left}");
}

#[test]
fn engines_agree_on_drop_copy() {
    let program = Program::load(include_str!("programs/drop_copy.json")).unwrap();
    agree(&program, 1, 2000, packet);
}

#[test]
fn engines_agree_on_computed_stack_elements() {
    let program = Program::load(include_str!("programs/stack_index.json")).unwrap();
    agree(&program, 1, 2000, packet);
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

#[test]
fn engines_agree_on_the_load_balancer() {
    let path = repository("p4src/v1model/frontage.p4");
    let program = compile(&path, path.parent().expect("a folder")).expect("valid program");
    let left: usize = (0..10)
        .map(|seed| agree(&program, seed, 2000, packet))
        .sum();
    assert!(left > 100, "{left}");
}

#[test]
fn engines_agree_on_the_load_balancer_for_tofino() {
    let path = repository("p4src/tna/tofino2.p4");
    let program = compile(&path, path.parent().expect("a folder")).expect("valid program");
    assert_eq!(program.native_blocks(), (6, 6));
    let left: usize = (0..10)
        .map(|seed| agree(&program, seed, 2000, packet))
        .sum();
    assert!(left > 100, "{left}");
}

#[test]
fn engines_agree_on_misses() {
    let path = repository("softswitch/pipeline/tests/programs/misses.p4");
    let program = compile(&path, path.parent().expect("a folder")).expect("valid program");
    let left: usize = (0..8).map(|seed| agree(&program, seed, 300, noise)).sum();
    assert!(left > 1000, "{left}");
}

#[test]
fn engines_agree_on_psa() {
    let path = repository("softswitch/pipeline/tests/programs/portable.p4");
    let program = compile(&path, path.parent().expect("a folder")).expect("valid program");
    let command = |rng: &mut Rng| {
        let mut frame = ethernet(0x9003);
        frame.push(rng.below(18) as u8);
        frame.push(rng.below(5) as u8);
        frame.extend((0..rng.below(40)).map(|_| rng.next() as u8));
        frame
    };
    let left: usize = (0..3)
        .map(|seed| agree(&program, seed, 2000, command))
        .sum();
    assert!(left > 2000, "{left}");
}

#[test]
fn engines_agree_on_tna() {
    for (name, highest) in [("paths", 12), ("state", 10), ("checksums", 0x50)] {
        let path = format!("softswitch/pipeline/tests/programs/tofino_{name}.p4");
        let path = repository(&path);
        let program = compile(&path, path.parent().expect("a folder")).expect("valid program");
        assert_eq!(program.native_blocks(), (6, 6));
        let command = |rng: &mut Rng| {
            let mut frame = ethernet(0x9003);
            frame.push(rng.below(highest) as u8);
            frame.push(rng.below(8) as u8);
            frame.extend((0..rng.below(60)).map(|_| rng.next() as u8));
            frame
        };
        for seed in 0..3 {
            agree(&program, seed, 1000, command);
            agree(&program, seed, 1000, packet);
        }
    }
}

/// Random bytes with values that small test programs react to.
fn noise(rng: &mut Rng) -> Vec<u8> {
    let byte = |rng: &mut Rng| match rng.below(3) {
        0 => rng.below(4) as u8,
        1 => rng.pick(&[0x08, 0x0f, 0x7f, 0x80, 0xff]),
        _ => rng.next() as u8,
    };
    (0..rng.below(100)).map(|_| byte(rng)).collect()
}

#[test]
fn engines_agree_on_compiler_test_programs() {
    let folder = repository("softswitch/compiler/tests/programs");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("the folder exists")
        .map(|e| e.unwrap().path())
        .collect();
    paths.sort();
    let mut ran = 0;
    for path in paths
        .iter()
        .filter(|p| p.extension().is_some_and(|e| e == "p4"))
    {
        if let Some(program) = compile(path, &folder) {
            agree(&program, 1, 500, noise);
            agree(&program, 2, 500, packet);
            ran += 1;
        }
    }
    assert!(ran >= 4, "{ran}");
}

#[test]
fn engines_agree_on_damaged_programs() {
    let original: Json = serde_json::from_str(include_str!("programs/everything.json")).unwrap();
    let mut rng = Rng::new(5);
    let mut loaded = 0;
    for seed in 0..200 {
        let mut json = original.clone();
        for _ in 0..=rng.below(3) {
            damage(&mut json, &mut rng, 0);
        }
        let Ok(program) = Program::load(&json.to_string()) else {
            continue;
        };
        let cells = program.info().registers.iter().map(|r| r.size).max();
        if cells > Some(1 << 12) {
            continue;
        }
        loaded += 1;
        agree(&program, seed, 50, random_frame);
    }
    assert!(loaded > 30, "{loaded}");
}
