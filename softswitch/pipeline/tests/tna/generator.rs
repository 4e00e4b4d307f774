// SPDX-License-Identifier: Apache-2.0
//! Packet generators: their triggers, the headers of their packets, and their times.

use softswitch_pipeline::{
    GeneratorApp, GeneratorCounts, GeneratorPattern, GeneratorPort, GeneratorTrigger, Nanos,
    Options, PipeSet, Pipeline,
};

use super::common::tna::{assign, field, packet};
use super::common::{deliver, options, through};
use super::{compiled, forwarding};

/// Where the packet of the applications is, and its bytes.
const OFFSET: u32 = 32;
const BYTES: &[u8] = b"generated";

const GENERATOR_PORT: GeneratorPort = GeneratorPort {
    generates: true,
    matches_patterns: true,
};

/// An application that makes two batches of three packets.
fn app(trigger: GeneratorTrigger) -> GeneratorApp {
    GeneratorApp {
        is_enabled: true,
        trigger,
        offset: OFFSET,
        length: BYTES.len() as u32,
        batches: 2,
        packets: 3,
        batch_gap: 1000,
        packet_gap: 10,
        ..GeneratorApp::default()
    }
}

fn enable(p: &mut Pipeline, port: u32, number: u32, app: GeneratorApp) {
    p.write_generator_buffer(OFFSET, BYTES).expect("it fits");
    p.set_generator_port(port, GENERATOR_PORT);
    p.set_generator_app(number, app).expect("it exists");
}

/// A program for Tofino that sends packets to the port in bytes 2 and 3, with an application.
fn tofino(trigger: GeneratorTrigger) -> Pipeline {
    let mut p = forwarding().pipeline();
    enable(&mut p, 68, 5, app(trigger));
    p
}

/// A program for Tofino 2 with an application.
fn tofino2(trigger: GeneratorTrigger) -> Pipeline {
    let mut p = compiled("tofino_generator");
    enable(&mut p, 6, 9, app(trigger));
    p
}

/// The packets that generators make at a time.
fn generated(p: &mut Pipeline, now: Nanos) -> Vec<(u32, Vec<u8>)> {
    let (mut queue, mut sent) = (Vec::new(), Vec::new());
    while p.generate(now, &mut queue) {
        sent.extend(deliver(p, &mut queue, now));
    }
    sent
}

fn with_bytes(header: &[u8]) -> Vec<u8> {
    [header, BYTES].concat()
}

fn counts(triggers: u64, batches: u64, packets: u64) -> GeneratorCounts {
    GeneratorCounts {
        triggers,
        batches,
        packets,
    }
}

#[test]
fn one_shot_timer_makes_numbered_packets_at_their_times() {
    let mut p = tofino(GeneratorTrigger::Once(500));
    assert_eq!(p.next_generated(), Some(0), "the timer starts");
    assert_eq!(generated(&mut p, 7000), []);
    let mut at = Vec::new();
    while let Some(next) = p.next_generated() {
        for (port, frame) in generated(&mut p, next) {
            let number = u16::from_be_bytes([frame[4], frame[5]]);
            assert_eq!(frame, with_bytes(&[5, 0, 0, port as u8, 0, number as u8]));
            at.push((next, port, number));
        }
    }
    let (first, second) = (7500, 8520);
    let expected = [(first, 0), (second, 1)].map(|(start, batch)| {
        [0, 1, 2].map(|number| (start + 10 * u64::from(number), batch, number))
    });
    assert_eq!(at, expected.concat());
    assert_eq!(p.generator_counts(5).unwrap(), counts(1, 2, 6));
}

#[test]
fn periodic_timer_waits_for_the_end_of_a_burst() {
    let mut p = tofino(GeneratorTrigger::Periodic(2000));
    generated(&mut p, 0);
    let mut bursts = Vec::new();
    while bursts.len() < 3 {
        let next = p.next_generated().expect("it goes on");
        let before = p.generator_counts(5).unwrap().triggers;
        generated(&mut p, next);
        if p.generator_counts(5).unwrap().triggers > before {
            bursts.push(next);
        }
    }
    assert_eq!(bursts, [2000, 4000, 6000]);
    // A generator that could not run makes up for one period at most.
    generated(&mut p, 100_000);
    generated(&mut p, 110_000);
    assert_eq!(p.generator_counts(5).unwrap().triggers, 5);
}

