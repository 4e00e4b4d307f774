//! Known answers: what an RFC says is sent when, segment by segment.

mod common;

use common::{Sent, Way, World, delay, plain};
use frontage_transport::tcp::{Config, Connection, Flags, Segment, State, Timestamps};
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

#[test]
fn the_handshake_agrees_on_options() {
    let client = Config {
        mss: 1460,
        timestamps: true,
        receive_window: 1 << 20,
        ..plain()
    };
    let server = Config {
        mss: 1000,
        ..client.clone()
    };
    let mut world = World::new(&client, &server, 10, delay(DELAY));
    world.client.finish();
    world.run(10 * SECOND);
    let flags: Vec<_> = world
        .log
        .iter()
        .map(|sent| (sent.at / DELAY, sent.way, sent.segment.flags))
        .collect();
    let ack = Flags::ACK;
    let expected = [
        (0, Way::ToServer, Flags::SYN),
        (1, Way::ToClient, Flags::SYN | ack),
        (2, Way::ToServer, Flags::FIN | ack),
        (3, Way::ToClient, Flags::FIN | Flags::PSH | ack),
        (4, Way::ToServer, ack),
    ];
    assert_eq!(flags, expected);
    let syn = &world.log[0].segment;
    assert_eq!(
        (syn.mss, syn.window_scale, syn.window, syn.sack_permitted),
        (Some(1460), Some(5), 65535, true)
    );
    assert_eq!((syn.seq, syn.header_length()), (1000, 40));
    let syn_ack = &world.log[1].segment;
    assert_eq!(
        (syn_ack.mss, syn_ack.seq, syn_ack.ack),
        (Some(1000), 2_000_000, 1001)
    );
    assert_eq!(syn_ack.ts, Some(Timestamps { val: 50, ecr: 0 }));
    assert_eq!(
        world.log[2].segment.ts,
        Some(Timestamps { val: 100, ecr: 50 })
    );
    assert_eq!(u64::from(world.log[2].segment.window) << 5, 1 << 20);
    // Both closed at once: the server had seen the client's FIN before it sent its own.
    assert_eq!(
        (world.client.state(), world.server().state()),
        (State::TimeWait, State::Closed)
    );
}

#[test]
fn a_window_scale_that_only_one_end_knows_is_not_used() {
    let mut server = Connection::connect(&plain(), 0, 0);
    let mut syn = server.poll_transmit(0).expect("a SYN");
    (syn.window_scale, syn.sack_permitted) = (None, false);
    server = Connection::accept(&plain(), 0, &syn, 0);
    let syn_ack = server.poll_transmit(0).expect("a SYN-ACK");
    assert_eq!(
        (syn_ack.window_scale, syn_ack.sack_permitted, syn_ack.window),
        (None, false, 65535)
    );
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

/// SYNs: 1, 2, 4 s after one another, and an initial window of one segment after two losses.
#[test]
fn syns_back_off() {
    let lossy = |losses: usize| {
        move |way, number, _: &mut Segment| {
            if way == Way::ToServer && number < losses {
                vec![]
            } else {
                vec![DELAY]
            }
        }
    };
    let mut world = World::new(&plain(), &plain(), 0, lossy(3));
    world.client.write(20_000);
    world.run(60 * SECOND);
    let syns = world
        .log
        .iter()
        .filter(|sent| sent.segment.flags == Flags::SYN);
    assert_eq!(
        syns.map(|sent| sent.at / SECOND).collect::<Vec<_>>(),
        [0, 1, 3, 7]
    );
    let first = world.data(Way::ToServer)[0].0;
    assert_eq!(
        world
            .data(Way::ToServer)
            .iter()
            .filter(|(at, ..)| *at == first)
            .count(),
        1
    );
    assert_eq!(world.server().readable(), 20_000);

    let mut world = World::new(&plain(), &plain(), 0, lossy(usize::MAX));
    world.run(1000 * SECOND);
    assert!(world.client.is_aborted() && world.client.timeout().is_none());
    assert_eq!(world.log.len(), 7);
}

/// RFC 7323, section 5.3: an old segment whose number is in the window again is not taken.
#[test]
fn paws_drops_old_duplicates() {
    let config = Config {
        timestamps: true,
        ..plain()
    };
    let mut world = World::new(&config, &config, 0, delay(DELAY));
    world.run(SECOND);
    world.server().write(1000);
    world.pump();
    world.run(2 * SECOND);
    let last = world
        .log
        .iter()
        .rfind(|sent| sent.segment.len > 0)
        .expect("data")
        .segment;
    let ts = last.ts.expect("timestamps");
    let now = world.now;
    let mut next = Segment {
        seq: last.seq.wrapping_add(1000),
        ..last
    };
    next.ts = Some(Timestamps {
        val: ts.val - 1,
        ..ts
    });
    world.client.receive(now, &next);
    assert_eq!(world.client.readable(), 1000);
    assert!(
        world
            .client
            .poll_transmit(now)
            .is_some_and(|ack| ack.ack == next.seq),
        "it is answered"
    );
    next.ts = Some(ts);
    world.client.receive(now, &next);
    assert_eq!(world.client.readable(), 2000);
    // TS.Recent wraps as sequence numbers do.
    next.seq = next.seq.wrapping_add(1000);
    next.ts = Some(Timestamps {
        val: ts.val.wrapping_add((1 << 31) - 1),
        ..ts
    });
    world.client.receive(now, &next);
    assert_eq!(world.client.readable(), 3000);
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

#[test]
fn resets_end_a_connection() {
    let mut world = World::new(&plain(), &plain(), 0, delay(DELAY));
    world.run(SECOND);
    world.server().abort();
    world.pump();
    assert_eq!(
        world.log.last().map(|sent| sent.segment.flags),
        Some(Flags::RST)
    );
    world.run(2 * SECOND);
    assert!(world.client.is_aborted() && world.client.is_closed());
    assert_eq!(world.client.poll_transmit(world.now), None);

    // A host without such a connection resets it.
    let mut client = Connection::connect(&plain(), 7, 0);
    let syn = client.poll_transmit(0).expect("a SYN");
    client.receive(0, &syn.reset().expect("an answer"));
    assert!(client.is_aborted());

    // A RST beside the number that is due is not believed (RFC 5961).
    let mut world = World::new(&plain(), &plain(), 0, delay(DELAY));
    world.run(SECOND);
    let ack = world.log.last().expect("an ACK").segment;
    let now = world.now;
    let mut reset = Segment {
        seq: ack.seq.wrapping_add(1),
        flags: Flags::RST,
        ..ack
    };
    world.server().receive(now, &reset);
    assert!(world.server().is_established());
    reset.seq = ack.seq;
    world.server().receive(now, &reset);
    assert!(world.server().is_aborted());
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
