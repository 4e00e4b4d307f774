// SPDX-License-Identifier: Apache-2.0
//! Traces, segment by segment, compared with the RFCs: slow start, loss recovery and timers.

mod common;

use common::{Direction, Sent, Testbed, delay, plain};
use frontage_transport::tcp::{Config, Segment};
use frontage_transport::{MILLISECOND, Nanos, SECOND};

/// One-direction delay.
const DELAY: Nanos = 50 * MILLISECOND;
const RTT: Nanos = 2 * DELAY;

/// Returns the number of data segments that the server sent in each round trip after the first.
fn segments_by_round<C>(testbed: &Testbed<C>) -> Vec<usize>
where
    C: common::Channel,
{
    let data = testbed.data(Direction::ToClient);
    let first = data[0].0;
    let rounds = (data[data.len() - 1].0 - first) / RTT + 1;
    let of = |round| {
        data.iter()
            .filter(|(at, ..)| (at - first) / RTT == round)
            .count()
    };
    (0..rounds).map(of).collect()
}

/// Returns time and offset of the server's retransmissions, in order.
fn retransmissions<C: common::Channel>(testbed: &Testbed<C>) -> Vec<(Nanos, u64)> {
    let data = testbed.data(Direction::ToClient);
    let retransmitted = data
        .iter()
        .enumerate()
        .filter(|(n, (_, offset, _))| data[..*n].iter().any(|d| d.1 == *offset));
    retransmitted
        .map(|(_, (at, offset, _))| (*at, *offset))
        .collect()
}

/// Creates a channel that loses these data segments, numbered in the order in which the server sends them.
fn losing(lost: &'static [usize]) -> impl common::Channel {
    let mut data = 0;
    move |direction, _, segment: &mut Segment| {
        if direction == Direction::ToServer || segment.len == 0 {
            return vec![DELAY];
        }
        data += 1;
        if lost.contains(&(data - 1)) {
            vec![]
        } else {
            vec![DELAY]
        }
    }
}

/// RFC 5681, section 3.1; the initial window is RFC 6928's.
#[test]
fn slow_start_doubles_every_round_trip() {
    let mut testbed = Testbed::new(&plain(), &plain(), 310_000, delay(DELAY));
    testbed.run(SECOND * 5);
    assert_eq!(segments_by_round(&testbed), [10, 20, 40, 80, 160]);
    // The initial window, plus all acknowledged bytes and the FIN.
    assert_eq!(testbed.server().statistics().cwnd, 10_000 + 310_000 + 1);
}

/// RFC 5681, section 3.1: beyond ssthresh, the window grows by one segment per round trip.
#[test]
fn slow_start_ends_at_the_initial_threshold() {
    for (initial_window, expected) in [(10, [10, 20, 30, 31, 32]), (30, [30, 31, 32, 33, 34])] {
        let config = Config {
            initial_window,
            initial_threshold: Some(30),
            ..plain()
        };
        let segments: usize = expected.iter().sum();
        let mut testbed = Testbed::new(&config, &config, segments as u64 * 1000, delay(DELAY));
        testbed.run(SECOND * 5);
        assert_eq!(segments_by_round(&testbed), expected);
    }
}

/// Slow start grows equally fast with half of the acknowledgments (RFC 3465), and the acknowledgment of the last segment waits for
/// the timer.
#[test]
fn acknowledgments_wait_for_a_second_segment() {
    let client = Config {
        delayed_ack: Some(40 * MILLISECOND),
        ..plain()
    };
    let mut testbed = Testbed::new(&client, &plain(), 151_000, delay(DELAY));
    testbed.run(SECOND * 5);
    assert_eq!(segments_by_round(&testbed), [10, 20, 40, 80, 1]);
    let acks: Vec<&Sent> = testbed
        .log
        .iter()
        .filter(|sent| sent.direction == Direction::ToServer)
        .collect();
    // SYN, ACK of the SYN-ACK, an ACK per two segments, and an immediate ACK of the FIN.
    assert_eq!(acks.len(), 2 + 75 + 1);

    let mut testbed = Testbed::new(&client, &plain(), 0, delay(DELAY));
    testbed.run(SECOND);
    let now = testbed.now;
    testbed.server().write(1000);
    testbed.pump();
    testbed.run(10 * SECOND);
    let times: Vec<Nanos> = testbed.log.iter().map(|sent| sent.at).collect();
    assert_eq!(times[3..], [now, now + DELAY + 40 * MILLISECOND]);
}

