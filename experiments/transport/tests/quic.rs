// SPDX-License-Identifier: Apache-2.0
//! QUIC: delivery of all streams over any path, and the reactions of RFC 9002.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use frontage_transport::congestion::Congestion;
use frontage_transport::quic::{Config, Connection, Packet};
use frontage_transport::tcp::Ecn;
use frontage_transport::{MILLISECOND, Nanos, SECOND};
use proptest::prelude::*;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::RngCore;

const DELAY: Nanos = 50 * MILLISECOND;
const TO_SERVER: usize = 0;
const TO_CLIENT: usize = 1;

/// Two ends and the path between them: `channel` returns when the copies of a packet arrive.
struct Testbed<C> {
    now: Nanos,
    client: Connection,
    server: Option<Connection>,
    config: Config,
    log: Vec<(Nanos, usize, Packet)>,
    channel: C,
    in_flight: BTreeMap<(Nanos, usize), (usize, Packet)>,
    next: usize,
    /// Length of each response in bytes.
    response: u64,
    responses: Vec<(u64, u64)>,
}

impl<C: FnMut(usize, &mut Packet) -> Vec<Nanos>> Testbed<C> {
    /// Creates a testbed. Each client stream is a request, which the server answers with `response` bytes.
    fn new(config: &Config, requests: &[u64], response: u64, channel: C) -> Self {
        let mut client = Connection::connect(config);
        for (index, bytes) in requests.iter().enumerate() {
            client.send_stream(4 * index as u64, *bytes);
        }
        Self {
            now: 0,
            client,
            server: None,
            config: config.clone(),
            log: vec![],
            channel,
            in_flight: BTreeMap::new(),
            next: 0,
            response,
            responses: vec![],
        }
    }

    fn pump(&mut self) {
        while let Some(packet) = self.client.poll_transmit(self.now) {
            self.send(TO_SERVER, packet);
        }
        while let Some(packet) = self
            .server
            .as_mut()
            .and_then(|server| server.poll_transmit(self.now))
        {
            self.send(TO_CLIENT, packet);
        }
    }

    fn send(&mut self, direction: usize, mut packet: Packet) {
        assert!(packet.length <= self.config.max_datagram, "{packet:?}");
        self.log.push((self.now, direction, packet));
        for after in (self.channel)(direction, &mut packet) {
            self.in_flight
                .insert((self.now + after, self.next), (direction, packet));
            self.next += 1;
        }
    }

    fn step(&mut self) -> bool {
        self.pump();
        let arrival = self.in_flight.first_key_value().map(|((at, _), _)| *at);
        let timers = [
            self.client.timeout(),
            self.server.as_ref().and_then(Connection::timeout),
        ];
        let Some(at) = timers.into_iter().chain([arrival]).flatten().min() else {
            return false;
        };
        self.now = self.now.max(at);
        if arrival == Some(at) {
            let (_, (direction, packet)) = self.in_flight.pop_first().expect("there is an arrival");
            match (direction, &mut self.server) {
                (TO_CLIENT, _) => self.client.receive(self.now, &packet),
                (_, Some(server)) => server.receive(self.now, &packet),
                (_, None) if packet.handshake => {
                    self.server = Some(Connection::accept(&self.config, &packet, self.now));
                }
                _ => {}
            }
        } else {
            self.client.on_timeout(self.now);
            if let Some(server) = &mut self.server {
                server.on_timeout(self.now);
            }
        }
        if let Some(server) = &mut self.server {
            while let Some((id, _)) = server.poll_stream() {
                server.send_stream(id, self.response);
            }
        }
        self.responses
            .extend(std::iter::from_fn(|| self.client.poll_stream()));
        self.pump();
        true
    }

    fn run(&mut self, until: Nanos) {
        while self.now < until && self.step() {}
    }

    fn server(&self) -> &Connection {
        self.server.as_ref().expect("the server has accepted")
    }

    /// Returns time and number of the server's packets with stream data.
    fn data(&self) -> Vec<(Nanos, u64)> {
        let data = self
            .log
            .iter()
            .filter(|(_, direction, packet)| *direction == TO_CLIENT && !packet.frames.is_empty());
        data.map(|(at, _, packet)| (*at, packet.number)).collect()
    }
}