#[test]
fn disabled_application_stops_and_starts_anew() {
    let trigger = GeneratorTrigger::Once(500);
    let mut p = tofino(trigger);
    generated(&mut p, 0);
    generated(&mut p, 500);
    let disabled = GeneratorApp {
        is_enabled: false,
        ..app(trigger)
    };
    p.set_generator_app(5, disabled).unwrap();
    assert_eq!(p.next_generated(), None);
    p.set_generator_app(5, app(trigger)).unwrap();
    generated(&mut p, 10_000);
    assert_eq!(p.next_generated(), Some(10_500));
}

#[test]
fn application_needs_a_port() {
    let mut p = tofino(GeneratorTrigger::Once(500));
    p.set_generator_port(68, GeneratorPort::default());
    assert_eq!(
        (p.next_generated(), generated(&mut p, 1000)),
        (None, vec![])
    );
    let elsewhere = GeneratorApp {
        channel: Some(2),
        ..app(GeneratorTrigger::Once(500))
    };
    p.set_generator_app(5, elsewhere).unwrap();
    p.set_generator_port(68, GENERATOR_PORT);
    assert_eq!(p.next_generated(), None);
    p.set_generator_port(2, GENERATOR_PORT);
    assert_eq!(p.next_generated(), Some(0));
}

#[test]
fn port_down_triggers_once_until_it_is_cleared() {
    let mut p = tofino(GeneratorTrigger::PortDown { mask: 0 });
    p.set_port_up(3, false);
    assert_eq!(p.next_generated(), None, "the port was not cleared");
    for _ in 0..2 {
        p.arm_generator_port(3);
        p.set_port_up(3, true);
        p.set_port_up(3, false);
        p.set_port_up(3, true);
        p.set_port_up(3, false);
        let (port, frame) = generated(&mut p, 0).remove(0);
        assert_eq!((port, frame), (3, with_bytes(&[5, 0, 0, 3, 0, 0])));
        while let Some(next) = p.next_generated() {
            generated(&mut p, next);
        }
    }
    assert_eq!(p.generator_counts(5).unwrap(), counts(2, 4, 12));
}

#[test]
fn port_down_triggers_applications_whose_mask_has_the_port() {
    let mut p = tofino2(GeneratorTrigger::PortDown { mask: 1 });
    p.set_generator_mask(1, 1 << 4);
    for port in [3, 4] {
        p.arm_generator_port(port);
        p.set_port_up(port, false);
    }
    assert_eq!(p.generator_counts(9).unwrap().triggers, 1);
    let seen = [&[0, 0][..], &with_bytes(&[9, 0, 0, 4, 0, 0])].concat();
    assert_eq!(generated(&mut p, 0), [(1, seen)]);
}

/// A pattern of bytes that all matter.
fn pattern(bytes: &[u8]) -> GeneratorPattern {
    let mut pattern = GeneratorPattern::default();
    pattern.value[..bytes.len()].copy_from_slice(bytes);
    pattern.mask[..bytes.len()].fill(0xff);
    pattern
}

fn command(op: u8) -> Vec<u8> {
    [&[0xff, op, 0, 2, 0, 4][..], b"0123456789", b"payload"].concat()
}

#[test]
fn recirculated_packet_triggers_with_its_first_bytes() {
    // It leaves through the port in `x`, which becomes `y`.
    let mut p = forwarding()
        .ingress(vec![assign(("hdr", "x"), field("hdr", "y"))])
        .pipeline();
    let single = GeneratorApp {
        batches: 1,
        packets: 1,
        ..app(GeneratorTrigger::Recirculation(pattern(&[8, 9])))
    };
    enable(&mut p, 68, 2, single);
    for (arg, triggers) in [(9, 1), (8, 1)] {
        let sent = through(&mut p, 7, &packet(8, arg, 68, 3), 100);
        assert_eq!(sent, [(3, packet(8, arg, 3, 3))]);
        assert_eq!(p.generator_counts(2).unwrap().triggers, triggers);
    }
    let frame = with_bytes(&[2, 9, b'g', b'e', 0, 0]);
    assert_eq!(generated(&mut p, 100), [(3, frame)]);
}

