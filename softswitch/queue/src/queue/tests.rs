// SPDX-License-Identifier: Apache-2.0
use std::num::NonZeroU64;

use proptest::prelude::*;

use super::*;
use crate::class::DEFAULT_CLASS_DEPTH;
use crate::link::Loss;

fn rated(rate: u64) -> LinkConfig {
    LinkConfig {
        rate: NonZeroU64::new(rate),
        queue_packets: Some(u64::MAX),
        ..Default::default()
    }
}

/// Starts and sends all due packets, as a driver without egress processing does.
fn serve(queue: &mut EgressQueue<u32, u32>, now: Nanos) -> Vec<(Nanos, u32)> {
    while let Some(started) = queue.start(now) {
        let bytes = started.packet;
        queue.transmit(started.slot, bytes, bytes);
    }
    std::iter::from_fn(|| queue.arrive(now)).collect()
}

#[test]
fn departures_are_exact_and_do_not_drift() {
    // 64 bytes at 7 Mbit/s are 73,142 6/7 ns: a rounded sum would be off by 0.86 ms in the end.
    let mut queue = EgressQueue::new(rated(7_000_000), 0);
    for _ in 0..1_000_000 {
        queue.enqueue(5, 64, 64, 0).unwrap();
    }
    let out = serve(&mut queue, u64::MAX);
    for (n, (at, _)) in (1u128..).zip(&out) {
        let exact = 5 + n * 64 * 8 * 1_000_000_000 / 7_000_000;
        assert_eq!(u128::from(*at), exact, "frame {n}");
    }
}

#[test]
fn held_link_takes_packets_when_it_is_released() {
    let mut queue: EgressQueue<u32, u32> = EgressQueue::new(LinkConfig::default(), 0);
    queue.hold(1_000);
    for n in 0..DEFAULT_CLASS_DEPTH {
        assert_eq!(queue.enqueue(n, 64, 64, 0), Ok(()));
    }
    assert_eq!(queue.enqueue(100, 64, 64, 0), Err(64));
    assert_eq!(queue.next_event(), Some(1_000));
    assert!(queue.start(999).is_none());
    // Held for longer, then released earlier.
    queue.hold(5_000);
    assert!(queue.start(4_000).is_none());
    queue.hold(4_500);
    let started = queue.start(4_500).unwrap();
    assert_eq!((started.enqueued_at, started.at), (0, 4_500));
    assert_eq!(queue.enqueue(4_500, 64, 64, 0), Ok(()));
}

#[test]
fn configured_limits_hold_for_held_link() {
    let mut queue: EgressQueue<u32, u32> = EgressQueue::new(rated(1_000_000), 0);
    queue.hold(1_000);
    for n in 0..2 * DEFAULT_CLASS_DEPTH {
        assert_eq!(queue.enqueue(n, 64, 64, 0), Ok(()));
    }
    let mut limited: EgressQueue<u32, u32> = EgressQueue::new(LinkConfig::default(), 0);
    limited.limit_depth(0, 2);
    limited.hold(1_000);
    let accepted = (0..4).filter(|n| limited.enqueue(*n, 64, 64, 0).is_ok());
    assert_eq!(accepted.count(), 2);
}

#[test]
fn frame_arrives_after_transmission_and_delay() {
    let mut queue = EgressQueue::new(
        LinkConfig {
            delay: 5_000_000,
            ..rated(100_000_000)
        },
        0,
    );
    queue.enqueue(1_000, 1500, 1500, 0).unwrap();
    assert_eq!(queue.next_event(), Some(1_000));
    assert_eq!(serve(&mut queue, 1_000), []);
    // 1500 bytes take 120 us, and the propagation 5 ms.
    assert_eq!(queue.next_event(), Some(1_000 + 120_000 + 5_000_000));
    assert_eq!(serve(&mut queue, 5_120_999), []);
    assert_eq!(serve(&mut queue, 5_121_000), [(5_121_000, 1500)]);
    assert_eq!(queue.next_event(), None);
}

