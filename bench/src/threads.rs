// SPDX-License-Identifier: Apache-2.0
//! Packets per second of one and of two threads in one pipeline, in process.
//!
//! The flows of a site are divided among the threads. A run of one thread has one part of them, a run of two threads has
//! both. The runs alternate, because what else the machine does changes speed. Both rates are of elapsed time, so the
//! processors must be free, and per second of each thread's core time, which waiting for a lock does not add to.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::Serialize;
use softswitch::port::prefetch;
use softswitch_pipeline::{Lane, ParallelPipeline};

use crate::clock::core_time;
use crate::pipeline::{PAUSE_NS, Path};
use crate::site::Site;
use crate::traffic::Packet;

const THREADS: usize = 2;
/// Number of runs of each number of threads, of which the median is the result.
const RUNS: usize = 21;
/// Duration of a run.
const RUN: Duration = Duration::from_millis(150);
/// Number of packets of a batch, as the switch's ports pass them.
const BATCH: usize = 32;

/// Packets per second of a site.
#[derive(Debug, Serialize)]
pub struct Rates {
    one: f64,
    two: f64,
    /// Per second of core time.
    one_per_core: f64,
    two_per_core: f64,
    /// The median of the ratios of runs that follow each other.
    speedup: f64,
}

/// Packets per second of a run, of elapsed time and of core time.
#[derive(Debug, Clone, Copy, Default)]
struct Rate {
    elapsed: f64,
    core: f64,
}

/// Measures the sites.
pub fn measure(sites: &[Site]) -> Result<Vec<Rates>> {
    let mut benches = Vec::new();
    let traffic = sites.iter().map(|site| site.traffic.packets());
    let traffic: Vec<Vec<Packet>> = traffic.collect::<Result<_>>()?;
    for (site, packets) in sites.iter().zip(&traffic) {
        benches.push(Bench::new(site, packets)?);
    }
    for round in 0..RUNS {
        for bench in &mut benches {
            bench.run(round)?;
        }
    }
    Ok(benches.into_iter().map(Bench::rates).collect())
}

struct Bench<'a> {
    lanes: Vec<(Lane, Path)>,
    parts: [&'a [Packet]; THREADS],
    one: Vec<Rate>,
    two: Vec<Rate>,
}

impl<'a> Bench<'a> {
    fn new(site: &Site, packets: &'a [Packet]) -> Result<Self> {
        let pipeline = Arc::new(ParallelPipeline::new(site.pipeline()?, THREADS));
        let lanes = (0..THREADS).filter_map(|number| pipeline.lane(number));
        let mut lanes: Vec<_> = lanes.map(|lane| (lane, Path::default())).collect();
        let (first, second) = packets.split_at(packets.len() / THREADS);
        for part in [first, second] {
            run(&mut lanes[..1], &[part])?;
        }
        // Native code adapts to the packets.
        for (lane, _) in &mut lanes {
            lane.begin().adapt();
        }
        Ok(Self {
            lanes,
            parts: [first, second],
            one: Vec::new(),
            two: Vec::new(),
        })
    }

    /// Makes a run of one thread and a run of two.
    fn run(&mut self, round: usize) -> Result<()> {
        let alone = round % THREADS;
        let one = &mut self.lanes[alone..=alone];
        self.one.push(run(one, &self.parts[alone..=alone])?);
        self.two.push(run(&mut self.lanes, &self.parts)?);
        Ok(())
    }

    fn rates(self) -> Rates {
        let speedups = self.one.iter().zip(&self.two);
        let speedups = speedups
            .map(|(one, two)| two.elapsed / one.elapsed)
            .collect();
        let of = |runs: &[Rate], rate: fn(&Rate) -> f64| median(runs.iter().map(rate).collect());
        Rates {
            one: of(&self.one, |rate| rate.elapsed),
            two: of(&self.two, |rate| rate.elapsed),
            one_per_core: of(&self.one, |rate| rate.core),
            two_per_core: of(&self.two, |rate| rate.core),
            speedup: median(speedups),
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs a part of the packets in each of these lanes at the same time; returns the sum of the threads' rates.
fn run(lanes: &mut [(Lane, Path)], parts: &[&[Packet]]) -> Result<Rate> {
    let start = Barrier::new(lanes.len());
    let rates: Vec<Result<Rate>> = thread::scope(|scope| {
        let threads = lanes.iter_mut().zip(parts).map(|((lane, path), packets)| {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                packets_per_second(lane, path, packets)
            })
        });
        let threads: Vec<_> = threads.collect();
        let joined = threads
            .into_iter()
            .map(|t| t.join().expect("the thread ends"));
        joined.collect()
    });
    let mut sum = Rate::default();
    for rate in rates {
        let rate = rate?;
        sum.elapsed += rate.elapsed;
        sum.core += rate.core;
    }
    Ok(sum)
}

fn packets_per_second(lane: &mut Lane, path: &mut Path, packets: &[Packet]) -> Result<Rate> {
    let (mut sent, mut transmitted) = (0_u64, 0_u64);
    let (start, core_start) = (Instant::now(), core_time());
    while start.elapsed() < RUN {
        path.now += PAUSE_NS;
        let mut next = packets.iter().cycle().skip(1);
        for batch in packets.chunks(BATCH) {
            let mut turn = lane.begin();
            for packet in batch {
                // The switch's ports also prefetch.
                if let Some(next) = next.next() {
                    prefetch(&next.frame);
                }
                transmitted += u64::from(path.run(&mut turn, packet) == Some(packet.out_port));
            }
        }
        sent += packets.len() as u64;
    }
    ensure!(
        sent == transmitted,
        "{transmitted} of {sent} packets were transmitted"
    );
    Ok(Rate {
        elapsed: sent as f64 / start.elapsed().as_secs_f64(),
        core: sent as f64 / (core_time() - core_start).as_secs_f64(),
    })
}