#[test]
fn recirculated_packet_hands_over_a_context_on_tofino_2() {
    let bytes = command(1);
    let mut p = tofino2(GeneratorTrigger::Recirculation(pattern(&bytes[..16])));
    let sent = through(&mut p, 7, &bytes, 0);
    assert_eq!(sent, [(1, [&[0, 6][..], &bytes].concat())]);
    let header = [&[9, 0, 0, 0, 0, 0][..], &bytes[..16]].concat();
    let seen = [&[0, 0][..], &with_bytes(&header)].concat();
    assert_eq!(generated(&mut p, 0), [(1, seen)]);
}

#[test]
fn deparser_triggers_with_its_header() {
    let bytes = command(2);
    let mut p = tofino2(GeneratorTrigger::Deparser(pattern(&bytes[..2])));
    p.write_generator_buffer(2 * 16, b"line").unwrap();
    let increasing = GeneratorApp {
        source_port: 2,
        increments_source_port: true,
        last_source_port: 3,
        batches: 1,
        packet_gap: 0,
        ..app(GeneratorTrigger::Deparser(pattern(&bytes[..2])))
    };
    p.set_generator_app(9, increasing).unwrap();
    assert_eq!(through(&mut p, 7, &command(3), 0).len(), 1);
    assert_eq!(p.next_generated(), None);
    assert_eq!(through(&mut p, 7, &bytes, 0).len(), 1);
    let frame = |port, number| {
        let front = [0, port, 9, 0, 0, 0, 0, number];
        (1, [&front[..], &bytes[..16], b"line"].concat())
    };
    let expected = [frame(2, 0), frame(3, 1), frame(0, 2)];
    assert_eq!(generated(&mut p, 0), expected);
}

#[test]
fn each_pipe_has_a_generator() {
    let options = Options {
        pipes: 2,
        ..options()
    };
    let mut p = forwarding().pipeline_with(options);
    for port in [68, 128 + 68] {
        enable(&mut p, port, 1, app(GeneratorTrigger::Once(0)));
    }
    let first: Vec<u8> = generated(&mut p, 0)
        .iter()
        .map(|(_, frame)| frame[0])
        .collect();
    assert_eq!(first, [1, 1 << 3 | 1], "the pipe and the application");
    let of_pipe = |p: &mut Pipeline, pipe| {
        p.on_pipes(PipeSet::one(pipe), |p| p.generator_counts(1).unwrap())
            .unwrap()
    };
    assert_eq!(of_pipe(&mut p, 1), counts(1, 1, 1));
    assert_eq!(p.generator_counts(1).unwrap(), counts(2, 2, 2));
    let snapshot = p.generator_snapshot();
    p.set_generator_app(1, GeneratorApp::default()).unwrap();
    p.set_generator_counts(1, GeneratorCounts::default())
        .unwrap();
    p.restore_generators(snapshot);
    assert_eq!(p.generator_counts(1).unwrap(), counts(2, 2, 2));
    assert_eq!(p.next_generated(), Some(10));
}

#[test]
fn settings_beyond_the_chip_are_refused() {
    let mut p = tofino(GeneratorTrigger::Never);
    assert!(p.set_generator_app(8, GeneratorApp::default()).is_err());
    assert!(p.write_generator_buffer(16_380, b"12345").is_err());
    let beyond = GeneratorApp {
        offset: 16_384,
        ..app(GeneratorTrigger::Never)
    };
    assert!(p.set_generator_app(5, beyond).is_err());
    assert_eq!(p.generator_buffer(OFFSET + 2, 3).unwrap(), b"ner");
    assert_eq!(p.generator_buffer(16_382, 2).unwrap(), [0, 0]);
}