#[test]
fn overhead_uses_rate_but_not_queue_limit() {
    let link = LinkConfig {
        overhead: 24,
        queue_bytes: Some(1500),
        ..rated(100_000_000)
    };
    let mut queue = EgressQueue::new(link, 0);
    for now in [0, 0] {
        queue.enqueue(now, 1500, 1500, 0).unwrap();
        assert_eq!(serve(&mut queue, now), []);
    }
    assert_eq!(queue.enqueue(0, 1, 1, 0), Err(1));
    // 1524 bytes each.
    assert_eq!(
        serve(&mut queue, 243_840),
        [(121_920, 1500), (243_840, 1500)]
    );
    assert_eq!(queue.counts().transmitted_bytes, 3000);
}

#[test]
fn new_busy_period_starts_without_remainder() {
    let mut queue = EgressQueue::new(rated(3), 0);
    queue.enqueue(0, 1, 1, 0).unwrap();
    assert_eq!(serve(&mut queue, u64::MAX / 2)[0].0, 2_666_666_666);
    queue.enqueue(10_000_000_000, 1, 1, 0).unwrap();
    assert_eq!(serve(&mut queue, u64::MAX / 2)[0].0, 12_666_666_666);
}

#[test]
fn depth_excludes_packet_in_transmission() {
    let link = LinkConfig {
        queue_packets: Some(2),
        ..rated(8_000_000)
    };
    let mut queue = EgressQueue::new(link, 0);
    // One is in transmission, two wait, the fourth is dropped.
    for (n, fits) in [(0, true), (1, true), (2, true), (3, false)] {
        assert_eq!(queue.enqueue(0, 1000, 1000, 0).is_ok(), fits, "packet {n}");
        serve(&mut queue, 0);
    }
    assert_eq!((queue.depth_packets(), queue.depth_bytes()), (2, 2000));
    assert_eq!(queue.counts().tail_drop, 1);
    // The first has left after 1 ms, so the queue accepts another.
    serve(&mut queue, 1_000_000);
    assert!(queue.enqueue(1_000_000, 1000, 1000, 0).is_ok());
}

#[test]
fn byte_limit_excludes_packet_in_transmission() {
    let link = LinkConfig {
        queue_packets: None,
        queue_bytes: Some(1500),
        ..rated(8_000)
    };
    let mut queue = EgressQueue::new(link, 0);
    queue.enqueue(0, 9000, 9000, 0).unwrap();
    serve(&mut queue, 0);
    queue.enqueue(0, 1000, 1000, 0).unwrap();
    assert_eq!(queue.enqueue(0, 501, 501, 0), Err(501));
    queue.enqueue(0, 500, 500, 0).unwrap();
}

#[test]
fn larger_priority_is_served_first_but_does_not_preempt() {
    let mut queue = EgressQueue::new(rated(8_000_000), 0);
    queue.enqueue(0, 100, 100, 0).unwrap();
    serve(&mut queue, 0);
    for (bytes, priority) in [(1, 0), (2, 7), (3, 3), (4, 7), (5, 9)] {
        queue.enqueue(10, bytes, bytes, priority).unwrap();
    }
    let order: Vec<_> = serve(&mut queue, u64::MAX).iter().map(|o| o.1).collect();
    assert_eq!(order, [100, 2, 4, 5, 3, 1]);
}

#[test]
fn late_call_gives_the_same_order_and_times() {
    let mut queue = EgressQueue::new(rated(8_000_000), 0);
    queue.enqueue(0, 10, 10, 0).unwrap();
    // The link took the first at 0, before the more urgent one came at 5.
    queue.enqueue(5, 20, 20, 7).unwrap();
    assert_eq!(serve(&mut queue, 1_000_000), [(10_000, 10), (30_000, 20)]);
}

#[test]
fn packet_dropped_by_egress_takes_no_time() {
    let mut queue: EgressQueue<u32, u32> = EgressQueue::new(rated(8_000_000), 0);
    queue.enqueue(0, 1, 1000, 0).unwrap();
    queue.enqueue(0, 2, 1000, 0).unwrap();
    assert!(queue.start(0).is_some());
    let started = queue.start(0).unwrap();
    assert_eq!((started.packet, started.at), (2, 0));
}

#[test]
fn packets_do_not_wait_without_a_rate() {
    let mut queue = EgressQueue::new(LinkConfig::default(), 0);
    for now in 0..3000 {
        queue.enqueue(now, 1500, 1500, 0).unwrap();
        assert_eq!(serve(&mut queue, now), [(now, 1500)]);
    }
}

