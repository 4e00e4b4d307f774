// SPDX-License-Identifier: Apache-2.0
//! Steady state of long flows: comparison with formulas of the literature, and fairness.

mod common;

use common::bottleneck::{Bottleneck, Link};
use common::{Direction, Testbed, plain};
use frontage_transport::congestion::Congestion;
use frontage_transport::tcp::{Config, Ecn, Flags, Segment};
use frontage_transport::{MILLISECOND, SECOND};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::RngCore;

/// Mathis et al., "The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm" (1997): MSS/RTT * sqrt(3/2p).
/// Acknowledgments are immediate. Timeouts make the flow slower than the formula.
#[test]
fn newreno_throughput_follows_mathis() {
    for (loss, sack) in [(0.0005, true), (0.002, true), (0.005, true), (0.002, false)] {
        let config = Config { sack, ..plain() };
        let mut random = Pcg64Mcg::new(7);
        let limit = (loss * 2f64.powi(32)) as u32;
        let channel = move |_, _, segment: &mut Segment| {
            if segment.len > 0 && random.next_u32() < limit {
                vec![]
            } else {
                vec![50 * MILLISECOND]
            }
        };
        let mut testbed = Testbed::new(&config, &config, 1 << 40, channel);
        testbed.run(400 * SECOND);
        testbed.log.clear();
        let rate = testbed.client.readable() as f64 / 400.0;
        let formula = 1000.0 / 0.1 * (1.5 / loss).sqrt();
        let ratio = rate / formula;
        assert!(
            (0.85..1.1).contains(&ratio),
            "loss {loss}, SACK {sack}: {ratio} of the formula"
        );
    }
}

const LINK: Link = Link {
    rate: 20_000_000,
    delay: 10 * MILLISECOND,
    queue: 50,
    mark_at: None,
};

/// Two flows of one algorithm, one of which starts 5 s later, share a link and fill it.
#[test]
fn two_flows_share_fairly() {
    for congestion in [Congestion::NewReno, Congestion::Cubic, Congestion::Dctcp] {
        let config = Config {
            congestion,
            ..plain()
        };
        let mark_at = (congestion == Congestion::Dctcp).then_some(10);
        let mut link = Bottleneck::new(
            Link { mark_at, ..LINK },
            &[(config.clone(), 0), (config, 5 * SECOND)],
        );
        link.run(30 * SECOND);
        let before = link.readable();
        link.run(100 * SECOND);
        let shares: Vec<f64> = link
            .readable()
            .iter()
            .zip(before)
            .map(|(after, before)| (after - before) as f64)
            .collect();
        let sum = shares.iter().sum::<f64>();
        let jain = sum * sum / (2.0 * shares.iter().map(|share| share * share).sum::<f64>());
        let used = sum * 8.0 / 70.0 / LINK.rate as f64 * 1.04;
        assert!(
            jain > 0.95,
            "{congestion:?}: Jain's index {jain}, {shares:?}"
        );
        assert!(used > 0.95, "{congestion:?}: utilization {used}");
        match congestion {
            Congestion::Dctcp => assert_eq!(link.drops, 0),
            _ => assert!(link.drops > 0),
        }
    }
}

/// DCTCP keeps the queue near the threshold (Alizadeh et al., "Data Center TCP (DCTCP)", 2010, section 3.3).
///
/// For N flows, its maximum is K + N + 1 packets, and its amplitude is sqrt(N * (C * RTT + K) / 2).
#[test]
fn dctcp_keeps_the_queue_at_the_threshold() {
    let config = Config {
        congestion: Congestion::Dctcp,
        ..plain()
    };
    let link = Link {
        queue: 1000,
        mark_at: Some(20),
        ..LINK
    };
    let mut bottleneck = Bottleneck::new(link, &[(config, 0)]);
    bottleneck.run(10 * SECOND);
    bottleneck.depth = (0, 0);
    let mut alpha = 0.0;
    for at in 10_001..=40_000 {
        bottleneck.run(at * MILLISECOND);
        alpha += bottleneck.flows[0]
            .client
            .marked_share()
            .expect("DCTCP has an alpha")
            / 30_000.0;
    }
    let mean = bottleneck.depth.0 as f64 / bottleneck.depth.1 as f64;
    let packets: f64 = 20e6 / 8.0 / 1040.0 * 0.02 + 20.0;
    let swing = (packets / 2.0).sqrt();
    let expected = 21.0 - swing / 2.0;
    assert!(
        (mean - expected).abs() < 2.0,
        "mean depth {mean}, expected {expected}"
    );
    // alpha = sqrt(2 / W*), equation 6.
    let formula = (2.0 / packets).sqrt();
    assert!(
        (alpha / formula - 1.0).abs() < 0.15,
        "alpha {alpha}, formula {formula}"
    );
    assert_eq!(bottleneck.drops, 0);
}

