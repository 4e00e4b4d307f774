// SPDX-License-Identifier: Apache-2.0
//! Frames between two interfaces through their rings, without a switch.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::common::TEST_TIMEOUT;
use crate::common::features::frame;
use crate::common::network::{ip, with_veths};
use softswitch::port::{PortError, Receive, Receiver, Transmit, Transmitter, xdp};

/// EtherType of the tests' frames, because the kernel sends other frames, too.
const TYPE: u16 = 0x88b6;

/// Capacity of a receiver in frames.
const HELD: u32 = 4096;

fn numbered(n: u32, len: usize) -> Vec<u8> {
    let mut payload = vec![n as u8; len];
    payload[..4].copy_from_slice(&n.to_be_bytes());
    frame(2, 1, TYPE, &payload)
}

/// Receives this many frames of a test.
fn receive(receiver: &mut (impl Receive + ?Sized), count: usize) -> VecDeque<Vec<u8>> {
    let (begin, mut frames) = (Instant::now(), VecDeque::new());
    while frames.len() < count {
        assert!(
            begin.elapsed() < TEST_TIMEOUT,
            "{} of {count} frames",
            frames.len()
        );
        if receiver.fill() {
            receiver.frames(&mut |frame| {
                let types = [&frame[12..14], frame.get(16..18).unwrap_or_default()];
                if types.contains(&&TYPE.to_be_bytes()[..]) {
                    frames.push_back(frame.to_vec());
                }
            });
        }
    }
    frames
}

/// Sends 3000 frames with payloads of these lengths in turn, in batches, and checks that they arrive intact and in order.
fn exchange(
    transmitter: &mut impl Transmit,
    receiver: &mut impl Receive,
    lengths: &[usize],
    batch: usize,
) {
    let sent: Vec<_> = (0..3000)
        .map(|n| numbered(n, lengths[n as usize % lengths.len()]))
        .collect();
    for batch in sent.chunks(batch) {
        batch.iter().for_each(|frame| transmitter.send(frame));
        let flushed = transmitter.flush();
        let bytes = batch.iter().map(Vec::len).sum::<usize>() as u64;
        assert_eq!(
            (flushed.sent, flushed.sent_bytes),
            (batch.len() as u64, bytes)
        );
        assert!(receive(receiver, batch.len()) == batch);
    }
    assert_eq!(receiver.drops(), 0);
}

#[test]
fn frames_of_all_lengths_arrive_intact_and_in_order() {
    with_veths(1, || {
        for end in ["p1", "e1"] {
            ip(&format!("link set {end} mtu 9000"));
        }
        let mut receiver = Receiver::open("p1").unwrap();
        let mut transmitter = Transmitter::open("e1").unwrap();
        // Frames that fit into a slot and longer ones, mixed.
        let lengths = [46, 1500, 9000, 1947, 4, 1948, 2000, 8999, 60];
        exchange(&mut transmitter, &mut receiver, &lengths, 700);
    });
}

#[test]
fn vlan_tags_are_preserved() {
    with_veths(1, || {
        let mut receiver = Receiver::open("p1").unwrap();
        let mut transmitter = Transmitter::open("e1").unwrap();
        let sent = [(1, 46), (2, 1500)].map(|(n, len)| {
            let mut frame = numbered(n, len);
            frame.splice(12..12, [0x81, 0x00, 0x20, 0x07]);
            frame
        });
        sent.iter().for_each(|frame| transmitter.send(frame));
        assert_eq!(transmitter.flush().sent, 2);
        assert!(receive(&mut receiver, 2) == sent);
    });
}

#[test]
fn frames_above_mtu_are_counted() {
    with_veths(1, || {
        let mut receiver = Receiver::open("p1").unwrap();
        let mut transmitter = Transmitter::open("e1").unwrap();
        for (n, len) in [(0, 1500), (1, 1501), (2, 9000), (3, 1500)] {
            transmitter.send(&numbered(n, len));
        }
        let flushed = transmitter.flush();
        assert_eq!((flushed.sent, flushed.too_long), (2, 2));
        let arrived = receive(&mut receiver, 2);
        assert!(arrived == [numbered(0, 1500), numbered(3, 1500)]);
    });
}

