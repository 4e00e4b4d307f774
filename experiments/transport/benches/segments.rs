// SPDX-License-Identifier: Apache-2.0
//! CPU time of a data segment and its acknowledgment, through both ends of a connection.
//!
//! For QUIC: two packets and the acknowledgment of both, divided by two.

use std::collections::VecDeque;

use frontage_transport::congestion::Congestion;
use frontage_transport::quic;
use frontage_transport::tcp::{Config, Connection, Segment};

const SEGMENTS: u64 = 4_000_000;

fn main() {
    for congestion in [Congestion::NewReno, Congestion::Cubic, Congestion::Dctcp] {
        for (name, lost_of) in [("no loss", u64::MAX), ("one in 1000 lost", 1000)] {
            let cost = best(|| tcp(congestion, lost_of));
            println!(
                "tcp {congestion:?}, {name}: {cost:.0} ns per data segment and acknowledgement"
            );
        }
    }
    let cost = best(quic);
    println!(
        "quic NewReno, one in 1000 lost: {cost:.0} ns per data packet and its share of an ACK"
    );
}

/// The best of some: other processes only add.
fn best(run: impl Fn() -> f64) -> f64 {
    (0..5).map(|_| run()).fold(f64::INFINITY, f64::min)
}

/// Nanoseconds for which a core has worked for this thread, by Linux's account.
fn core_time() -> u64 {
    let account = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    account
        .split(' ')
        .next()
        .and_then(|time| time.parse().ok())
        .expect("nanoseconds come first")
}

/// Nanoseconds a segment; every `lost_of`-th is lost.
fn tcp(congestion: Congestion, lost_of: u64) -> f64 {
    let config = Config {
        congestion,
        delayed_ack: None,
        receive_window: 128 * 1448,
        ..Config::default()
    };
    let mut client = Connection::connect(&config, 1, 0);
    let syn = client.poll_transmit(0).expect("a SYN");
    let mut server = Connection::accept(&config, 2, &syn, 0);
    client.write(u64::MAX / 2);

    let (mut now, mut sent) = (0, 0);
    let mut data: VecDeque<Segment> = VecDeque::new();
    let mut run = |segments: u64| {
        let until = sent + segments;
        while sent < until {
            // A round trip of about 100 us at 10 Gbit/s.
            now += 1_200;
            if let Some(ack) = server.poll_transmit(now) {
                client.receive(now, &ack);
            }
            if client.timeout().is_some_and(|timeout| timeout <= now) {
                client.on_timeout(now);
            }
            while let Some(segment) = client.poll_transmit(now) {
                data.push_back(segment);
            }
            if let Some(segment) = data.pop_front() {
                sent += 1;
                if sent % lost_of != 0 {
                    server.receive(now, &segment);
                }
            }
        }
    };
    run(SEGMENTS / 10);
    let start = core_time();
    run(SEGMENTS);
    (core_time() - start) as f64 / SEGMENTS as f64
}

/// Nanoseconds a packet; every 1000th is lost.
fn quic() -> f64 {
    let config = quic::Config {
        congestion: Congestion::NewReno,
        ..quic::Config::default()
    };
    let mut client = quic::Connection::connect(&config);
    client.send_stream(0, u64::MAX / 8);
    let hello = client.poll_transmit(0).expect("a handshake");
    let mut server = quic::Connection::accept(&config, &hello, 0);

    let (mut now, mut sent) = (0, 0);
    let mut data = VecDeque::new();
    let mut run = |packets: u64| {
        let until = sent + packets;
        while sent < until {
            now += 1_000;
            while let Some(packet) = server.poll_transmit(now) {
                client.receive(now, &packet);
            }
            for end in [&mut client, &mut server] {
                if end.timeout().is_some_and(|timeout| timeout <= now) {
                    end.on_timeout(now);
                }
            }
            while let Some(packet) = client.poll_transmit(now) {
                data.push_back(packet);
            }
            if let Some(packet) = data.pop_front() {
                sent += 1;
                if sent % 1000 != 0 {
                    server.receive(now, &packet);
                }
            }
        }
    };
    run(SEGMENTS / 10);
    let start = core_time();
    run(SEGMENTS);
    (core_time() - start) as f64 / SEGMENTS as f64
}
