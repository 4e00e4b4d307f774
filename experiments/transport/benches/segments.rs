// SPDX-License-Identifier: Apache-2.0
//! Measures the CPU time of a data segment and its acknowledgment, through both ends of a connection.
//!
//! For QUIC, it is half of the time of two packets and their acknowledgment.

use std::collections::VecDeque;

use frontage_transport::congestion::Congestion;
use frontage_transport::quic;
use frontage_transport::tcp::{Config, Connection, Segment};

const SEGMENTS: u64 = 4_000_000;

fn main() {
    for congestion in [Congestion::NewReno, Congestion::Cubic, Congestion::Dctcp] {
        for (name, loss_interval) in [("no loss", u64::MAX), ("one in 1000 lost", 1000)] {
            let cost = best(|| tcp(congestion, loss_interval));
            println!(
                "tcp {congestion:?}, {name}: {cost:.0} ns per data segment and acknowledgment"
            );
        }
    }
    let cost = best(quic);
    println!(
        "quic NewReno, one in 1000 lost: {cost:.0} ns per data packet and its share of an ACK"
    );
}

/// Returns the minimum of five runs: other processes can only increase the time.
fn best(run: impl Fn() -> f64) -> f64 {
    (0..5).map(|_| run()).fold(f64::INFINITY, f64::min)
}

/// Returns the CPU time of this thread in nanoseconds.
fn cpu_time() -> u64 {
    let schedstat =
        std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux provides schedstat");
    schedstat
        .split(' ')
        .next()
        .and_then(|time| time.parse().ok())
        .expect("the first field has nanoseconds")
}

/// Returns the nanoseconds per segment. Of `loss_interval` segments, one is lost.
fn tcp(congestion: Congestion, loss_interval: u64) -> f64 {
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
                if sent % loss_interval != 0 {
                    server.receive(now, &segment);
                }
            }
        }
    };
    run(SEGMENTS / 10);
    let start = cpu_time();
    run(SEGMENTS);
    (cpu_time() - start) as f64 / SEGMENTS as f64
}

/// Returns the nanoseconds per packet. One in 1000 is lost.
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
    let start = cpu_time();
    run(SEGMENTS);
    (cpu_time() - start) as f64 / SEGMENTS as f64
}