#[test]
fn frames_beyond_ring_capacity_are_dropped_and_counted() {
    with_veths(1, || {
        ip("link set e1 down");
        let mut receiver = Receiver::open("p1").unwrap();
        // Without addresses, the kernel does not send frames of its own.
        ip("link set e1 addrgenmode none");
        ip("link set p1 addrgenmode none");
        ip("link set e1 up");
        let mut transmitter = Transmitter::open("e1").unwrap();
        let mut sent = 0;
        for n in 0..HELD + 1000 {
            transmitter.send(&numbered(n, 60));
            if n % 200 == 0 {
                sent += transmitter.flush().sent;
                // The kernel's own queue between the two ends is short.
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        sent += transmitter.flush().sent;
        assert_eq!(sent, u64::from(HELD) + 1000);
        let arrived = receive(&mut receiver, HELD as usize);
        assert!(
            (0..)
                .zip(&arrived)
                .all(|(n, frame)| *frame == numbered(n, 60))
        );
        assert_eq!(receiver.drops(), 1000);
        assert_eq!(receiver.drops(), 0);
        // The ring has room again.
        transmitter.send(&numbered(1, 60));
        assert_eq!(transmitter.flush().sent, 1);
        assert!(receive(&mut receiver, 1) == [numbered(1, 60)]);
    });
}

#[test]
fn interface_down_and_interface_gone_are_distinguished() {
    with_veths(1, || {
        let mut transmitter = Transmitter::open("e1").unwrap();
        let mut send = || {
            for n in 0..600 {
                transmitter.send(&numbered(n, 60));
            }
            transmitter.flush()
        };
        ip("link set e1 down");
        let down = send();
        assert_eq!((down.sent, down.down), (0, 600));
        assert!(matches!(down.failure, Some(PortError::Down)));
        ip("link set e1 up");
        let up = send();
        assert_eq!((up.sent, up.down), (600, 0));
        ip("link del e1");
        let gone = send();
        assert_eq!((gone.sent, gone.down), (0, 600));
        assert!(matches!(gone.failure, Some(PortError::Gone)));
    });
}

#[test]
fn frames_refused_by_queueing_discipline_are_skipped() {
    with_veths(1, || {
        let mut receiver = Receiver::open("p1").unwrap();
        // A queue of ten small frames on a link that needs a second per frame.
        let tc = "qdisc add dev e1 root tbf rate 1kbit burst 200 limit 1000";
        let status = std::process::Command::new("tc")
            .args(tc.split_whitespace())
            .status();
        assert!(status.unwrap().success());
        let mut transmitter = Transmitter::open("e1").unwrap();
        for n in 0..100 {
            transmitter.send(&numbered(n, 86));
        }
        let flushed = transmitter.flush();
        assert_eq!(flushed.sent + flushed.busy, 100, "{flushed:?}");
        assert!((1..50).contains(&flushed.sent), "{flushed:?}");
        let arrived = receive(&mut receiver, 1);
        assert!(
            (0..)
                .zip(&arrived)
                .all(|(n, frame)| *frame == numbered(n, 86))
        );
    });
}

#[test]
fn xdp_frames_of_all_lengths_arrive_intact_and_in_order() {
    with_veths(1, || {
        let (mut receiver, _sender, mode) = xdp::open("p1").unwrap();
        let (_receiver, mut transmitter, _) = xdp::open("e1").unwrap();
        assert!(mode.is_native && !mode.is_zero_copy, "{mode:?}");
        let lengths = [46, 1500, 4, 1499, 60];
        exchange(&mut transmitter, &mut receiver, &lengths, 200);
    });
}

#[test]
fn xdp_and_packet_sockets_exchange_frames() {
    with_veths(1, || {
        let (mut near, mut out, _) = xdp::open("p1").unwrap();
        let mut far = Receiver::open("e1").unwrap();
        let mut back = Transmitter::open("e1").unwrap();
        let sent: Vec<_> = (0..100).map(|n| numbered(n, 100)).collect();
        for (transmitter, receiver) in [
            (&mut out as &mut dyn Transmit, &mut far as &mut dyn Receive),
            (&mut back, &mut near),
        ] {
            sent.iter().for_each(|frame| transmitter.send(frame));
            assert_eq!(transmitter.flush().sent, 100);
            assert!(receive(receiver, 100) == sent);
        }
    });
}

#[test]
fn xdp_frames_above_mtu_are_counted() {
    with_veths(1, || {
        let (_, mut transmitter, _) = xdp::open("e1").unwrap();
        for (n, len) in [(0, 1500), (1, 1501), (2, 9000)] {
            transmitter.send(&numbered(n, len));
        }
        let flushed = transmitter.flush();
        assert_eq!((flushed.sent, flushed.too_long), (1, 2));
    });
}

#[test]
fn second_xdp_program_is_refused() {
    with_veths(1, || {
        let first = xdp::open("p1").unwrap();
        let error = xdp::open("p1").err().unwrap();
        assert!(
            format!("{error:#}").contains("XDP program already"),
            "{error:#}"
        );
        drop(first);
        xdp::open("p1").unwrap();
    });
}

#[test]
fn xdp_interface_down_and_interface_gone_are_distinguished() {
    with_veths(1, || {
        let (_receiver, mut transmitter, _) = xdp::open("e1").unwrap();
        let mut send = || {
            (0..10).for_each(|n| transmitter.send(&numbered(n, 60)));
            transmitter.flush()
        };
        ip("link set e1 down");
        assert!(matches!(send().failure, Some(PortError::Down)));
        ip("link set e1 up");
        assert!(send().failure.is_none());
        ip("link del e1");
        assert!(matches!(send().failure, Some(PortError::Gone)));
    });
}
