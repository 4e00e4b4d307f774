// SPDX-License-Identifier: Apache-2.0
//! Packets per second in process, and instructions and hardware events per packet: `Pipeline::ingress` and `egress` back to back. Time is core
//! time, on which other processes of the machine have little effect.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde::Serialize;
use softswitch::port::prefetch;
use softswitch_pipeline::{
    Descriptor, EgressOutcome, EgressOutput, Pipeline, QueueInfo, Recirculated, Turn,
};

use crate::clock::core_time;
use crate::counters::{Counters, Events};
use crate::site::Site;
use crate::steps::instructions;
use crate::traffic::Packet;

/// Number of runs of each kind of packet, whose median is the result.
const RUNS: usize = 10;
/// Core time of a run.
const RUN: Duration = Duration::from_millis(200);
pub const NS_PER_PACKET: u64 = 1000;
/// Pause between two rounds of the packets, after which the switch has forgotten the handshakes of the previous round.
pub const PAUSE_NS: u64 = 20_000_000_000;

/// Number of packets to whose paths the pipeline adapts before the runs.
const WARM_UP: usize = 500_000;
/// Number of packets of each kind of which instructions are counted, because single steps are slow.
const COUNTED: usize = 6;

/// A run of one kind of packet.
#[derive(Debug, Clone, Copy)]
struct Run {
    packets_per_second: f64,
    events: Option<Events>,
}

/// Speed and costs of one kind of packet.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Speed {
    packets_per_second: f64,
    /// Per packet, in user space; `None` where ptrace is forbidden.
    instructions: Option<f64>,
    /// Per packet; `None` without hardware counters.
    events: Option<Events>,
}

/// Speed by kind of packet; `all` is a site's mix.
type Speeds = BTreeMap<&'static str, Speed>;

/// Measures speed at each site. The runs of the sites alternate, because what else the machine does changes speed even in
/// core time.
pub fn measure(sites: &[Site]) -> Result<Vec<Speeds>> {
    let mut counters = match Counters::open() {
        Ok(counters) => Some(counters),
        Err(error) => {
            eprintln!("without hardware counters: {error:#}");
            None
        }
    };
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
            bench.run_all(counters.as_mut())?;
        }
    }
    Ok(benches.iter_mut().map(Bench::speeds).collect())
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
    runs: BTreeMap<&'static str, Vec<Run>>,
}

impl<'a> Bench<'a> {
    /// Checks what the pipeline makes of each packet.
    fn new(pipeline: Pipeline, packets: &'a [Packet]) -> Result<Self> {
        let mut device = Device::new(pipeline);
        for packet in packets {
            device.check(packet)?;
        }
        device.warm_up(&packets.iter().collect::<Vec<_>>());
        Ok(Self {
            device,
            kinds: by_kind(packets),
            runs: BTreeMap::new(),
        })
    }

    /// Makes a run of each kind.
    fn run_all(&mut self, mut counters: Option<&mut Counters>) -> Result<()> {
        for (kind, packets) in &self.kinds {
            let run = self.device.make_run(packets, counters.as_deref_mut())?;
            self.runs.entry(kind).or_default().push(run);
        }
        Ok(())
    }

    /// Returns the medians of the runs of each kind, and counts instructions.
    fn speeds(&mut self) -> Speeds {
        let kinds = self.kinds.iter();
        let speed = |(kind, packets): (&&'static str, &Vec<&Packet>)| {
            let runs = &self.runs[kind];
            let mut rates: Vec<f64> = runs.iter().map(|run| run.packets_per_second).collect();
            rates.sort_by(f64::total_cmp);
            let events: Option<Vec<Events>> = runs.iter().map(|run| run.events).collect();
            let speed = Speed {
                packets_per_second: rates[rates.len() / 2],
                instructions: self.device.instructions(packets),
                events: events.map(|events| Events::medians(&events)),
            };
            (*kind, speed)
        };
        kinds.map(speed).collect()
    }
}

/// Something that runs packets: a pipeline, or one of its lanes.
pub trait Runs {
    /// Runs ingress.
    fn ingress(&mut self, port: u32, frame: &[u8], now: u64, out: &mut Vec<Descriptor>);
    /// Runs ingress for a recirculated packet.
    fn recirculated(&mut self, packet: Recirculated, now: u64, out: &mut Vec<Descriptor>);
    /// Runs egress.
    fn egress(&mut self, d: Descriptor, now: u64, out: &mut EgressOutput) -> EgressOutcome;
}

impl Runs for Pipeline {
    fn ingress(&mut self, port: u32, frame: &[u8], now: u64, out: &mut Vec<Descriptor>) {
        Self::ingress(self, port, frame, now, out);
    }