#[test]
fn loss_rate_matches_probability_and_repeats_with_seed() {
    let link = LinkConfig {
        loss: Loss::from_ppb(10_000_000).unwrap(),
        ..Default::default()
    };
    let run = |seed| {
        let mut queue = EgressQueue::new(link, seed);
        let mut arrived = Vec::new();
        for now in 0..100_000 {
            queue.enqueue(now, 64, 64, 0).unwrap();
            arrived.push(!serve(&mut queue, now).is_empty());
        }
        (arrived, queue.counts().lost)
    };
    let (first, lost) = run(1);
    assert!((800..1200).contains(&lost), "{lost} of 100,000 lost at 1 %");
    assert_eq!(run(1).0, first);
    assert_ne!(run(2).0, first);
}

#[test]
fn pifo_serves_the_smallest_rank_and_pushes_out_the_largest() {
    let link = LinkConfig {
        queue_packets: Some(3),
        ..rated(8_000_000)
    };
    let mut queue = EgressQueue::with_discipline(link, Discipline::Pifo, 0);
    // The byte count identifies the packet; the first is in transmission and no longer waits.
    queue.enqueue(0, 100, 100, 255).unwrap();
    serve(&mut queue, 0);
    for (bytes, rank) in [(1, 200), (2, 0), (3, 70)] {
        queue.enqueue(0, bytes, bytes, rank).unwrap();
    }
    assert_eq!(
        queue.enqueue(1, 4, 4, 201),
        Err(4),
        "the new packet has the largest rank"
    );
    assert_eq!(
        queue.enqueue(1, 5, 5, 200),
        Err(5),
        "the newest among equals is dropped"
    );
    assert_eq!(
        queue.enqueue(1, 6, 6, 70),
        Err(1),
        "the largest waiting rank is dropped"
    );
    let counts = queue.counts();
    assert_eq!((counts.tail_drop, counts.pushed_out), (2, 1));
    assert_eq!((queue.depth_packets(), queue.depth_bytes()), (3, 11));
    let order: Vec<_> = serve(&mut queue, u64::MAX).iter().map(|o| o.1).collect();
    assert_eq!(order, [100, 2, 3, 6]);
}

#[test]
fn sp_pifo_moves_bounds_with_accepted_ranks() {
    let link = LinkConfig {
        queue_packets: Some(2 * PRIORITIES as u64),
        ..rated(8_000_000)
    };
    let mut queue = EgressQueue::with_discipline(link, Discipline::SpPifo, 0);
    // The byte count identifies the packet; the first does not wait, so the bounds stay.
    queue.enqueue(0, 100, 100, 9).unwrap();
    serve(&mut queue, 0);
    // All bounds are 0: the least urgent priority accepts both, and its bound rises to 50.
    queue.enqueue(0, 1, 1, 40).unwrap();
    queue.enqueue(0, 2, 2, 50).unwrap();
    assert_eq!(
        queue.enqueue(0, 3, 3, 90),
        Err(3),
        "each priority has two of 16 places"
    );
    // The bound is still 50, so 60 meets a full priority, and 45 takes the next one.
    assert_eq!(queue.enqueue(0, 4, 4, 60), Err(4));
    queue.enqueue(0, 5, 5, 45).unwrap();
    for (bytes, rank) in [(6, 44), (7, 43), (8, 42), (9, 41), (10, 40), (11, 39)] {
        queue.enqueue(0, bytes, bytes, rank).unwrap();
    }
    // 9 is 30 below the most urgent bound, 39: the others sink to 20, 15, 14, 13, 12, 11 and 10.
    queue.enqueue(0, 12, 12, 9).unwrap();
    queue.enqueue(0, 13, 13, 12).unwrap();
    let order: Vec<_> = serve(&mut queue, u64::MAX).iter().map(|o| o.1).collect();
    assert_eq!(order, [100, 11, 12, 10, 9, 8, 13, 7, 6, 5, 1, 2]);
}