/// After a loss at a known window, cwnd at each acknowledgment is W_cubic one round trip later (RFC 9438, section 4.2), through the
/// concave and the convex region.
#[test]
fn cubic_follows_its_curve_over_a_path() {
    let config = Config {
        congestion: Congestion::Cubic,
        ..plain()
    };
    let channel = |direction, number: usize, _: &mut Segment| {
        if direction == Direction::ToClient && number == 1000 {
            vec![]
        } else {
            vec![50 * MILLISECOND]
        }
    };
    let mut testbed = Testbed::new(&config, &config, 1 << 40, channel);
    testbed.run_while(60 * SECOND, |testbed| {
        testbed
            .server
            .as_ref()
            .is_none_or(|server| server.statistics().fast_recoveries == 0)
    });
    let start = testbed.now;
    let ssthresh = testbed.server().statistics().ssthresh;
    let w_max = ssthresh as f64 / 0.7 / 1000.0;
    let k = (w_max * 0.3 / 0.4).cbrt();
    // The curve starts at the end of recovery, which takes a round trip.
    for seconds in 1..20 {
        testbed.run_while(start + seconds * SECOND, |_| true);
        let t = (testbed.now - start) as f64 / 1e9 - 0.1;
        let got = testbed.server().statistics().cwnd as f64 / 1000.0;
        let curve = |t: f64| 0.4 * (t - k).powi(3) + w_max;
        let (low, high) = (curve(t - 0.1), curve(t + 0.15));
        assert!(
            (low - 1.0..high + 1.0).contains(&got),
            "after {t} s: {got} segments, W_cubic {low} to {high}"
        );
    }
    assert_eq!(testbed.server().statistics().retransmitted, 1);
}

/// RFC 3168: marks reduce the window once per round trip, CWR reports the reduction, and ECE ends with it.
#[test]
fn mark_reduces_the_window_once_per_window() {
    let config = Config {
        ecn: true,
        ..plain()
    };
    let mut data = 0;
    let channel = move |_, _, segment: &mut Segment| {
        if segment.len > 0 {
            assert_eq!(segment.ecn, Ecn::Ect0);
            data += 1;
            if (100..105).contains(&data) {
                segment.ecn = Ecn::Ce;
            }
        } else {
            assert_eq!(
                segment.ecn,
                Ecn::NotEct,
                "pure ACKs and SYNs are not ECN-capable"
            );
        }
        vec![50 * MILLISECOND]
    };
    let mut testbed = Testbed::new(&config, &config, 300_000, channel);
    testbed.run(20 * SECOND);
    let statistics = testbed.server().statistics();
    assert_eq!(
        (statistics.mark_reductions, statistics.retransmitted),
        (1, 0)
    );
    let syns: Vec<Flags> = testbed.log[..2]
        .iter()
        .map(|sent| sent.segment.flags)
        .collect();
    assert_eq!(
        syns,
        [
            Flags::SYN | Flags::ECE | Flags::CWR,
            Flags::SYN | Flags::ACK | Flags::ECE
        ]
    );
    let cwr = testbed.log[2..]
        .iter()
        .filter(|sent| sent.segment.flags.has(Flags::CWR));
    assert_eq!(
        cwr.map(|sent| sent.direction).collect::<Vec<_>>(),
        [Direction::ToClient]
    );
    let ece = |sent: &&common::Sent| {
        sent.direction == Direction::ToServer && sent.segment.flags.has(Flags::ECE)
    };
    let echoes: Vec<_> = testbed.log[1..]
        .iter()
        .filter(ece)
        .map(|sent| sent.at)
        .collect();
    assert!(
        echoes[echoes.len() - 1] - echoes[0] < 150 * MILLISECOND,
        "echoes last at most one round trip and the time of a window"
    );
}

/// RFC 8257, section 3.2: with delayed acknowledgments, ECE identifies exactly the marked segments.
#[test]
fn dctcp_echoes_marks_exactly() {
    let config = Config {
        congestion: Congestion::Dctcp,
        delayed_ack: Some(40 * MILLISECOND),
        ..plain()
    };
    let mut random = Pcg64Mcg::new(3);

    let channel = move |_, _, segment: &mut Segment| {
        assert_eq!(segment.ecn, Ecn::Ect0, "all DCTCP packets are ECN-capable");
        if segment.len > 0 && random.next_u32().is_multiple_of(4) {
            segment.ecn = Ecn::Ce;
        }
        vec![50 * MILLISECOND]
    };
    let mut testbed = Testbed::new(&config, &config, 0, channel);
    testbed.run(SECOND);
    testbed.server().write(500_000);
    testbed.pump();
    testbed.run(60 * SECOND);
    assert_eq!(testbed.client.readable(), 500_000);
    // Compare the marked bytes according to the acknowledgments with the marks, which the same seed repeats.
    let (mut last, mut echoed) = (2_000_001, 0);
    for sent in testbed.log[2..]
        .iter()
        .filter(|sent| sent.direction == Direction::ToServer)
    {
        let bytes = sent.segment.ack.wrapping_sub(last);
        echoed += if sent.segment.flags.has(Flags::ECE) {
            bytes
        } else {
            0
        };
        last = sent.segment.ack;
    }
    let mut random = Pcg64Mcg::new(3);
    let marks = (0..500)
        .filter(|_| random.next_u32().is_multiple_of(4))
        .count();
    assert_eq!(echoed as usize, marks * 1000);
    assert!(testbed.log.len() < 1000, "acknowledgments are delayed");
}
