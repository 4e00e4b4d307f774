// SPDX-License-Identifier: Apache-2.0
//! Initial inputs: the hand-off's test vectors, so that the fuzzer gets past the first checks.

use frontage_handoff::vectors::{self, bytes};

/// A client's packet on path 1: acknowledgments of numbers of noq and of a real server, flow control limits,
/// STOP_SENDING and PATH_RESPONSE.
const PACKET: &[u8] = &[
    1, 0, 34, 0x3e, 1, 30, 0, 1, 4, 3, 9, 0x02, 19, 0, 0, 3, 0x10, 0x80, 0x20, 0, 0, 0x11, 8, 0x47,
    0xd0, 5, 0, 1, 0x1b, 1, 2, 3, 4, 5, 6, 7, 8,
];

/// Packet numbers for two real servers, 20 to 22 and 24 to 25; noq's packet 23; and a client's packet that
/// acknowledges 25 to 21 and 19 to 18.
const SENDERS: &[u8] = &[2, 3, 1, 3, 2, 0, 0, 7, 0x02, 25, 9, 1, 4, 0, 1];

/// Return the seeds of a target.
pub fn of(target: &str) -> Vec<Vec<u8>> {
    if target == "client" {
        return vec![PACKET.into(), PACKET.repeat(3)];
    }
    if target == "one_path" {
        return vec![SENDERS.into(), [SENDERS, &[0], &PACKET[1..]].concat()];
    }
    let vectors = vectors::generate();
    let valid = match target {
        "to_server" => vectors.to_server,
        "to_balancer" => vectors.to_balancer,
        other => panic!("unknown target {other}"),
    };
    let invalid = vectors.invalid.into_iter();
    let invalid = invalid.filter(|case| case.direction == target);
    let wires = valid.into_iter().map(|case| case.wire);
    let wires = wires.chain(invalid.map(|case| case.wire));
    wires.map(|wire| bytes(&wire).into()).collect()
}
