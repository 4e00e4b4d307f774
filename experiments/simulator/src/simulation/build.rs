// SPDX-License-Identifier: Apache-2.0
//! Construction of a simulation: the names of a scenario become numbers of nodes and channels.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::available_parallelism;

use anyhow::{Context, Result};
use softswitch_pipeline::{Nanos, Program};
use softswitch_queue::{self as queue, EgressQueue, LinkConfig, Loss};

use super::sharding::{self, Edge, Sharding};
use super::{Coordinator, Place, Sample, Simulation, Workload};
use crate::agent::RptSchedule;
use crate::host::{Config, Host, Identity};
use crate::network::{Channel, Frame, MIN_FRAME, Network, Outgoing, Wire, WireEnd};
use crate::program;
use crate::record::{Record, Series};
use crate::scenario::{self, Discipline, End, Link, Quic, Scenario};
use crate::seed;
use crate::shard::{Node, Shard};
use crate::switch::Switch;
use crate::workload::{ArrivalTimes, ResponseSizes, ServerChoice};

/// Number of events after which the numbers of events of the nodes are known well enough.
const REHEARSED: u64 = 200_000;

/// Node numbers by name: switches first, then hosts, in the scenario's order.
type Numbers<'a> = BTreeMap<&'a str, u32>;

/// Loaded programs by name.
type Programs<'a> = BTreeMap<&'a str, Program>;

/// Channel numbers by sending end.
type ChannelNumbers = BTreeMap<String, usize>;

pub fn build(scenario: &Scenario, folder: &Path, threads: usize) -> Result<Simulation> {
    let programs = program::load(scenario)?;
    let mut weights = vec![1; scenario.switches.len() + scenario.hosts.len()];
    if threads > 1 {
        // The beginning of the run shows how to distribute the nodes.
        let rehearsal = assemble(scenario, &programs, Record::default(), &weights, 1)?;
        weights = rehearsal.count_events(REHEARSED)?;
    }
    let record = Record::create(folder, &scenario.record)?;
    assemble(scenario, &programs, record, &weights, threads)
}

/// Builds a simulation. `weights` has the number of events of each node, which may be relative.
fn assemble(
    scenario: &Scenario,
    programs: &Programs,
    record: Record,
    weights: &[u64],
    threads: usize,
) -> Result<Simulation> {
    let names = scenario.switches.iter().map(|switch| switch.name.as_str());
    let names = names.chain(scenario.hosts.iter().map(|host| host.name.as_str()));
    let numbers: Numbers = names.zip(0..).collect();
    let edges: Vec<_> = scenario.links.iter().map(|it| edge(it, &numbers)).collect();
    let sharding = sharding::distribute(&edges, weights, threads);
    let places = places(&sharding);
    let mut parts: Vec<_> = (0..sharding.count).map(|_| Part::default()).collect();
    let (channels, by_end) = connect(scenario, &numbers, &places, &mut parts);
    let place_of = |end: &str| channels[by_end[end]].index;
    let nodes = switches(scenario, programs, place_of)?;
    let nodes = nodes.into_iter().chain(hosts(scenario, &places, place_of));
    for (node, place) in nodes.zip(&places) {
        parts[place.shard as usize].nodes.push(node);
    }
    let mut workloads = workloads(scenario, &numbers, &places);
    let first = (0..)
        .zip(&mut workloads)
        .filter_map(|(number, it)| Some(Reverse((it.arrivals.next()?, number))));
    let coordinator = Coordinator {
        end: scenario.end,
        window: sharding.window,
        upcoming: first.collect(),
        workloads,
        nodes: places,
        channels,
        begun: 0,
        answers: Default::default(),
        samples: samples(&scenario.record),
        record,
    };
    let count = parts.len();
    let cores = available_parallelism().map_or(1, NonZeroUsize::get);
    let settings: Arc<[scenario::Workload]> = scenario.workload.as_slice().into();
    let shards = (0..).zip(parts).map(|(number, part)| {
        let network = Network::new(number, count, part.channels, part.wires);
        Mutex::new(Shard::new(part.nodes, network, settings.clone(), count))
    });
    Ok(Simulation {
        shards: shards.collect(),
        threads: threads.min(count).min(cores).max(1),
        coordinator,
    })
}

/// A shard under construction.
#[derive(Debug, Default)]
struct Part {
    nodes: Vec<Node>,
    channels: Vec<Channel>,
    wires: Vec<Wire>,
}

fn edge(link: &Link, numbers: &Numbers) -> Edge {
    Edge {
        ends: (numbers[link.a.node.as_str()], numbers[link.b.node.as_str()]),
        latency: latency(link),
    }
}

/// Returns the time of the shortest frame on a link in nanoseconds, or 0 for a link without delay.
fn latency(link: &Link) -> Nanos {
    let bits = 8 * (u128::from(MIN_FRAME) + u128::from(link.overhead));
    let sending = (bits * 1_000_000_000).checked_div(link.rate.into());
    match link.delay {
        0 => 0,
        delay => delay.saturating_add(sending.unwrap_or(0) as Nanos),
    }
}

/// Returns the place of each node. Nodes of a shard keep their order.
fn places(sharding: &Sharding) -> Vec<Place> {
    let mut next = vec![0; sharding.count];
    let place = |&shard: &u32| {
        let index = next[shard as usize];
        next[shard as usize] += 1;
        Place { shard, index }
    };
    sharding.shards.iter().map(place).collect()
}

