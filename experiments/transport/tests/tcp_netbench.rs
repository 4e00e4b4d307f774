//! What NetBench's TCP does differently from the RFCs, segment by segment.

mod common;

use common::{Way, World, delay, plain};
use frontage_transport::congestion::Congestion;
use frontage_transport::tcp::{Config, Ecn, Model, Segment};
use frontage_transport::{MILLISECOND, Nanos, SECOND};

/// One way.
const DELAY: Nanos = 50 * MILLISECOND;

fn netbench() -> Config {
    Config {
        model: Model::NetBench,
        ..plain()
    }
}

/// When the server sent which segments of data, in milliseconds, and by their numbers.
fn sent<C: common::Channel>(world: &World<C>) -> Vec<(u64, u64)> {
    let data = world.data(Way::ToClient);
    data.iter()
        .map(|(at, offset, _)| (at / MILLISECOND, offset / 1000))
        .collect()
}

/// Loses these segments of data, by the order in which the server sends them.
fn losing(lost: &'static [usize]) -> impl common::Channel {
    let mut data = 0;
    move |way, _, segment: &mut Segment| {
        let counts = way == Way::ToClient && segment.len > 0;
        data += usize::from(counts);
        if counts && lost.contains(&(data - 1)) {
            vec![]
        } else {
            vec![DELAY]
        }
    }
}

#[test]
fn the_handshake_is_not_measured_and_sending_starts_the_timer_anew() {
    for (model, expected) in [(Model::Rfc, [300, 600]), (Model::NetBench, [1000, 2000])] {
        let config = Config { model, ..plain() };
        let mut world = World::new(&config, &config, 0, losing(&[0, 1, 2]));
        world.run(SECOND);
        let begin = world.now / MILLISECOND;
        world.server().write(1000);
        world.pump();
        world.run(60 * SECOND);
        let times: Vec<u64> = sent(&world).iter().map(|(at, _)| at - begin).collect();
        assert_eq!(times[..3], [0, expected[0], expected[0] + expected[1]]);
    }
    // A second segment 900 ms after the first, which is lost: a second after it.
    let mut world = World::new(&netbench(), &netbench(), 0, losing(&[0]));
    world.run(SECOND);
    let begin = world.now;
    world.server().write(1000);
    world.pump();
    world.now = begin + 900 * MILLISECOND;
    world.server().write(1000);
    world.pump();
    world.run_while(60 * SECOND, |world| world.data(Way::ToClient).len() < 3);
    assert_eq!(world.now, begin + 1900 * MILLISECOND);
}

#[test]
fn what_overtakes_the_acknowledgement_of_the_request_is_lost() {
    // The server's third segment acknowledges the request, after its SYN-ACK.
    let channel = |way, number, segment: &mut Segment| {
        let late = way == Way::ToClient && number == 1;
        assert!(!late || segment.len == 0, "it goes alone");
        vec![if late { DELAY + MILLISECOND } else { DELAY }]
    };
    for (model, again) in [(Model::Rfc, 0), (Model::NetBench, 5)] {
        let config = Config { model, ..plain() };
        let mut world = World::new(&config, &config, 0, channel);
        world.client.write(100);
        world.pump();
        world.run_while(SECOND, |world| {
            world
                .server
                .as_ref()
                .is_none_or(|server| server.readable() < 100)
        });
        world.server().write(5000);
        if model == Model::Rfc {
            // Else the data would acknowledge.
            world.run_while(world.now, |_| true);
        }
        world.pump();
        world.run(60 * SECOND);
        assert_eq!(world.client.readable(), 5000);
        assert_eq!(world.server().statistics().retransmitted, again);
    }
}

#[test]
fn after_a_timeout_what_was_sacked_is_not_sent_again() {
    // The first of ten, of which nothing was acknowledged before: no duplicate counts.
    let mut world = World::new(&netbench(), &netbench(), 10_000, losing(&[0, 4]));
    world.run(60 * SECOND);
    let first = sent(&world)[0].0;
    let again: Vec<_> = sent(&world)[10..]
        .iter()
        .map(|s| (s.0 - first, s.1))
        .collect();
    assert_eq!(again, [(1000, 0), (1100, 4)]);
    let statistics = world.server().statistics();
    assert_eq!((statistics.timeouts, statistics.fast_recoveries), (1, 0));

    // Once something was, NewReno recovers one a round trip, whatever SACK tells.
    let mut world = World::new(&netbench(), &netbench(), 20_000, losing(&[10, 12]));
    world.run(60 * SECOND);
    let statistics = world.server().statistics();
    assert_eq!((statistics.timeouts, statistics.fast_recoveries), (0, 1));
    assert_eq!(statistics.retransmitted, 2);
    let times: Vec<_> = [10, 12]
        .map(|n| sent(&world).iter().rfind(|s| s.1 == n).unwrap().0)
        .to_vec();
    assert_eq!(times[1] - times[0], 100);
}

