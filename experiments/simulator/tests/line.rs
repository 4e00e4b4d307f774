// SPDX-License-Identifier: Apache-2.0
//! Times on a link between two hosts, compared with calculated ones.

mod common;

use common::{GIGABIT, line, run};
use serde_json::json;

const ETHERNET_AND_IP: u64 = 34;
const SYN: u64 = ETHERNET_AND_IP + 40; // MSS, SACK permitted, timestamps, window scale
const DATA: u64 = ETHERNET_AND_IP + 32; // timestamps
const REQUEST: u64 = 100;
const DELAY: u64 = 10_000;

fn nanoseconds(bytes: u64, rate: u64) -> u64 {
    bytes * 8 * 1_000_000_000 / rate
}

#[test]
fn serialization_and_propagation_are_exact() {
    for rate in [GIGABIT, 100 * GIGABIT, 1_000_000] {
        let mut scenario = line(1000);
        scenario["links"][0]["rate"] = json!(rate);
        let flows = run(&scenario).flows();
        assert_eq!(flows.len(), 1);
        // SYN, SYN-ACK, request with the ACK, and response follow each other.
        let sent = [SYN, SYN, DATA + REQUEST, DATA + 1000].map(|bytes| nanoseconds(bytes, rate));
        let expected = sent.iter().sum::<u64>() + 4 * DELAY;
        assert_eq!(
            (flows[0].start, flows[0].end),
            (0, expected),
            "at {rate} bit/s"
        );
    }
}

#[test]
fn frame_overhead_takes_time_on_the_wire() {
    let mut scenario = line(1000);
    scenario["links"][0]["overhead"] = json!(24);
    let end = |scenario| run(scenario).flows()[0].end;
    assert_eq!(
        end(&scenario),
        end(&line(1000)) + 4 * nanoseconds(24, GIGABIT)
    );
}

#[test]
fn ipv6_frames_are_20_bytes_longer() {
    let mut scenario = line(1000);
    scenario["hosts"][0]["addresses"] = json!(["2001:db8::1"]);
    scenario["hosts"][1]["addresses"] = json!(["2001:db8::2"]);
    scenario["workload"][0]["servers"] = json!(["[2001:db8::2]:80"]);
    let duration = |scenario| {
        let flows = run(&scenario).flows();
        flows[0].end - flows[0].start
    };
    assert_eq!(
        duration(scenario),
        duration(line(1000)) + 4 * nanoseconds(20, GIGABIT)
    );
}

#[test]
fn busy_link_is_fully_used() {
    // Ten segments, the initial window, leave back to back.
    let flows = run(&line(10 * 1448)).flows();
    let handshake_and_request = [SYN, SYN, DATA + REQUEST].map(|bytes| nanoseconds(bytes, GIGABIT));
    let expected = handshake_and_request.iter().sum::<u64>()
        + nanoseconds(10 * (DATA + 1448), GIGABIT)
        + 4 * DELAY;
    assert_eq!(flows[0].end, expected);
}

#[test]
fn fractions_of_a_nanosecond_add_up() {
    // At 7 Gbit/s, a full frame of 1514 bytes takes 1730 2/7 ns, and six take 10,381 5/7 ns.
    let mut scenario = line(6 * 1448);
    scenario["links"][0]["rate"] = json!(7 * GIGABIT);
    let flows = run(&scenario).flows();
    let handshake_and_request =
        [SYN, SYN, DATA + REQUEST].map(|bytes| nanoseconds(bytes, 7 * GIGABIT));
    assert_eq!(
        flows[0].end,
        handshake_and_request.iter().sum::<u64>() + 10_381 + 4 * DELAY
    );
}

#[test]
fn quic_handshake_takes_one_round_trip() {
    let mut scenario = line(1000);
    scenario["workload"][0]["protocol"] = json!("quic");
    let flows = run(&scenario).flows();
    // Handshakes fill a datagram, which has 1452 bytes (max_datagram). Other packets have 1 byte of flags, 12 of connection id, 1 of packet
    // number and 16 of tag. A STREAM frame has 1 byte of type, 1 of id and 2 of length, and an ACK frame has 5 bytes.
    const IP_AND_UDP: u64 = ETHERNET_AND_IP + 8;
    const DATA: u64 = IP_AND_UDP + 30 + 4;
    let sent = [
        IP_AND_UDP + 1452,
        IP_AND_UDP + 1452,
        DATA + 5 + REQUEST,
        DATA + 5 + 1000,
    ];
    let expected = sent
        .map(|bytes| nanoseconds(bytes, GIGABIT))
        .iter()
        .sum::<u64>()
        + 4 * DELAY;
    assert_eq!(flows[0].end, expected);
}
