// SPDX-License-Identifier: Apache-2.0
//! Differences of NetBench's TCP from the RFCs, segment by segment.

mod common;

use common::{Direction, Testbed, delay, plain};
use frontage_transport::congestion::Congestion;
use frontage_transport::tcp::{Config, Ecn, Model, Segment};
use frontage_transport::{MILLISECOND, Nanos, SECOND};

/// One-direction delay.
const DELAY: Nanos = 50 * MILLISECOND;

fn netbench() -> Config {
    Config {
        model: Model::NetBench,
        ..plain()
    }
}

/// Returns the server's data segments: time in milliseconds, and number.
fn sent<C: common::Channel>(testbed: &Testbed<C>) -> Vec<(u64, u64)> {
    let data = testbed.data(Direction::ToClient);
    data.iter()
        .map(|(at, offset, _)| (at / MILLISECOND, offset / 1000))
        .collect()
}

/// Creates a channel that loses these data segments, numbered in the order in which the server sends them.
fn losing(lost: &'static [usize]) -> impl common::Channel {
    let mut data = 0;
    move |direction, _, segment: &mut Segment| {
        let counts = direction == Direction::ToClient && segment.len > 0;
        data += usize::from(counts);
        if counts && lost.contains(&(data - 1)) {
            vec![]
        } else {
            vec![DELAY]
        }
    }
}

#[test]
fn handshake_is_not_measured_and_sending_restarts_the_timer() {
    for (model, expected) in [(Model::Rfc, [300, 600]), (Model::NetBench, [1000, 2000])] {
        let config = Config { model, ..plain() };
        let mut testbed = Testbed::new(&config, &config, 0, losing(&[0, 1, 2]));
        testbed.run(SECOND);
        let begin = testbed.now / MILLISECOND;
        testbed.server().write(1000);
        testbed.pump();
        testbed.run(60 * SECOND);
        let times: Vec<u64> = sent(&testbed).iter().map(|(at, _)| at - begin).collect();
        assert_eq!(times[..3], [0, expected[0], expected[0] + expected[1]]);
    }
    // The first segment is lost. The second one follows after 900 ms and restarts the timer, which expires 1 s later.
    let mut testbed = Testbed::new(&netbench(), &netbench(), 0, losing(&[0]));
    testbed.run(SECOND);
    let begin = testbed.now;
    testbed.server().write(1000);
    testbed.pump();
    testbed.now = begin + 900 * MILLISECOND;
    testbed.server().write(1000);
    testbed.pump();
    testbed.run_while(60 * SECOND, |testbed| {
        testbed.data(Direction::ToClient).len() < 3
    });
    assert_eq!(testbed.now, begin + 1900 * MILLISECOND);
}

#[test]
fn segment_that_overtakes_the_acknowledgment_of_the_request_is_lost() {
    // The server's third segment acknowledges the request, after its SYN-ACK.
    let channel = |direction, number, segment: &mut Segment| {
        let is_late = direction == Direction::ToClient && number == 1;
        assert!(
            !is_late || segment.len == 0,
            "the acknowledgment has no data"
        );
        vec![if is_late { DELAY + MILLISECOND } else { DELAY }]
    };
    for (model, retransmitted) in [(Model::Rfc, 0), (Model::NetBench, 5)] {
        let config = Config { model, ..plain() };
        let mut testbed = Testbed::new(&config, &config, 0, channel);
        testbed.client.write(100);
        testbed.pump();
        testbed.run_while(SECOND, |testbed| {
            testbed
                .server
                .as_ref()
                .is_none_or(|server| server.readable() < 100)
        });
        testbed.server().write(5000);
        if model == Model::Rfc {
            // Send the acknowledgment before the data, which would otherwise carry it.
            testbed.run_while(testbed.now, |_| true);
        }
        testbed.pump();
        testbed.run(60 * SECOND);
        assert_eq!(testbed.client.readable(), 5000);
        assert_eq!(testbed.server().statistics().retransmitted, retransmitted);
    }
}

#[test]
fn sacked_data_is_not_retransmitted_after_a_timeout() {
    // The first of ten segments is lost. Duplicates before the first progress do not count.
    let mut testbed = Testbed::new(&netbench(), &netbench(), 10_000, losing(&[0, 4]));
    testbed.run(60 * SECOND);
    let first = sent(&testbed)[0].0;
    let retransmissions: Vec<_> = sent(&testbed)[10..]
        .iter()
        .map(|s| (s.0 - first, s.1))
        .collect();
    assert_eq!(retransmissions, [(1000, 0), (1100, 4)]);
    let statistics = testbed.server().statistics();
    assert_eq!((statistics.timeouts, statistics.fast_recoveries), (1, 0));

    // After the first progress, NewReno recovers one segment per round trip, regardless of SACK.
    let mut testbed = Testbed::new(&netbench(), &netbench(), 20_000, losing(&[10, 12]));
    testbed.run(60 * SECOND);
    let statistics = testbed.server().statistics();
    assert_eq!((statistics.timeouts, statistics.fast_recoveries), (0, 1));
    assert_eq!(statistics.retransmitted, 2);
    let times: Vec<_> = [10, 12]
        .map(|n| sent(&testbed).iter().rfind(|s| s.1 == n).unwrap().0)
        .to_vec();
    assert_eq!(times[1] - times[0], 100);
}

