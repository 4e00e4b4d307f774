//! What a data segment and its acknowledgement cost, through both ends of a connection.
//!
//! ```text
//! cargo bench -p frontage-transport
//! ```
//!
//! The window is 128 segments, and the receiver acknowledges each.

use std::collections::VecDeque;
use std::time::Instant;

use frontage_transport::congestion::Congestion;
use frontage_transport::tcp::{Config, Connection, Segment};

const SEGMENTS: u64 = 4_000_000;

fn main() {
    for congestion in [Congestion::NewReno, Congestion::Cubic, Congestion::Dctcp] {
        for (name, lost_of) in [("no loss", u64::MAX), ("one in 1000 lost", 1000)] {
            // The best of some: other processes only add.
            let best = (0..5)
                .map(|_| tcp(congestion, lost_of))
                .fold(f64::INFINITY, f64::min);
            println!(
                "tcp {congestion:?}, {name}: {best:.0} ns per data segment and acknowledgement"
            );
        }
    }
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
    let start = Instant::now();
    run(SEGMENTS);
    start.elapsed().as_nanos() as f64 / SEGMENTS as f64
}
