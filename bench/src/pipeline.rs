// SPDX-License-Identifier: Apache-2.0
//! Packets per second in process: `Pipeline::ingress` and `egress` back to back. Time is core time, on which other processes
//! of the machine have little effect.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use softswitch::port::prefetch;
use softswitch_pipeline::{EgressOutcome, EgressOutput, Pipeline, QueueInfo};

use crate::clock::core_time;
use crate::site::Site;
use crate::traffic::Packet;

/// Number of runs of each kind of packet, whose median is the result.
const RUNS: usize = 10;
/// Core time of a run.
const RUN: Duration = Duration::from_millis(200);
pub const NS_PER_PACKET: u64 = 1000;
/// Pause between two rounds of the packets, after which the switch has forgotten the handshakes of the previous round.
pub const PAUSE_NS: u64 = 20_000_000_000;

/// Packets per second by kind; `all` is a site's mix.
type Rates = BTreeMap<&'static str, f64>;

/// Measures packets per second at each site. The runs of the sites alternate, because what else the machine does changes
/// speed even in core time.
pub fn measure(sites: &[Site]) -> Result<Vec<Rates>> {
    let traffic: Vec<Vec<Packet>> = sites
        .iter()
        .map(|site| site.traffic.packets())
        .collect::<Result<_>>()?;
    let mut benches = Vec::with_capacity(sites.len());
    for (site, packets) in sites.iter().zip(&traffic) {
        benches.push(Bench::new(site.pipeline()?, packets)?);
    }
    for _ in 0..RUNS {
        for bench in &mut benches {
            bench.run_all()?;
        }
    }
    Ok(benches.iter_mut().map(Bench::rates).collect())
}

/// Returns the packets of each kind, and of all kinds together if there are several.
fn by_kind(packets: &[Packet]) -> BTreeMap<&'static str, Vec<&Packet>> {
    let mut kinds: BTreeMap<&str, Vec<&Packet>> = BTreeMap::new();
    for packet in packets {
        kinds.entry(packet.kind).or_default().push(packet);
    }
    if kinds.len() > 1 {
        kinds.insert("all", packets.iter().collect());
    }
    kinds
}

struct Bench<'a> {
    device: Device,
    kinds: BTreeMap<&'static str, Vec<&'a Packet>>,
    /// Packets per second in each run so far.
    runs: BTreeMap<&'static str, Vec<f64>>,
}

impl<'a> Bench<'a> {
    /// Checks what the pipeline makes of each packet.
    fn new(pipeline: Pipeline, packets: &'a [Packet]) -> Result<Self> {
        let mut device = Device::new(pipeline);
        for packet in packets {
            device.check(packet)?;
        }
        Ok(Self {
            device,
            kinds: by_kind(packets),
            runs: BTreeMap::new(),
        })
    }

    /// Makes a run of each kind.
    fn run_all(&mut self) -> Result<()> {
        for (kind, packets) in &self.kinds {
            let rate = self.device.packets_per_second(packets)?;
            self.runs.entry(kind).or_default().push(rate);
        }
        Ok(())
    }

    /// Returns the median of the runs of each kind.
    fn rates(&mut self) -> Rates {
        let runs = self.runs.iter_mut();
        runs.map(|(kind, rates)| {
            rates.sort_by(f64::total_cmp);
            (*kind, rates[RUNS / 2])
        })
        .collect()
    }
}

/// A switch without queues.
struct Device {
    pipeline: Pipeline,
    now: u64,
    queue: Vec<softswitch_pipeline::Descriptor>,
    out: EgressOutput,
}

impl Device {
    fn new(pipeline: Pipeline) -> Self {
        Self {
            pipeline,
            now: 0,
            queue: Vec::new(),
            out: EgressOutput::default(),
        }
    }

    /// Processes a packet. Returns its output port, if exactly one packet leaves, with its frame in `out`.
    fn run(&mut self, packet: &Packet) -> Option<u32> {
        self.now += NS_PER_PACKET;
        self.pipeline
            .ingress(packet.port, &packet.frame, self.now, &mut self.queue);
        let mut out_port = None;
        // Worker packets come first, so the frame that leaves stays in `out`.
        while !self.queue.is_empty() {
            let descriptor = self.queue.remove(0);
            let outcome =
                self.pipeline
                    .egress(descriptor, QueueInfo::default(), self.now, &mut self.out);
            match outcome {
                EgressOutcome::Transmit { port } if out_port.is_none() => out_port = Some(port),
                // a second pass, or a worker packet of a program for Tofino
                EgressOutcome::Recirculate(packet) => {
                    self.pipeline
                        .ingress_recirculated(packet, self.now, &mut self.queue);
                }
                _ => return None,
            }
        }
        out_port
    }

    fn check(&mut self, packet: &Packet) -> Result<()> {
        let out_port = self.run(packet);
        ensure!(
            out_port == Some(packet.out_port),
            "a packet of kind {} must leave by port {}, not {out_port:?}",
            packet.kind,
            packet.out_port
        );
        if let Some(expected) = &packet.out_frame {
            ensure!(
                *expected == *self.out.frame,
                "a packet of kind {} must leave as\n{expected:02x?}, not as\n{:02x?}",
                packet.kind,
                self.out.frame
            );
        }
        Ok(())
    }

    /// Makes a run.
    fn packets_per_second(&mut self, packets: &[&Packet]) -> Result<f64> {
        let (mut sent, mut transmitted) = (0_u64, 0_u64);
        let start = core_time();
        while core_time() - start < RUN {
            self.now += PAUSE_NS;
            for (packet, next) in packets.iter().zip(packets.iter().cycle().skip(1)) {
                // The switch's ports also prefetch.
                prefetch(&next.frame);
                transmitted += u64::from(self.run(packet) == Some(packet.out_port));
            }
            sent += packets.len() as u64;
        }
        let rate = sent as f64 / (core_time() - start).as_secs_f64();
        ensure!(
            sent == transmitted,
            "{transmitted} of {sent} packets were transmitted"
        );
        Ok(rate)
    }
}