#[test]
fn timeout_halves_ssthresh_and_resets_the_estimate() {
    // The first of ten segments is lost twice. Its round trip is measured although it was retransmitted.
    let mut testbed = Testbed::new(&netbench(), &netbench(), 10_000, losing(&[0, 10]));
    testbed.run_while(60 * SECOND, |testbed| {
        testbed.data(Direction::ToClient).len() < 12
    });
    let statistics = testbed.server().statistics();
    assert_eq!((statistics.timeouts, statistics.cwnd), (2, 1000));
    assert_eq!(
        statistics.ssthresh, 2000,
        "one segment was sent since the first timeout, not ten"
    );
    testbed.run(60 * SECOND);
    let statistics = testbed.server().statistics();
    assert_eq!(statistics.srtt, Some(2 * DELAY));
    assert_eq!(
        statistics.rto,
        6 * DELAY,
        "SRTT + 4 (SRTT / 2), without backoff"
    );
    assert_eq!(testbed.client.readable(), 10_000);
}

#[test]
fn connection_never_fails() {
    // Without this maximum, the timeout would grow to nine hours (1 s, doubled fifteen times).
    let config = Config {
        max_rto: 60 * SECOND,
        ..netbench()
    };
    let lose_data = |direction, _, segment: &mut Segment| match direction {
        Direction::ToClient if segment.len > 0 => vec![],
        _ => vec![DELAY],
    };
    let mut testbed = Testbed::new(&config, &config, 1000, lose_data);
    testbed.run(3600 * SECOND);
    assert!(testbed.server().statistics().timeouts > 50);
    assert!(testbed.server().is_established());
    let lose_all = |direction, _, _: &mut Segment| match direction {
        Direction::ToClient => vec![],
        Direction::ToServer => vec![DELAY],
    };
    let mut testbed = Testbed::new(&config, &config, 1000, lose_all);
    testbed.run(3600 * SECOND);
    assert!(!testbed.client.is_aborted() && !testbed.server().is_aborted());
}

#[test]
fn lost_syn_ack_leaves_a_window_of_one_segment() {
    let channel = |direction, number, _: &mut Segment| {
        let lost = direction == Direction::ToClient && number == 0;
        if lost { vec![] } else { vec![DELAY] }
    };
    let mut testbed = Testbed::new(&netbench(), &netbench(), 0, channel);
    testbed.run(10 * SECOND);
    let statistics = testbed.server().statistics();
    assert_eq!((statistics.cwnd, statistics.ssthresh), (1000, 2000));
}

#[test]
fn each_marked_acknowledgment_reduces_the_window() {
    let marks = |direction, _, segment: &mut Segment| {
        if direction == Direction::ToClient && segment.ecn == Ecn::Ect0 && segment.len > 0 {
            segment.ecn = Ecn::Ce;
        }
        vec![DELAY]
    };
    let config = Config {
        congestion: Congestion::Dctcp,
        ..netbench()
    };
    let mut testbed = Testbed::new(&config, &config, 10_000, marks);
    testbed.run(60 * SECOND);
    let statistics = testbed.server().statistics();
    assert_eq!(statistics.mark_reductions, 10);
    // alpha starts at 0. It is 1/16 after the first acknowledgment, and 31/256 after the last one, which ends the next window.
    let alphas = [1.0 / 16.0; 9].into_iter().chain([31.0 / 256.0]);
    let expected = alphas.fold(10_000, |window, alpha: f64| {
        (f64::from(window) * (1.0 - alpha / 2.0)) as u32
    });
    assert_eq!(statistics.cwnd, u64::from(expected));

    let mut testbed = Testbed::new(&config, &config, 500_000, marks);
    testbed.run(60 * SECOND);
    assert_eq!(testbed.client.readable(), 500_000);
    assert_eq!(testbed.server().statistics().cwnd, 1000);
}

#[test]
fn window_grows_by_at_most_a_segment_per_acknowledgment() {
    let client = Config {
        delayed_ack: Some(40 * MILLISECOND),
        ..netbench()
    };
    let mut testbed = Testbed::new(&client, &netbench(), 40_000, delay(DELAY));
    testbed.run(60 * SECOND);
    let data = sent(&testbed);
    let rounds: Vec<usize> = (0..3)
        .map(|round| {
            data.iter()
                .filter(|s| (s.0 - data[0].0) / 100 == round)
                .count()
        })
        .collect();
    assert_eq!(rounds, [10, 15, 15]);
}
