// SPDX-License-Identifier: Apache-2.0
//! Prints the congestion window of one flow over a bottleneck, for comparison with other simulators.
//!
//! ```text
//! cargo run --release -p frontage-transport --example bottleneck -- newreno|cubic|dctcp SECONDS
//! ```
//!
//! The link has 20 Mbit/s, 10 ms of delay in each direction, and a drop-tail queue of 50 packets. Segments have 1000 bytes and no
//! timestamps, and are acknowledged separately. Every 10 ms of simulated time, the program prints the time in milliseconds and cwnd in bytes.
//! At the end, it prints the received bytes and drops to standard error.

#[path = "../tests/common/mod.rs"]
mod common;

use common::bottleneck::{Bottleneck, Link};
use common::plain;
use frontage_transport::MILLISECOND;
use frontage_transport::congestion::Congestion;
use frontage_transport::tcp::Config;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let congestion = match arguments.next().as_deref() {
        Some("newreno") => Congestion::NewReno,
        Some("cubic") => Congestion::Cubic,
        Some("dctcp") => Congestion::Dctcp,
        _ => panic!("the first argument must be newreno, cubic or dctcp"),
    };
    let seconds: u64 = arguments
        .next()
        .and_then(|text| text.parse().ok())
        .expect("the second argument must be a number of seconds");
    let mark_at = (congestion == Congestion::Dctcp).then_some(20);
    let link = Link {
        rate: 20_000_000,
        delay: 10 * MILLISECOND,
        queue: 50,
        mark_at,
    };
    let mut bottleneck = Bottleneck::new(
        link,
        &[(
            Config {
                congestion,
                ..plain()
            },
            0,
        )],
    );
    for at in 1..=seconds * 100 {
        bottleneck.run(at * 10 * MILLISECOND);
        println!(
            "{} {}",
            at * 10,
            bottleneck.flows[0].client.statistics().cwnd
        );
    }
    let statistics = bottleneck.flows[0].client.statistics();
    eprintln!(
        "received {} dropped {}\n{statistics:#?}",
        bottleneck.readable()[0],
        bottleneck.drops
    );
}
