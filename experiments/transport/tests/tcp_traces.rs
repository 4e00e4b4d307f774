//! What an RFC says is sent when, segment by segment: slow start, loss recovery, timers.

mod common;

use common::{Sent, Way, World, delay, plain};
use frontage_transport::tcp::{Config, Segment};
use frontage_transport::{MILLISECOND, Nanos, SECOND};

/// One way.
const DELAY: Nanos = 50 * MILLISECOND;
const RTT: Nanos = 2 * DELAY;

/// How many data segments the server sent in each round trip after the first.
fn segments_by_round<C>(world: &World<C>) -> Vec<usize>
where
    C: common::Channel,
{
    let data = world.data(Way::ToClient);
    let first = data[0].0;
    let rounds = (data[data.len() - 1].0 - first) / RTT + 1;
    let of = |round| {
        data.iter()
            .filter(|(at, ..)| (at - first) / RTT == round)
            .count()
    };
    (0..rounds).map(of).collect()
}

/// Offsets of data the server sent more than once, in the order in which that happened.
fn sent_again<C: common::Channel>(world: &World<C>) -> Vec<(Nanos, u64)> {
    let data = world.data(Way::ToClient);
    let again = data
        .iter()
        .enumerate()
        .filter(|(n, (_, offset, _))| data[..*n].iter().any(|d| d.1 == *offset));
    again.map(|(_, (at, offset, _))| (*at, *offset)).collect()
}