fn plain() -> Config {
    Config {
        congestion: Congestion::NewReno,
        max_ack_delay: 0,
        ..Config::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn all_streams_arrive_over_any_path(
        congestion in prop_oneof![Just(Congestion::NewReno), Just(Congestion::Cubic), Just(Congestion::Dctcp)],
        requests in prop::collection::vec(0u64..5_000, 1..12),
        response in 0u64..60_000,
        (loss, delay, duplication, mark) in (0u32..300, 0u32..200, 0u32..100, 0u32..300),
        max_ack_delay in prop_oneof![Just(0), Just(25 * MILLISECOND)],
        seed: u128,
    ) {
        let config = Config { congestion, max_ack_delay, ..Config::default() };
        let mut random = Pcg64Mcg::new(seed);
        // Limit consecutive losses, so that no end gives up.
        let mut lost = [0; 2];
        let channel = move |direction: usize, packet: &mut Packet| {
            let mut hits = |per_mille: u32| random.next_u32() % 1000 < per_mille;
            let mut fate = vec![];
            if lost[direction] < 5 && hits(loss) {
                lost[direction] += 1;
            } else {
                lost[direction] = 0;
                fate.push(10 * MILLISECOND + if hits(delay) { 7 * MILLISECOND } else { 0 });
            }
            if hits(duplication) {
                fate.push(25 * MILLISECOND);
            }
            if packet.ecn == Ecn::Ect0 && hits(mark) {
                packet.ecn = Ecn::Ce;
            }
            fate
        };
        let mut testbed = Testbed::new(&config, &requests, response, channel);
        while testbed.now < 4000 * SECOND && testbed.step() {
            if testbed.responses.len() == requests.len() && testbed.server().is_idle() && testbed.client.is_idle() {
                break;
            }
        }
        prop_assert!(!testbed.client.is_closed());
        testbed.responses.sort_unstable();
        let expected: Vec<_> = (0..requests.len() as u64).map(|index| (4 * index, response)).collect();
        prop_assert_eq!(&testbed.responses, &expected);
        prop_assert_eq!(testbed.client.received(), response * requests.len() as u64);
        prop_assert_eq!(testbed.server().received(), requests.iter().sum::<u64>());
        prop_assert_eq!(testbed.client.acknowledged(), requests.iter().sum::<u64>());
        prop_assert_eq!(testbed.server().acknowledged(), response * requests.len() as u64);
        prop_assert_eq!(testbed.server().sent(), response * requests.len() as u64);
        // When all data is acknowledged, only a probe or a lost PING may be in flight.
        prop_assert!(testbed.server().statistics().flight < 3000);
    }
}

/// The handshake takes one round trip. Then the window of the response doubles every round trip.
#[test]
fn handshake_takes_one_round_trip_and_slow_start_doubles() {
    let mut testbed = Testbed::new(&plain(), &[100], 200 * 1160, |_, _: &mut Packet| {
        vec![DELAY]
    });
    testbed.run(5 * SECOND);
    let head: Vec<_> = testbed.log[..3]
        .iter()
        .map(|(at, direction, packet)| (*at, *direction, packet.handshake, packet.length))
        .collect();
    assert_eq!(
        head[..2],
        [(0, TO_SERVER, true, 1200), (DELAY, TO_CLIENT, true, 1200)]
    );
    assert_eq!((head[2].0, head[2].1), (2 * DELAY, TO_SERVER));
    let data = testbed.data();
    let rounds = [0, 1, 2, 3].map(|round| {
        data.iter()
            .filter(|(at, _)| (at - 3 * DELAY) / (2 * DELAY) == round)
            .count()
    });
    // The handshake's packet was the first of the window of the slow start.
    assert_eq!(rounds, [10, 20, 40, 80]);
    assert_eq!(testbed.responses, [(0, 200 * 1160)]);
}

/// Creates a channel that loses the server's packets with these numbers.
fn losing(numbers: &'static [u64]) -> impl FnMut(usize, &mut Packet) -> Vec<Nanos> {
    move |direction, packet| {
        if direction == TO_CLIENT && numbers.contains(&packet.number) {
            vec![]
        } else {
            vec![DELAY]
        }
    }
}

/// RFC 9002, section 6.1.1: a packet is lost if it is three packets below an acknowledged one.
#[test]
fn packet_threshold_detects_loss() {
    let mut testbed = Testbed::new(&plain(), &[100], 300_000, losing(&[5]));
    testbed.run(20 * SECOND);
    let statistics = testbed.server().statistics();
    assert_eq!(
        (
            statistics.lost,
            statistics.reductions,
            statistics.probe_timeouts
        ),
        (1, 1, 0)
    );
    assert_eq!(testbed.responses, [(0, 300_000)]);
    // All packets of the first window left together.
    let data = testbed.data();
    assert_eq!(data.iter().filter(|(at, _)| *at == 3 * DELAY).count(), 10);
}

/// RFC 9002, section 6.1.2: near the end, a packet is lost after 9/8 of the round-trip time.
#[test]
fn time_threshold_detects_loss_near_the_end() {
    let mut testbed = Testbed::new(&plain(), &[100], 5 * 1160, losing(&[4]));
    testbed.run(20 * SECOND);
    let data = testbed.data();
    let statistics = testbed.server().statistics();
    assert_eq!(
        (statistics.lost, statistics.probe_timeouts),
        (1, 0),
        "{data:?}"
    );
    let (first, last) = (data[0].0, data[data.len() - 1].0);
    assert_eq!(last - first, 2 * DELAY * 9 / 8);
}

/// RFC 9002, section 6.2: without acknowledgments, two probes after SRTT + 4 RTTVAR + max_ack_delay, and then after twice the time
/// each time.
#[test]
fn probe_timeout_backs_off() {
    let mut cut = false;
    let channel = move |direction, packet: &mut Packet| {
        cut |= direction == TO_CLIENT && !packet.frames.is_empty();
        if cut { vec![] } else { vec![DELAY] }
    };
    let mut testbed = Testbed::new(&plain(), &[100], 10_000_000, channel);
    testbed.run(10 * SECOND);
    let mut times: Vec<Nanos> = testbed.data().iter().map(|(at, _)| *at).collect();
    assert_eq!(times.len(), 10 + 2 * times[10..].len() / 2);
    times.drain(1..10);
    times.dedup();
    let steps: Vec<_> = times
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) / MILLISECOND)
        .collect();
    // After the handshake's round trip of 100 ms, SRTT is 100 ms and RTTVAR 50 ms.
    assert_eq!(steps[..4], [300, 600, 1200, 2400]);
}