/// Reference model of one priority: the recurrence of a FIFO server, in exact fractions.
fn reference(packets: &[(Nanos, u32)], rate: u64) -> Vec<Nanos> {
    let rate = u128::from(rate);
    let mut free = 0u128; // in units of 1/rate ns
    packets
        .iter()
        .map(|&(at, bytes)| {
            let start = free.max(u128::from(at) * rate);
            free = start + u128::from(bytes) * 8_000_000_000;
            u64::try_from(free / rate).unwrap()
        })
        .collect()
}

proptest! {
    /// Compares the PIFO with a sorted list: waiting packets, dropped packets and order of service.
    #[test]
    fn pifo_equals_sorted_list(
        steps in prop::collection::vec((any::<u8>(), any::<bool>()), 1..300),
        limit in 1u64..20,
    ) {
        let link = LinkConfig { queue_packets: Some(limit), ..rated(8_000) };
        let mut queue: EgressQueue<_, ()> = EgressQueue::with_discipline(link, Discipline::Pifo, 0);
        let mut model: Vec<(u8, u32)> = Vec::new();
        let mut now = 0;
        // The link takes one packet at once and is then busy until the test starts the next.
        for (id, (rank, push)) in (0..).zip(steps) {
            if push {
                let dropped = queue.enqueue(now, (rank, id), 1, rank.into()).err();
                model.push((rank, id));
                model.sort();
                let expected = (model.len() as u64 > limit).then(|| model.pop()).flatten();
                prop_assert_eq!(dropped, expected);
            } else {
                let started = queue.start(now);
                let expected = (!model.is_empty()).then(|| model.remove(0));
                prop_assert_eq!(started.as_ref().map(|s| s.packet), expected);
                if let Some(started) = started {
                    queue.transmit(started.slot, 1, ());
                }
                now += 1_000_000;
            }
            let counts = queue.counts();
            prop_assert_eq!(counts.enqueued, counts.started + counts.pushed_out + queue.depth_packets());
        }
    }

    #[test]
    fn departures_equal_the_reference(
        gaps in prop::collection::vec((0u64..200_000, 1u32..9000), 1..200),
        rate in 1_000u64..20_000_000_000,
        lateness in 0u64..1_000_000,
    ) {
        let mut queue = EgressQueue::new(rated(rate), 0);
        let mut now = 0;
        let mut packets = Vec::new();
        let mut out = Vec::new();
        for (gap, bytes) in gaps {
            now += gap;
            packets.push((now, bytes));
            queue.enqueue(now, bytes, bytes, 0).unwrap();
            if lateness % 3 == 0 {
                out.extend(serve(&mut queue, now));
            }
        }
        while let Some(next) = queue.next_event() {
            out.extend(serve(&mut queue, next + lateness));
        }
        let expected: Vec<_> = reference(&packets, rate)
            .into_iter()
            .zip(packets.iter().map(|p| p.1))
            .collect();
        prop_assert_eq!(out, expected);
    }

    #[test]
    fn packets_are_conserved_and_stay_in_order(
        steps in prop::collection::vec((0u64..50_000, 1u32..2000, 0u8..8, 0u8..4), 1..300),
        limit in 1u64..20,
        loss in 0u32..500_000_000,
        seed: u64,
    ) {
        let link = LinkConfig {
            queue_packets: Some(limit),
            queue_bytes: Some(limit * 1000),
            delay: 30_000,
            loss: Loss::from_ppb(loss).unwrap(),
            ..rated(100_000_000)
        };
        let mut queue = EgressQueue::new(link, seed);
        let mut now = 0;
        let mut last = [0; PRIORITIES];
        let mut dropped_by_egress = 0;
        for (id, (gap, bytes, priority, fate)) in (1u64..).zip(steps) {
            now += gap;
            while let Some(started) = queue.start(now) {
                let (id, bytes, priority, fate) = started.packet;
                prop_assert!(started.at <= now && started.enqueued_at <= started.at);
                prop_assert!(id > last[priority as usize], "packets of one priority are reordered");
                last[priority as usize] = id;
                if fate == 0 {
                    dropped_by_egress += 1;
                } else {
                    queue.transmit(started.slot, bytes, id);
                }
            }
            let _ = queue.enqueue(now, (id, bytes, priority, fate), bytes, priority.into());
            while queue.arrive(now).is_some() {}
            let counts = queue.counts();
            prop_assert_eq!(id, counts.enqueued + counts.tail_drop);
            prop_assert_eq!(counts.enqueued, counts.started + queue.depth_packets());
            prop_assert_eq!(counts.started, counts.transmitted + dropped_by_egress);
            let in_flight = counts.transmitted - counts.lost - counts.arrived;
            prop_assert_eq!(in_flight, queue.in_flight.len() as u64);
            prop_assert!(queue.depth_packets() <= limit);
        }
    }
}

