// SPDX-License-Identifier: Apache-2.0
//! A client with one path: the balancer's stack and two real servers share a packet number space, and each gets the
//! acknowledgments of its own packets.

use bytes::Buf as _;
use frontage_handoff::fuzzing::{FeedbackReader, Scene};
use frontage_quic_wire::frames::{self, Frame};

use crate::client;

/// A stream for each real server.
const STREAMS: [u64; 2] = [0, 8];

/// Run steps: a packet of the client, with two bytes for the length and frames; a packet of noq; or a byte, the count
/// of packet numbers that a real server requests.
pub fn run(mut data: &[u8]) {
    let (mut balancer, first) = Scene::with_numbers(&STREAMS);
    let mut servers = STREAMS.map(|stream| FeedbackReader::with_numbers(first, &[stream]));
    // Number of packets that noq and each real server have sent so far.
    let mut sent = [first, 0, 0];
    while data.len() > 3 {
        match data.get_u8() % 4 {
            0 => {
                let frames = client::frames(&mut data);
                let noqs = balancer.receive(0, frames);
                assert!(!noqs.is_empty() || frames.is_empty());
                let given = sent.iter().sum();
                for largest in acked(&noqs) {
                    // noq gets an acknowledgment of unsent packets unchanged, and rejects it.
                    assert!(largest < sent[0] || largest >= given, "{noqs:x?}");
                }
                for (i, server) in servers.iter().enumerate() {
                    let packets = client::read(server, &balancer.feedback(i));
                    let mut acked = packets.iter().flat_map(|frames| acked(frames));
                    assert!(acked.all(|largest| largest < sent[1 + i]), "{packets:x?}");
                }
            }
            1 => {
                balancer.send();
                sent[0] += 1;
            }
            kind => {
                let i = usize::from(kind - 2);
                let numbers = balancer.allocate_numbers(i, data.get_u8().into());
                sent[1 + i] += numbers.iter().cloned().flatten().count() as u64;
                let taken = servers[i].send(&numbers);
                taken.expect("the numbers are above all earlier ones");
            }
        }
    }
}

/// Return the largest number of each acknowledgment of path 0.
fn acked(frames: &[u8]) -> Vec<u64> {
    let acks = frames::read(frames).filter_map(|frame| match frame {
        Frame::Ack(ack) if ack.path == 0 => Some(ack.largest),
        _ => None,
    });
    acks.collect()
}