/// RFC 5681, section 3.2, and RFC 3042: two duplicates release new segments, and the third retransmits the lost one and halves the
/// window. With SACK (RFC 6675) and without (RFC 6582).
#[test]
fn third_duplicate_acknowledgment_retransmits() {
    for sack in [true, false] {
        let config = Config { sack, ..plain() };
        let mut testbed = Testbed::new(&config, &config, 1_000_000, losing(&[2]));
        testbed.run_while(SECOND * 5, |testbed| {
            testbed
                .server
                .as_ref()
                .is_none_or(|server| server.statistics().fast_recoveries == 0)
        });
        // The ACKs of segments 0 and 1 release segments 10 to 13, and the duplicates after 3 and 4 release 14 and 15. The duplicate
        // after 5 triggers the retransmission of 2.
        let data = testbed.data(Direction::ToClient);
        let order: Vec<u64> = data.iter().map(|(_, offset, _)| offset / 1000).collect();
        assert_eq!(order[10..17], [10, 11, 12, 13, 14, 15, 2], "sack {sack}");
        let statistics = testbed.server().statistics();
        // The window was 12 segments; the two segments of limited transmit do not count.
        assert_eq!(
            (
                statistics.ssthresh,
                statistics.retransmitted,
                statistics.timeouts
            ),
            (6_000, 1, 0)
        );
        testbed.run(60 * SECOND);
        assert_eq!(retransmissions(&testbed).len(), 1, "sack {sack}");
        assert_eq!(testbed.client.readable(), 1_000_000);
    }
}

/// RFC 6582: each partial acknowledgment retransmits the next hole, one per round trip. Recovery ends with ssthresh when all data sent
/// before it is acknowledged.
#[test]
fn newreno_fills_one_hole_per_round_trip() {
    let config = Config {
        sack: false,
        ..plain()
    };
    let mut testbed = Testbed::new(&config, &config, 200_000, losing(&[10, 12, 14]));
    testbed.run(SECOND * 60);
    let retransmitted = retransmissions(&testbed);
    let holes: Vec<u64> = retransmitted
        .iter()
        .map(|(_, offset)| offset / 1000)
        .collect();
    assert_eq!(holes, [10, 12, 14]);
    assert_eq!(
        [
            retransmitted[1].0 - retransmitted[0].0,
            retransmitted[2].0 - retransmitted[1].0
        ],
        [RTT, RTT]
    );
    let statistics = testbed.server().statistics();
    assert_eq!((statistics.fast_recoveries, statistics.timeouts), (1, 0));
}

/// With SACK, all holes are filled in the round trip in which they are detected.
#[test]
fn sack_fills_all_holes_in_one_round_trip() {
    let mut testbed = Testbed::new(&plain(), &plain(), 200_000, losing(&[10, 12, 14]));
    testbed.run(SECOND * 60);
    let retransmitted = retransmissions(&testbed);
    let holes: Vec<u64> = retransmitted
        .iter()
        .map(|(_, offset)| offset / 1000)
        .collect();
    assert_eq!(holes, [10, 12, 14]);
    assert_eq!(retransmitted[2].0, retransmitted[0].0);
    let statistics = testbed.server().statistics();
    assert_eq!((statistics.fast_recoveries, statistics.timeouts), (1, 0));
}

/// A lost retransmission causes a timeout, after which only the hole is retransmitted.
#[test]
fn sacked_data_is_not_retransmitted_after_a_timeout() {
    let mut attempts = 0;
    let channel = move |direction, _, segment: &mut Segment| {
        attempts +=
            usize::from(direction == Direction::ToClient && segment.seq == 2_000_001 + 4_000);
        if direction == Direction::ToClient && segment.seq == 2_000_001 + 4_000 && attempts < 4 {
            vec![]
        } else {
            vec![DELAY]
        }
    };
    let mut testbed = Testbed::new(&plain(), &plain(), 200_000, channel);
    testbed.run(SECOND * 60);
    let retransmitted = retransmissions(&testbed);
    assert_eq!(
        retransmitted
            .iter()
            .map(|(_, offset)| *offset)
            .collect::<Vec<_>>(),
        [4_000; 3]
    );
    let statistics = testbed.server().statistics();
    assert_eq!(
        (
            statistics.fast_recoveries,
            statistics.timeouts,
            statistics.retransmitted
        ),
        (1, 2, 3)
    );
    assert_eq!(testbed.client.readable(), 200_000);
}