#[test]
fn each_timeout_halves_and_the_first_measurement_after_it_is_the_only_one() {
    // The first of ten is lost twice; that it was sent again does not keep it from being measured.
    let mut world = World::new(&netbench(), &netbench(), 10_000, losing(&[0, 10]));
    world.run_while(60 * SECOND, |world| world.data(Way::ToClient).len() < 12);
    let statistics = world.server().statistics();
    assert_eq!((statistics.timeouts, statistics.cwnd), (2, 1000));
    assert_eq!(
        statistics.ssthresh, 2000,
        "one segment was in flight, not ten"
    );
    world.run(60 * SECOND);
    let statistics = world.server().statistics();
    assert_eq!(statistics.srtt, Some(2 * DELAY));
    assert_eq!(
        statistics.rto,
        6 * DELAY,
        "SRTT + 4 (SRTT / 2), not doubled"
    );
    assert_eq!(world.client.readable(), 10_000);
}

#[test]
fn no_connection_is_given_up() {
    // 1 s doubled fifteen times is nine hours, and is as long as it gets.
    let config = Config {
        max_rto: 60 * SECOND,
        ..netbench()
    };
    let deaf = |way, _, segment: &mut Segment| match way {
        Way::ToClient if segment.len > 0 => vec![],
        _ => vec![DELAY],
    };
    let mut world = World::new(&config, &config, 1000, deaf);
    world.run(3600 * SECOND);
    assert!(world.server().statistics().timeouts > 50);
    assert!(world.server().is_established());
    let unheard = |way, _, _: &mut Segment| match way {
        Way::ToClient => vec![],
        Way::ToServer => vec![DELAY],
    };
    let mut world = World::new(&config, &config, 1000, unheard);
    world.run(3600 * SECOND);
    assert!(!world.client.is_aborted() && !world.server().is_aborted());
}

#[test]
fn a_lost_syn_ack_leaves_a_window_of_a_segment() {
    let channel = |way, number, _: &mut Segment| {
        let lost = way == Way::ToClient && number == 0;
        if lost { vec![] } else { vec![DELAY] }
    };
    let mut world = World::new(&netbench(), &netbench(), 0, channel);
    world.run(10 * SECOND);
    let statistics = world.server().statistics();
    assert_eq!((statistics.cwnd, statistics.ssthresh), (1000, 2000));
}

#[test]
fn each_marked_acknowledgement_reduces() {
    let marks = |way, _, segment: &mut Segment| {
        if way == Way::ToClient && segment.ecn == Ecn::Ect0 && segment.len > 0 {
            segment.ecn = Ecn::Ce;
        }
        vec![DELAY]
    };
    let config = Config {
        congestion: Congestion::Dctcp,
        ..netbench()
    };
    let mut world = World::new(&config, &config, 10_000, marks);
    world.run(60 * SECOND);
    let statistics = world.server().statistics();
    assert_eq!(statistics.mark_reductions, 10);
    // If alpha began at 0, it is 1/16 after the first acknowledgement, and 31/256 after the last, which ends the next window.
    let alphas = [1.0 / 16.0; 9].into_iter().chain([31.0 / 256.0]);
    let expected = alphas.fold(10_000, |window, alpha: f64| {
        (f64::from(window) * (1.0 - alpha / 2.0)) as u32
    });
    assert_eq!(statistics.cwnd, u64::from(expected));

    let mut world = World::new(&config, &config, 500_000, marks);
    world.run(60 * SECOND);
    assert_eq!(world.client.readable(), 500_000);
    assert_eq!(world.server().statistics().cwnd, 1000);
}

#[test]
fn a_window_grows_by_a_segment_with_each_acknowledgement() {
    let client = Config {
        delayed_ack: Some(40 * MILLISECOND),
        ..netbench()
    };
    let mut world = World::new(&client, &netbench(), 40_000, delay(DELAY));
    world.run(60 * SECOND);
    let data = sent(&world);
    let rounds: Vec<usize> = (0..3)
        .map(|round| {
            data.iter()
                .filter(|s| (s.0 - data[0].0) / 100 == round)
                .count()
        })
        .collect();
    assert_eq!(rounds, [10, 15, 15]);
}