    fn recirculated(&mut self, packet: Recirculated, now: u64, out: &mut Vec<Descriptor>) {
        self.ingress_recirculated(packet, now, out);
    }

    fn egress(&mut self, d: Descriptor, now: u64, out: &mut EgressOutput) -> EgressOutcome {
        Self::egress(self, d, QueueInfo::default(), now, out)
    }
}

impl Runs for Turn<'_> {
    fn ingress(&mut self, port: u32, frame: &[u8], now: u64, out: &mut Vec<Descriptor>) {
        Self::ingress(self, port, frame, now, out);
    }

    fn recirculated(&mut self, packet: Recirculated, now: u64, out: &mut Vec<Descriptor>) {
        self.ingress_recirculated(packet, now, out);
    }

    fn egress(&mut self, d: Descriptor, now: u64, out: &mut EgressOutput) -> EgressOutcome {
        Self::egress(self, d, QueueInfo::default(), now, out)
    }
}

/// The path of packets without queues.
#[derive(Default)]
pub struct Path {
    pub now: u64,
    queue: Vec<Descriptor>,
    out: EgressOutput,
}

impl Path {
    /// Processes a packet. Returns its output port, if exactly one packet leaves, with its frame in `out`.
    pub fn run(&mut self, switch: &mut impl Runs, packet: &Packet) -> Option<u32> {
        self.now += NS_PER_PACKET;
        switch.ingress(packet.port, &packet.frame, self.now, &mut self.queue);
        let mut out_port = None;
        // Worker packets come first, so the frame that leaves stays in `out`.
        while !self.queue.is_empty() {
            let descriptor = self.queue.remove(0);
            match switch.egress(descriptor, self.now, &mut self.out) {
                EgressOutcome::Transmit { port } if out_port.is_none() => out_port = Some(port),
                // a second pass, or a worker packet of a program for Tofino
                EgressOutcome::Recirculate(packet) => {
                    switch.recirculated(packet, self.now, &mut self.queue);
                }
                _ => return None,
            }
        }
        out_port
    }
}

/// A switch without queues.
pub struct Device {
    pipeline: Pipeline,
    path: Path,
}

impl Device {
    pub fn new(pipeline: Pipeline) -> Self {
        Self {
            pipeline,
            path: Path::default(),
        }
    }

    fn run(&mut self, packet: &Packet) -> Option<u32> {
        self.path.run(&mut self.pipeline, packet)
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
                *expected == *self.path.out.frame,
                "a packet of kind {} must leave as\n{expected:02x?}, not as\n{:02x?}",
                packet.kind,
                self.path.out.frame
            );
        }
        Ok(())
    }

    /// Processes packets until the pipeline has adapted to them.
    fn warm_up(&mut self, packets: &[&Packet]) {
        for _ in 0..WARM_UP.div_ceil(packets.len()) {
            self.path.now += PAUSE_NS;
            self.transmit(packets);
        }
        self.pipeline.adapt();
    }

    /// Processes packets, and returns how many leave by their port.
    pub fn transmit(&mut self, packets: &[&Packet]) -> u64 {
        let with_next = packets.iter().zip(packets.iter().cycle().skip(1));
        let transmitted = with_next.map(|(packet, next)| {
            // The switch's ports also prefetch.
            prefetch(&next.frame);
            u64::from(self.run(packet) == Some(packet.out_port))
        });
        transmitted.sum()
    }

    /// Makes a run.
    fn make_run(
        &mut self,
        packets: &[&Packet],
        mut counters: Option<&mut Counters>,
    ) -> Result<Run> {
        let mut total = || counters.as_mut().map(|c| c.read()).transpose();
        let (mut sent, mut transmitted) = (0_u64, 0_u64);
        let before = total()?;
        let start = core_time();
        while core_time() - start < RUN {
            self.path.now += PAUSE_NS;
            transmitted += self.transmit(packets);
            sent += packets.len() as u64;
        }
        let packets_per_second = sent as f64 / (core_time() - start).as_secs_f64();
        let events = before.zip(total()?);
        ensure!(
            sent == transmitted,
            "{transmitted} of {sent} packets were transmitted"
        );
        Ok(Run {
            packets_per_second,
            events: events.map(|(before, after)| after.per_packet_since(&before, sent)),
        })
    }

    /// Counts the instructions per packet, if the machine allows it.
    fn instructions(&mut self, packets: &[&Packet]) -> Option<f64> {
        self.path.now += PAUSE_NS;
        let packets = &packets[..packets.len().min(COUNTED)];
        let counted = instructions(|| {
            self.transmit(packets);
        });
        match counted {
            Ok(count) => Some(count as f64 / packets.len() as f64),
            Err(error) => {
                eprintln!("without instructions per packet: {error:#}");
                None
            }
        }
    }
}