/// RFC 6298: a timeout after SRTT + 4 RTTVAR, then after twice the time each time, up to the maximum.
///
/// The first measured round trip ends the backoff, unless it belongs to a retransmission (Karn).
#[test]
fn retransmission_timeout_backs_off() {
    let config = Config {
        max_rto: 2 * SECOND,
        ..plain()
    };
    let is_lost = |number: usize| (2..9).contains(&number);
    let channel = move |direction, number, _: &mut Segment| {
        if direction == Direction::ToClient && is_lost(number) {
            vec![]
        } else {
            vec![DELAY]
        }
    };
    let mut testbed = Testbed::new(&config, &config, 0, channel);
    testbed.run(SECOND);
    // Two samples of 100 ms, by the handshake and by a segment: RTTVAR is 50 ms, then 37.5 ms.
    testbed.server().write(1000);
    testbed.pump();
    testbed.run(2 * SECOND);
    let now = testbed.now;
    testbed.server().write(1000);
    testbed.pump();
    assert_eq!(testbed.server().statistics().rto, 250 * MILLISECOND);
    testbed.run(60 * SECOND);
    let times: Vec<u64> = testbed.data(Direction::ToClient)[1..]
        .iter()
        .map(|(at, ..)| (at - now) / MILLISECOND)
        .collect();
    let steps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(steps, [250, 500, 1000, 2000, 2000, 2000, 2000]);
    let statistics = testbed.server().statistics();
    assert_eq!((statistics.cwnd, statistics.ssthresh), (2_000, 2_000));
    // Karn's algorithm: the acknowledgment gives no RTT sample.
    assert_eq!(statistics.rto, 2 * SECOND);
    assert_eq!(statistics.srtt, Some(RTT));
    let now = testbed.now;
    testbed.server().write(1000);
    testbed.pump();
    testbed.run(now + 60 * SECOND);
    assert!(testbed.server().statistics().rto < 250 * MILLISECOND);
}

#[test]
fn sequence_numbers_wrap() {
    for sack in [true, false] {
        let config = Config { sack, ..plain() };
        let isns = (u32::MAX, u32::MAX - 25_000);
        let mut testbed =
            Testbed::with_isns(&config, &config, 100_000, isns, losing(&[20, 25, 26, 40]));
        testbed.run(60 * SECOND);
        assert_eq!(testbed.client.readable(), 100_000);
        let statistics = testbed.server().statistics();
        assert_eq!(
            (statistics.retransmitted, statistics.timeouts),
            (4, 0),
            "sack {sack}"
        );
    }
}

/// The first block contains the latest segment (RFC 2018, section 4).
#[test]
fn first_sack_block_has_the_latest_segment() {
    let mut testbed = Testbed::new(&plain(), &plain(), 12_000, losing(&[1, 3, 5, 7]));
    testbed.run_while(SECOND, |testbed| testbed.log.len() < 20);
    let sacks = testbed
        .log
        .iter()
        .filter(|sent| sent.direction == Direction::ToServer);
    let blocks: Vec<Vec<u32>> = sacks
        .map(|sent| {
            sent.segment
                .sack
                .iter()
                .map(|block| (block.0 - 2_000_001) / 1000)
                .collect()
        })
        .collect();
    assert_eq!(
        blocks[3..8],
        [
            vec![2],
            vec![4, 2],
            vec![6, 4, 2],
            vec![8, 6, 4],
            vec![8, 6, 4]
        ]
    );
}

/// A connection that was idle for more than the retransmission timeout restarts with the initial window (RFC 5681, section 4.1).
#[test]
fn idle_connection_restarts_with_the_initial_window() {
    let mut testbed = Testbed::new(&plain(), &plain(), 0, delay(DELAY));
    testbed.run(SECOND);
    for _ in 0..2 {
        testbed.server().write(300_000);
        testbed.pump();
        let (now, end) = (testbed.now, testbed.now + 10 * SECOND);
        let burst = testbed
            .data(Direction::ToClient)
            .iter()
            .filter(|(at, ..)| *at == now)
            .count();
        assert_eq!(burst, 10);
        testbed.run(end);
        testbed.now = end;
    }
}