/// Creates both directions of each link: a channel in the shard of the sender, and a wire in the shard of the receiver. Channels and wires
/// of a shard keep the scenario's order. Returns the place of each channel.
fn connect(
    scenario: &Scenario,
    numbers: &Numbers,
    places: &[Place],
    parts: &mut [Part],
) -> (Vec<Place>, ChannelNumbers) {
    let (mut channels, mut by_end) = (Vec::new(), BTreeMap::new());
    let place = |end: &End| places[numbers[end.node.as_str()] as usize];
    for link in &scenario.links {
        for (from, to) in [(&link.a, &link.b), (&link.b, &link.a)] {
            let (sender, receiver) = (place(from), place(to));
            let wires = &mut parts[receiver.shard as usize].wires;
            let end = WireEnd {
                shard: receiver.shard,
                wire: wires.len() as u32,
            };
            wires.push(Wire::new(receiver.index, to.port));
            let name = name(from);
            by_end.insert(name.clone(), channels.len());
            let own = &mut parts[sender.shard as usize].channels;
            channels.push(Place {
                shard: sender.shard,
                index: own.len() as u32,
            });
            let by_rank = link.discipline != Discipline::Fifo;
            let queue = queue(link, &name, scenario.seed);
            own.push(Channel::new(name, queue, sender.index, end, by_rank));
        }
    }
    (channels, by_end)
}

fn workloads(scenario: &Scenario, numbers: &Numbers, places: &[Place]) -> Vec<Workload> {
    let workload = |(n, workload): (usize, &scenario::Workload)| {
        let seed = seed::derive(scenario.seed, &format!("workload {n}"));
        Workload {
            scenario: workload.clone(),
            client: places[numbers[workload.client.as_str()] as usize],
            arrivals: ArrivalTimes::new(workload, seed),
            servers: ServerChoice::new(workload, seed),
            sizes: ResponseSizes::new(workload, seed),
            rpt: workload.rpt.as_deref().map(RptSchedule::from),
        }
    };
    scenario.workload.iter().enumerate().map(workload).collect()
}

fn samples(record: &scenario::Record) -> Vec<Sample> {
    let sampled = Series::ALL.into_iter().filter_map(|series| {
        let interval = series.interval(record)?;
        let at = interval;
        Some(Sample {
            series,
            interval,
            at,
        })
    });
    sampled.collect()
}

fn name(end: &End) -> String {
    format!("{}:{}", end.node, end.port)
}

fn queue(link: &Link, name: &str, seed: u64) -> EgressQueue<Outgoing, Frame> {
    let config = LinkConfig {
        rate: NonZeroU64::new(link.rate),
        overhead: link.overhead,
        queue_bytes: link.queue_bytes,
        queue_packets: link.queue_packets,
        delay: link.delay,
        loss: Loss::from_ppb(link.loss_ppb).unwrap_or_default(),
    };
    let discipline = match &link.discipline {
        Discipline::Fifo => queue::Discipline::Priorities,
        Discipline::Pifo => queue::Discipline::Pifo,
        Discipline::SpPifo => queue::Discipline::SpPifo,
        Discipline::Aifo { limits, sample } => {
            queue::Discipline::Aifo(queue::Aifo::new(limits.clone(), *sample))
        }
    };
    let seed = seed::derive(seed, &format!("loss {name}"));
    EgressQueue::with_discipline(config, discipline, seed)
}

/// Returns the switches. `channel` returns the index of a sending end's channel in its shard.
fn switches(
    scenario: &Scenario,
    programs: &Programs,
    channel: impl Fn(&str) -> u32,
) -> Result<Vec<Node>> {
    let switches = scenario.switches.iter();
    switches
        .map(|switch| {
            let program = programs.get(switch.program.as_str()).context("checked")?;
            let pipeline = program::pipeline(program.clone(), switch, scenario.seed)?;
            let port = |number| (number, channel(&format!("{}:{number}", switch.name)));
            let ports: Vec<_> = switch.ports.iter().map(|p| port(p.number)).collect();
            let switch = Switch::new(switch.name.clone(), pipeline, &ports, switch.cpu_port);
            Ok(Node::Switch(Box::new(switch)))
        })
        .collect()
}

/// Returns the hosts. Their node numbers follow those of the switches.
fn hosts(
    scenario: &Scenario,
    places: &[Place],
    channel: impl Fn(&str) -> u32,
) -> impl Iterator<Item = Node> {
    let numbers = scenario.switches.len()..;
    numbers.zip(&scenario.hosts).map(move |(number, host)| {
        let identity = Identity {
            name: host.name.clone(),
            number: number as u32,
            node: places[number].index,
            mac: host.mac.0,
            gateway_mac: host.gateway_mac.0,
            addresses: host.addresses.clone(),
            channel: channel(&format!("{}:0", host.name)),
            masks: host.masks,
        };
        let rng = seed::generator(scenario.seed, &host.name);
        let config = Config {
            tcp: host.tcp.clone(),
            quic: host.quic.as_ref().map(Quic::config),
        };
        let server = host.server.as_ref();
        Node::Host(Box::new(Host::new(identity, config, rng, server)))
    })
}
