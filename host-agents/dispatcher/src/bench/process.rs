//! In process: no sockets.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use frontage_first_flight::{Crypto, Reader, hello};
use frontage_tunnel::{Encapsulation, decode};

use super::core_time;
use super::flights::{Kind, SWITCH, flight, view};
use crate::config::Limits;
use crate::counts::Counts;
use crate::engine::Engine;
use crate::outbox::Outbox;

const FLIGHTS: u32 = 10_000;
const ROUNDS: usize = 9;

fn now() -> Duration {
    core_time(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The median rate of rounds over `packets`.
fn rate(packets: &[Vec<u8>], mut round: impl FnMut(&[Vec<u8>])) -> f64 {
    let mut rates: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let before = now();
            round(packets);
            packets.len() as f64 / (now() - before).as_secs_f64()
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    rates[ROUNDS / 2]
}

fn packets(kind: Kind) -> Vec<Vec<u8>> {
    let flights: Vec<_> = (0..FLIGHTS).map(|number| flight(kind, number)).collect();
    // All first packets, then all second ones, as from clients that begin at once - up to what is held of them.
    let waves = flights.chunks(1000).flat_map(|wave| {
        let parts = wave.first().map_or(0, Vec::len);
        (0..parts).flat_map(move |part| wave.iter().map(move |flight| flight[part].clone()))
    });
    waves.collect()
}

/// Reading alone: tunnel, packet protection, ClientHello.
pub fn parse() -> f64 {
    let (mut reader, mut crypto) = (Reader::default(), Crypto::default());
    rate(&packets(Kind::One), |packets| {
        for packet in packets {
            let inner = decode(Encapsulation::Vxlan, packet)
                .expect("it is right")
                .inner;
            crypto.clear();
            reader
                .read(inner.payload, &mut crypto)
                .expect("it is right");
            black_box(hello::read(crypto.prefix()).expect("it is right"));
        }
    })
}

/// All that is done with a packet but receiving and sending it. Each round's flights are new to it.
pub fn engine(kind: Kind) -> f64 {
    let view = view();
    let mut out = Outbox::default();
    let packets = packets(kind);
    let mut engines: Vec<_> = (0..ROUNDS)
        .map(|_| Engine::new(&Limits::default(), Arc::default()))
        .collect();
    rate(&packets, |packets| {
        let mut engine = engines.pop().expect("one for each round");
        for batch in packets.chunks(32) {
            for packet in batch {
                engine.take(Some(&view), SWITCH, packet, &mut out);
            }
            black_box(out.group());
            out.clear();
        }
    })
}

/// KiB by which this process grows from the first flight to the hundred thousandth.
pub fn memory_growth() -> Result<f64> {
    let view = view();
    let mut out = Outbox::default();
    let mut engine = Engine::new(&Limits::default(), Arc::new(Counts::default()));
    let mut take = |numbers: std::ops::Range<u32>| {
        for number in numbers {
            for packet in flight(Kind::One, number) {
                engine.take(Some(&view), SWITCH, &packet, &mut out);
            }
            out.clear();
        }
    };
    take(0..1);
    let before = resident()?;
    take(1..100_000);
    Ok((resident()? - before) as f64)
}

/// KiB of this process in memory.
fn resident() -> Result<i64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.parse().ok())
        .context("/proc/self/status has no VmRSS")
}
