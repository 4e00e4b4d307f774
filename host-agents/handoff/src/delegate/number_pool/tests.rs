// SPDX-License-Identifier: Apache-2.0
#![expect(clippy::single_range_in_vec_init, reason = "ranges of numbers")]

use futures_util::FutureExt as _;

use super::*;

fn packets(count: usize) -> impl Iterator<Item = UnnumberedPacket> {
    (0..count).map(|n| UnnumberedPacket {
        octets: [n as u8].into(),
        ecn: None,
    })
}

fn request(count: u64, ahead: u64) -> NumberRequest {
    NumberRequest { count, ahead }
}

/// Send `count` packets with the numbers of the pool, noq's first number being `own`. Returns the numbers.
fn send(pool: &NumberPool, own: u64, count: u64) -> Vec<u64> {
    let numbers = (own..own + count).map(|own| {
        assert!(pool.pop(|_| true).is_some());
        pool.take(own).expect("there was a number for the packet")
    });
    numbers.collect()
}

#[tokio::test]
async fn missing_numbers_are_requested_once() {
    let pool = NumberPool::new(10, Arc::new(()));
    pool.push(packets(3));
    assert_eq!(pool.needed().await, request(3, MIN_AHEAD));
    pool.push(packets(2));
    assert_eq!(pool.needed().await, request(2, 0));
    assert_eq!(pool.pop(|_| true), None);
    // The balancer answers both requests, with fewer numbers than wanted.
    pool.add(&[20..21, 22..23]).unwrap();
    pool.add(&[30..32]).unwrap();
    assert!(pool.ready().await);
    assert_eq!(pool.needed().await, request(1, 0));
    assert_eq!(pool.pop(|_| false), None);
    for (own, (octet, number)) in [(0, 20), (1, 22), (2, 30), (0, 31)].into_iter().enumerate() {
        let popped = pool.pop(|_| true).expect("it has a number");
        assert_eq!((*popped.octets)[0], octet);
        assert_eq!(pool.take(own as u64), Some(number));
    }
    assert_eq!((pool.pop(|_| true), pool.take(4)), (None, None));
    assert_eq!(pool.own(&[31..40, 20..21]), [3..4, 0..1]);
    pool.add(&[40..41]).unwrap();
    pool.discard_numbers_below(u64::MAX);
    assert_eq!(
        (pool.pop(|_| true), pool.needed().await),
        (None, request(1, 0))
    );
    pool.close();
    pool.push(packets(1));
    pool.add(&[50..52]).unwrap();
    assert!(!pool.ready().await && pool.pop(|_| true).is_none());
}

#[tokio::test]
async fn numbers_that_do_not_ascend_are_an_error() {
    let pool = NumberPool::new(10, Arc::new(()));
    assert_eq!(pool.add(&[9..12]), Err(Error::Number(9)));
    assert_eq!(pool.add(&[20..22, 21..23]), Err(Error::Number(21)));
    assert_eq!(pool.add_ahead(21..30), Err(Error::Number(21)));
    pool.add_ahead(22..30).unwrap();
}

#[tokio::test]
async fn numbers_ahead_are_used_before_any_is_requested() {
    let pool = NumberPool::new(10, Arc::new(()));
    pool.add_ahead(10..13).unwrap();
    pool.push(packets(2));
    assert_eq!(send(&pool, 0, 2), [10, 11]);
    pool.push(packets(5));
    assert_eq!(pool.needed().await, request(4, MIN_AHEAD));
    assert_eq!(send(&pool, 2, 1), [12]);
    // These replace unused ones, and the packets that wait use them first.
    pool.add_ahead(20..22).unwrap();
    pool.add(&[30..34]).unwrap();
    assert_eq!(send(&pool, 3, 4), [20, 21, 30, 31]);
    pool.push(packets(2));
    assert_eq!(send(&pool, 7, 2), [32, 33]);
}

/// A sender that produces `RATE` packets per round trip to the balancer gets its numbers before it needs them.
#[tokio::test]
async fn steady_sender_never_waits_for_numbers() {
    const RATE: u64 = 40;
    /// Packets that are produced at a time.
    const BURST: u64 = 5;
    let pool = NumberPool::new(0, Arc::new(()));
    let (mut next, mut own, mut sent, mut waits) = (0, 0, Vec::new(), 0);
    // Open requests, and when they are answered.
    let mut open: VecDeque<(u64, NumberRequest)> = VecDeque::new();
    for now in (0..20 * RATE).step_by(BURST as usize) {
        if open.front().is_some_and(|(due, _)| *due <= now) {
            let (_, asked) = open.pop_front().unwrap();
            let numbers = next..next + asked.count + asked.ahead;
            next = numbers.end;
            pool.add(&[numbers]).unwrap();
        }
        pool.push(packets(BURST as usize));
        while let Some(asked) = pool.needed().now_or_never() {
            open.push_back((now + RATE, asked));
        }
        while pool.pop(|_| true).is_some() {
            sent.push(pool.take(own).unwrap());
            own += 1;
        }
        waits += u64::from(now >= 4 * RATE && !pool.state().packets.is_empty());
    }
    assert_eq!(waits, 0);
    assert!(sent.is_sorted() && sent.len() as u64 == 20 * RATE);
    // Far fewer numbers remain than were used.
    assert!(next - own < 6 * RATE, "{next} {own}");
}

#[tokio::test]
async fn demand_shrinks_when_fewer_packets_are_produced() {
    let pool = NumberPool::new(0, Arc::new(()));
    pool.push(packets(100));
    assert_eq!(pool.needed().await, request(100, MIN_AHEAD));
    pool.add(&[0..120]).unwrap();
    send(&pool, 0, 100);
    pool.push(packets(1));
    assert_eq!(pool.needed().await, request(0, 300 - 19));
    pool.add(&[120..120 + 281]).unwrap();
    assert_eq!(pool.state().demand, 75);
}

#[tokio::test]
async fn expired_numbers_are_requested_again() {
    let pool = NumberPool::new(0, Arc::new(()));
    pool.add_ahead(0..10).unwrap();
    pool.push(packets(2));
    pool.discard_numbers_below(9);
    assert_eq!(pool.needed().await, request(1, 0));
    assert_eq!(send(&pool, 0, 1), [9]);
    assert_eq!(pool.take(1), None);
    // New numbers ahead replace unused ones.
    pool.add(&[20..21]).unwrap();
    pool.add_ahead(30..32).unwrap();
    assert_eq!(pool.take(1), Some(30));
}