/// Loses these segments of those with payload, by the order in which the server sends them.
fn losing(lost: &'static [usize]) -> impl common::Channel {
    let mut data = 0;
    move |way, _, segment: &mut Segment| {
        if way == Way::ToServer || segment.len == 0 {
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
fn slow_start_doubles_each_round_trip() {
    let mut world = World::new(&plain(), &plain(), 310_000, delay(DELAY));
    world.run(SECOND * 5);
    assert_eq!(segments_by_round(&world), [10, 20, 40, 80, 160]);
    // The initial window, and all that was acknowledged, with the FIN.
    assert_eq!(world.server().statistics().cwnd, 10_000 + 310_000 + 1);
}

/// RFC 5681, section 3.1: beyond ssthresh a segment a round trip, and a window on it begins there.
#[test]
fn slow_start_ends_at_the_initial_threshold() {
    for (initial_window, expected) in [(10, [10, 20, 30, 31, 32]), (30, [30, 31, 32, 33, 34])] {
        let config = Config {
            initial_window,
            initial_threshold: Some(30),
            ..plain()
        };
        let segments: usize = expected.iter().sum();
        let mut world = World::new(&config, &config, segments as u64 * 1000, delay(DELAY));
        world.run(SECOND * 5);
        assert_eq!(segments_by_round(&world), expected);
    }
}

/// With half of the acknowledgements, slow start grows as fast (RFC 3465), and the last segment's
/// waits for the timer.
#[test]
fn acknowledgements_are_delayed_for_a_second_segment() {
    let client = Config {
        delayed_ack: Some(40 * MILLISECOND),
        ..plain()
    };
    let mut world = World::new(&client, &plain(), 151_000, delay(DELAY));
    world.run(SECOND * 5);
    assert_eq!(segments_by_round(&world), [10, 20, 40, 80, 1]);
    let acks: Vec<&Sent> = world
        .log
        .iter()
        .filter(|sent| sent.way == Way::ToServer)
        .collect();
    // SYN, ACK of the SYN-ACK, one for two segments, the FIN's at once.
    assert_eq!(acks.len(), 2 + 75 + 1);

    let mut world = World::new(&client, &plain(), 0, delay(DELAY));
    world.run(SECOND);
    let now = world.now;
    world.server().write(1000);
    world.pump();
    world.run(10 * SECOND);
    let times: Vec<Nanos> = world.log.iter().map(|sent| sent.at).collect();
    assert_eq!(times[3..], [now, now + DELAY + 40 * MILLISECOND]);
}

/// RFC 5681, section 3.2, and RFC 3042: two duplicates let new segments out, the third brings the
/// lost one, and the window is halved. With SACK (RFC 6675) and without (RFC 6582).
#[test]
fn three_duplicates_retransmit() {
    for sack in [true, false] {
        let config = Config { sack, ..plain() };
        let mut world = World::new(&config, &config, 1_000_000, losing(&[2]));
        world.run_while(SECOND * 5, |world| {
            world
                .server
                .as_ref()
                .is_none_or(|server| server.statistics().fast_recoveries == 0)
        });
        // Segments 0 and 1 let out 10 to 13; the duplicates of 3 and 4 let out 14 and 15; that of
        // 5 brings 2.
        let data = world.data(Way::ToClient);
        let order: Vec<u64> = data.iter().map(|(_, offset, _)| offset / 1000).collect();
        assert_eq!(order[10..17], [10, 11, 12, 13, 14, 15, 2], "sack {sack}");
        let statistics = world.server().statistics();
        // The window was 12 segments; limited transmit's two do not count.
        assert_eq!(
            (
                statistics.ssthresh,
                statistics.retransmitted,
                statistics.timeouts
            ),
            (6_000, 1, 0)
        );
        world.run(60 * SECOND);
        assert_eq!(sent_again(&world).len(), 1, "sack {sack}");
        assert_eq!(world.client.readable(), 1_000_000);
    }
}

/// RFC 6582: each partial acknowledgement brings the next hole, one a round trip, and recovery
/// ends when all that was sent before it is acknowledged, at ssthresh.
#[test]
fn newreno_fills_a_hole_a_round_trip() {
    let config = Config {
        sack: false,
        ..plain()
    };
    let mut world = World::new(&config, &config, 200_000, losing(&[10, 12, 14]));
    world.run(SECOND * 60);
    let again = sent_again(&world);
    let holes: Vec<u64> = again.iter().map(|(_, offset)| offset / 1000).collect();
    assert_eq!(holes, [10, 12, 14]);
    assert_eq!(
        [again[1].0 - again[0].0, again[2].0 - again[1].0],
        [RTT, RTT]
    );
    let statistics = world.server().statistics();
    assert_eq!((statistics.fast_recoveries, statistics.timeouts), (1, 0));
}

/// With SACK all holes are filled in the round trip in which they are known.
#[test]
fn sack_fills_all_holes_in_a_round_trip() {
    let mut world = World::new(&plain(), &plain(), 200_000, losing(&[10, 12, 14]));
    world.run(SECOND * 60);
    let again = sent_again(&world);
    let holes: Vec<u64> = again.iter().map(|(_, offset)| offset / 1000).collect();
    assert_eq!(holes, [10, 12, 14]);
    assert_eq!(again[2].0, again[0].0);
    let statistics = world.server().statistics();
    assert_eq!((statistics.fast_recoveries, statistics.timeouts), (1, 0));
}

/// A retransmission that is lost too costs a timeout, after which only the hole is sent again.
#[test]
fn after_a_timeout_what_was_sacked_is_not_sent_again() {
    let mut tries = 0;
    let channel = move |way, _, segment: &mut Segment| {
        tries += usize::from(way == Way::ToClient && segment.seq == 2_000_001 + 4_000);
        if way == Way::ToClient && segment.seq == 2_000_001 + 4_000 && tries < 4 {
            vec![]
        } else {
            vec![DELAY]
        }
    };
    let mut world = World::new(&plain(), &plain(), 200_000, channel);
    world.run(SECOND * 60);
    let again = sent_again(&world);
    assert_eq!(
        again.iter().map(|(_, offset)| *offset).collect::<Vec<_>>(),
        [4_000; 3]
    );
    let statistics = world.server().statistics();
    assert_eq!(
        (
            statistics.fast_recoveries,
            statistics.timeouts,
            statistics.retransmitted
        ),
        (1, 2, 3)
    );
    assert_eq!(world.client.readable(), 200_000);
}

/// RFC 6298: SRTT + 4 RTTVAR after the last acknowledgement, then twice as long each time, up to
/// the maximum; the first answered round trip ends the backing off only if it is no
/// retransmission's (Karn).
#[test]
fn timeouts_back_off() {
    let config = Config {
        max_rto: 2 * SECOND,
        ..plain()
    };
    let gone = |number: usize| (2..9).contains(&number);
    let channel = move |way, number, _: &mut Segment| {
        if way == Way::ToClient && gone(number) {
            vec![]
        } else {
            vec![DELAY]
        }
    };
    let mut world = World::new(&config, &config, 0, channel);
    world.run(SECOND);
    // One round trip of 100 ms by the handshake, then one by a segment: RTTVAR = 50, then 37.5 ms.
    world.server().write(1000);
    world.pump();
    world.run(2 * SECOND);
    let now = world.now;
    world.server().write(1000);
    world.pump();
    assert_eq!(world.server().statistics().rto, 250 * MILLISECOND);
    world.run(60 * SECOND);
    let times: Vec<u64> = world.data(Way::ToClient)[1..]
        .iter()
        .map(|(at, ..)| (at - now) / MILLISECOND)
        .collect();
    let steps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(steps, [250, 500, 1000, 2000, 2000, 2000, 2000]);
    let statistics = world.server().statistics();
    assert_eq!((statistics.cwnd, statistics.ssthresh), (2_000, 2_000));
    // Karn: acknowledged, but no round trip was measured.
    assert_eq!(statistics.rto, 2 * SECOND);
    assert_eq!(statistics.srtt, Some(RTT));
    let now = world.now;
    world.server().write(1000);
    world.pump();
    world.run(now + 60 * SECOND);
    assert!(world.server().statistics().rto < 250 * MILLISECOND);
}

#[test]
fn sequence_numbers_wrap() {
    for sack in [true, false] {
        let config = Config { sack, ..plain() };
        let isns = (u32::MAX, u32::MAX - 25_000);
        let mut world =
            World::with_isns(&config, &config, 100_000, isns, losing(&[20, 25, 26, 40]));
        world.run(60 * SECOND);
        assert_eq!(world.client.readable(), 100_000);
        let statistics = world.server().statistics();
        assert_eq!(
            (statistics.retransmitted, statistics.timeouts),
            (4, 0),
            "sack {sack}"
        );
    }
}

/// The first block is that of the segment that came last (RFC 2018, section 4).
#[test]
fn sack_blocks_tell_the_latest_first() {
    let mut world = World::new(&plain(), &plain(), 12_000, losing(&[1, 3, 5, 7]));
    world.run_while(SECOND, |world| world.log.len() < 20);
    let sacks = world.log.iter().filter(|sent| sent.way == Way::ToServer);
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

/// A window unused for longer than the retransmission timeout does not burst (RFC 5681, 4.1).
#[test]
fn an_idle_connection_starts_again_with_the_initial_window() {
    let mut world = World::new(&plain(), &plain(), 0, delay(DELAY));
    world.run(SECOND);
    for _ in 0..2 {
        world.server().write(300_000);
        world.pump();
        let (now, end) = (world.now, world.now + 10 * SECOND);
        let burst = world
            .data(Way::ToClient)
            .iter()
            .filter(|(at, ..)| *at == now)
            .count();
        assert_eq!(burst, 10);
        world.run(end);
        world.now = end;
    }
}
