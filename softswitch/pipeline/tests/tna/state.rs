// SPDX-License-Identifier: Apache-2.0
//! `programs/tofino_state.p4`: externs with state, and hashes.

use softswitch_pipeline::{
    DropCurve, FilterCell, FilterConfig, MeterConfig, Pipeline, RegisterId, Value,
};

use super::common::{ethernet, through};
use super::compiled;

fn pipeline() -> Pipeline {
    compiled("tofino_state")
}

/// The value with which a command leaves.
fn value(p: &mut Pipeline, op: u8, arg: u8, value: u32) -> u32 {
    value_at(p, op, arg, value, 0)
}

fn value_at(p: &mut Pipeline, op: u8, arg: u8, value: u32, now: u64) -> u32 {
    let frame = [&ethernet(0x9003)[..], &[op, arg], &value.to_be_bytes()].concat();
    let sent = through(p, 7, &frame, now);
    assert_eq!(sent.len(), 1);
    u32::from_be_bytes(sent[0].1[16..20].try_into().expect("four bytes"))
}

#[test]
fn register_actions_change_their_cells() {
    let mut p = pipeline();
    assert_eq!(
        [
            value(&mut p, 0, 3, 5),
            value(&mut p, 0, 3, 1),
            value(&mut p, 0, 4, 0)
        ],
        [100, 105, 100]
    );
    let high = [4, 6, 6, 9].map(|v| value(&mut p, 1, 2, v));
    assert_eq!(high, [0, 1, 1, 2]);
    let low = p
        .program()
        .info()
        .registers
        .iter()
        .position(|r| r.name.ends_with("pairs.low"));
    let low = RegisterId(low.expect("it has it") as u32);
    assert_eq!(p.register(low, 2).unwrap(), Value::from(9u32));
    assert_eq!(p.register(low, 3).unwrap(), Value::from(5u32));
}

#[test]
fn direct_register_of_a_miss_does_not_change() {
    let mut p = pipeline();
    assert_eq!([value(&mut p, 2, 1, 0), value(&mut p, 2, 1, 0)], [8, 8]);
}

#[test]
fn counters_contain_the_frame_check_sequence_and_meters_give_colours() {
    let mut p = pipeline();
    let info = p.program().info();
    let meter = info.meter("Ingress.meter").expect("it has it");
    let counter = info.counter("Ingress.counter").expect("it has it");
    let config = MeterConfig {
        cir: 1,
        cburst: 1,
        pir: 2,
        pburst: 2,
        eburst: 0,
    };
    p.set_meter(meter, 3, Some(config)).unwrap();
    let colors = [3, 3, 3, 2].map(|cell| value(&mut p, 3, cell, 0));
    assert_eq!(colors, [0, 1, 3, 0]);
    let counted = p.counter(counter, 3).unwrap();
    assert_eq!((counted.packets, counted.bytes), (3, 3 * (20 + 4)));
}

#[test]
fn filters_follow_their_configuration() {
    let mut p = pipeline();
    let info = p.program().info();
    let lpf = info.filter("Ingress.lpf").expect("it has it");
    let wred = info.filter("Ingress.wred").expect("it has it");
    assert_eq!(value(&mut p, 4, 1, 33), 33, "not configured");
    assert_eq!(value(&mut p, 5, 1, 33), 2, "not configured");
    let config = FilterConfig {
        is_rate: false,
        gain_time: 1000.0,
        decay_time: 1000.0,
        scale_down: 0,
        drop_curve: Some(DropCurve {
            min: 100,
            max: 200,
            max_probability: 0.0,
        }),
    };
    for filter in [lpf, wred] {
        p.set_filter(filter, FilterCell::Index(1), Some(config))
            .unwrap();
    }
    let levels = [(100, 0), (200, 1000), (200, 1_000_000)];
    let levels = levels.map(|(v, now)| value_at(&mut p, 4, 1, v, now));
    assert_eq!(levels, [100, 150, 199]);
    let drops = [(150, 0), (200, 100), (300, 1_000_000)];
    let drops = drops.map(|(v, now)| value_at(&mut p, 5, 1, v, now));
    assert_eq!(drops, [2, 2, 1]);
}

#[test]
fn hashes_are_those_of_their_algorithms() {
    let mut p = pipeline();
    // CRC-16/ARC and CRC-32/BZIP2.
    assert_eq!(value(&mut p, 6, 0x31, 0x3233_3435), 0xa455);
    assert_eq!(value(&mut p, 7, 0, 0x3132_3334), crc32_bzip2(b"1234"));
    let random: Vec<u32> = (0..20).map(|_| value(&mut p, 8, 0, 0)).collect();
    assert!(random.iter().all(|&v| v < 256) && random.iter().any(|&v| v != random[0]));
}

fn crc32_bzip2(data: &[u8]) -> u32 {
    let step = |crc: u32, _| {
        if crc >> 31 == 1 {
            crc << 1 ^ 0x04c1_1db7
        } else {
            crc << 1
        }
    };
    !data.iter().fold(u32::MAX, |crc, &b| {
        (0..8).fold(crc ^ u32::from(b) << 24, step)
    })
}

#[test]
fn math_unit_approximates_squares() {
    let mut p = pipeline();
    let squares = [0, 1, 3, 16, 1000].map(|v| value(&mut p, 9, 1, v));
    assert_eq!(squares, [0, 1, 9, 256, 921_600]);
}