#[test]
fn limited_rate_of_a_priority_is_exact() {
    // 7 packets per second, on a link that takes no time.
    let mut queue = EgressQueue::new(LinkConfig::default(), 0);
    queue.limit_rate(0, NonZeroU64::new(7));
    queue.limit_depth(0, 1000);
    for _ in 0..700 {
        queue.enqueue(0, 64, 64, 0).unwrap();
    }
    let mut out = Vec::new();
    while let Some(at) = queue.next_event() {
        out.extend(serve(&mut queue, at));
    }
    let times: Vec<u64> = out.iter().map(|(at, _)| *at).collect();
    assert_eq!(times.len(), 700);
    for (n, at) in (0u128..).zip(&times) {
        let exact = n * 1_000_000_000 / 7;
        assert!(exact.abs_diff(u128::from(*at)) <= n, "packet {n} at {at}");
    }
}

#[test]
fn limited_priority_does_not_delay_others() {
    let mut queue = EgressQueue::new(LinkConfig::default(), 0);
    queue.limit_rate(5, NonZeroU64::new(10));
    for bytes in [1, 2, 3] {
        queue.enqueue(0, bytes, bytes, 5).unwrap();
    }
    queue.enqueue(0, 100, 100, 0).unwrap();
    assert_eq!(serve(&mut queue, 0), [(0, 1), (0, 100)]);
    assert_eq!(queue.next_event(), Some(100_000_000));
    assert_eq!(serve(&mut queue, 100_000_000), [(100_000_000, 2)]);
    queue.limit_rate(5, None);
    assert_eq!(serve(&mut queue, 100_000_001), [(100_000_000, 3)]);
}

#[test]
fn limited_depth_of_a_priority_drops_only_its_packets() {
    let mut queue = EgressQueue::new(rated(8), 0);
    queue.limit_depth(1, 2);
    // One in transmission.
    queue.enqueue(0, 1, 1, 1).unwrap();
    assert_eq!(
        queue
            .start(0)
            .map(|s| (s.packet, queue.transmit(s.slot, 1, 1))),
        Some((1, ()))
    );
    assert!(queue.enqueue(0, 2, 1, 1).is_ok());
    assert!(queue.enqueue(0, 3, 1, 1).is_ok());
    assert_eq!(queue.enqueue(0, 4, 1, 1), Err(4));
    // Only the port's queue limits the other priorities.
    assert!((0..=DEFAULT_CLASS_DEPTH).all(|_| queue.enqueue(0, 5, 1, 0).is_ok()));
    let depths = [0, 1, 2].map(|priority| queue.depth_of(priority));
    assert_eq!(depths, [DEFAULT_CLASS_DEPTH + 1, 2, 0]);
}

#[test]
fn priority_with_a_limited_rate_has_bmv2s_depth() {
    let mut queue = EgressQueue::<u32, ()>::new(rated(8), 0);
    queue.limit_rate(1, NonZeroU64::new(1));
    let accepted = (0..100).filter(|&n| queue.enqueue(0, n, 1, 1).is_ok());
    assert_eq!(accepted.count() as u64, DEFAULT_CLASS_DEPTH);
    assert!(queue.enqueue(0, 100, 1, 0).is_ok());
}

#[test]
fn limits_of_priorities_do_not_apply_to_ranks() {
    let config = LinkConfig::default();
    let mut queue = EgressQueue::with_discipline(config, Discipline::Pifo, 0);
    for priority in 0..PRIORITIES {
        queue.limit_rate(priority, NonZeroU64::new(1));
        queue.limit_depth(priority, 0);
    }
    for rank in 0..20 {
        queue.enqueue(0, rank, 64, rank).unwrap();
    }
    assert_eq!(serve(&mut queue, 0).len(), 20);
}
