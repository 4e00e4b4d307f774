//! Frames between two interfaces by their rings, without a switch. Needs root; says so without it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::common::PATIENCE;
use crate::common::features::frame;
use crate::common::network::{ip, with_veths};
use softswitch::port::{PortError, Receive, Receiver, Transmit, Transmitter};

/// Of the tests' frames; the kernel sends others of its own.
const TYPE: u16 = 0x88b6;

/// Frames that a receiver holds.
const HELD: u32 = 4096;

fn numbered(n: u32, len: usize) -> Vec<u8> {
    let mut payload = vec![n as u8; len];
    payload[..4].copy_from_slice(&n.to_be_bytes());
    frame(2, 1, TYPE, &payload)
}

/// The frames of a test that arrive until there are so many.
fn receive(receiver: &mut Receiver, count: usize) -> VecDeque<Vec<u8>> {
    let (begin, mut frames) = (Instant::now(), VecDeque::new());
    while frames.len() < count {
        assert!(
            begin.elapsed() < PATIENCE,
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

#[test]
fn frames_of_all_lengths_arrive_whole_and_in_order() {
    with_veths(1, || {
        for end in ["p1", "e1"] {
            ip(&format!("link set {end} mtu 9000"));
        }
        let mut receiver = Receiver::open("p1").unwrap();
        let mut transmitter = Transmitter::open("e1").unwrap();
        // Below and above what fits into a slot, mixed.
        let lengths = [46, 1500, 9000, 1947, 4, 1948, 2000, 8999, 60];
        let sent: Vec<_> = (0..3000)
            .map(|n| numbered(n, lengths[n as usize % lengths.len()]))
            .collect();
        for batch in sent.chunks(700) {
            batch.iter().for_each(|frame| transmitter.send(frame));
            let flushed = transmitter.flush();
            let bytes = batch.iter().map(Vec::len).sum::<usize>() as u64;
            assert_eq!(
                (flushed.sent, flushed.sent_bytes),
                (batch.len() as u64, bytes)
            );
            assert!(receive(&mut receiver, batch.len()) == batch);
        }
        assert_eq!(receiver.drops(), 0);
    });
}

#[test]
fn vlan_tags_are_where_they_were() {
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
fn what_the_mtu_forbids_is_counted() {
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
fn what_nobody_takes_is_dropped_and_counted() {
    with_veths(1, || {
        ip("link set e1 down");
        let mut receiver = Receiver::open("p1").unwrap();
        // The kernel has nothing to say to an end without addresses.
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
        // The room is there again.
        transmitter.send(&numbered(1, 60));
        assert_eq!(transmitter.flush().sent, 1);
        assert!(receive(&mut receiver, 1) == [numbered(1, 60)]);
    });
}

#[test]
fn an_interface_that_is_down_or_gone_is_told_apart() {
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
fn what_a_queueing_discipline_refuses_is_skipped() {
    with_veths(1, || {
        let mut receiver = Receiver::open("p1").unwrap();
        // A queue of ten small frames behind a link that takes a second for each.
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