/// RFC 9002, section 7.6: if all packets are lost for more than three probe timeouts, the window falls to its minimum.
#[test]
fn persistent_congestion_collapses_the_window() {
    let cut = Rc::new(Cell::new(false));
    let is_cut = Rc::clone(&cut);
    let channel = move |direction, _: &mut Packet| {
        if direction == TO_CLIENT && is_cut.get() {
            vec![]
        } else {
            vec![DELAY]
        }
    };
    let mut testbed = Testbed::new(&plain(), &[100], 10_000_000, channel);
    for (until, now_cut) in [(700, false), (3000, true)] {
        cut.set(now_cut);
        testbed.run(until * MILLISECOND);
        assert_eq!(testbed.server().statistics().persistent_congestions, 0);
    }
    assert!(testbed.server().statistics().probe_timeouts >= 3);
    cut.set(false);
    while testbed.server().statistics().persistent_congestions == 0 && testbed.step() {}
    assert_eq!(testbed.server().statistics().cwnd, 2 * 1200);
    testbed.run(1000 * SECOND);
    assert_eq!(testbed.responses, [(0, 10_000_000)]);
}

/// Acknowledgments wait for a second packet or max_ack_delay, and report their delay.
#[test]
fn acknowledgments_are_delayed() {
    let config = Config {
        max_ack_delay: 25 * MILLISECOND,
        ..plain()
    };
    let mut testbed = Testbed::new(&config, &[100], 3 * 1160, |_, _: &mut Packet| vec![DELAY]);
    testbed.run(SECOND);
    let acks: Vec<_> = testbed
        .log
        .iter()
        .filter(|(_, direction, packet)| *direction == TO_SERVER && packet.frames.is_empty())
        .collect();
    let last = acks[acks.len() - 1];
    assert_eq!(last.2.ack.map(|ack| ack.delay), Some(25 * MILLISECOND));
    assert_eq!(last.0, 4 * DELAY + 25 * MILLISECOND);
}

/// The throughput formula of TCP, with losses that the packet threshold detects.
#[test]
fn newreno_throughput_follows_mathis() {
    let loss = 0.002f64;
    let mut random = Pcg64Mcg::new(11);
    let limit = (loss * 2f64.powi(32)) as u32;
    let channel = move |direction, packet: &mut Packet| {
        let lost = direction == TO_CLIENT && !packet.frames.is_empty() && random.next_u32() < limit;
        if lost { vec![] } else { vec![DELAY] }
    };
    let mut testbed = Testbed::new(&plain(), &[100], 1 << 40, channel);
    testbed.run(300 * SECOND);
    let rate = testbed.client.received() as f64 / 300.0;
    let payload = 1200.0 - 40.0;
    let ratio = rate / (payload / 0.1 * (1.5 / loss).sqrt());
    assert!((0.85..1.1).contains(&ratio), "{ratio} of the formula");
}
