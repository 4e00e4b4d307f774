// SPDX-License-Identifier: Apache-2.0
//! Construction of a simulation: the names of a scenario become numbers of nodes and channels.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::Path;

use anyhow::{Context, Result};
use softswitch_queue::{self as queue, EgressQueue, LinkConfig, Loss};

use super::{Node, Sample, Simulation, Workload};
use crate::agent::RptSchedule;
use crate::flows::Flows;
use crate::host::{Config, Host, Identity};
use crate::network::{Channel, Network};
use crate::program;
use crate::record::{Record, Series};
use crate::scenario::{self, Discipline, End, Link, Quic, Scenario};
use crate::seed;
use crate::switch::Switch;
use crate::workload::{ArrivalTimes, ResponseSizes, ServerChoice};

/// Node numbers by name: switches first, then hosts, in the scenario's order.
type Numbers<'a> = BTreeMap<&'a str, u32>;

pub fn build(scenario: &Scenario, folder: &Path) -> Result<Simulation> {
    let names = scenario.switches.iter().map(|switch| switch.name.as_str());
    let names = names.chain(scenario.hosts.iter().map(|host| host.name.as_str()));
    let numbers: Numbers = names.zip(0..).collect();
    let mut channels = Vec::new();
    for link in &scenario.links {
        channels.push(channel(link, &link.a, &link.b, &numbers, scenario.seed));
        channels.push(channel(link, &link.b, &link.a, &numbers, scenario.seed));
    }
    let channel_by_end: BTreeMap<_, _> = channels.iter().map(|c| c.name.clone()).zip(0..).collect();
    let mut nodes = switches(scenario, &channel_by_end)?;
    nodes.extend(hosts(scenario, &channel_by_end, &numbers));
    let workloads: Vec<_> = (0..)
        .zip(&scenario.workload)
        .map(|(n, workload)| {
            let seed = seed::derive(scenario.seed, &format!("workload {n}"));
            Workload {
                scenario: workload.clone(),
                client: numbers[workload.client.as_str()],
                arrivals: ArrivalTimes::new(workload, seed),
                servers: ServerChoice::new(workload, seed),
                sizes: ResponseSizes::new(workload, seed),
                rpt: workload.rpt.as_deref().map(RptSchedule::from),
            }
        })
        .collect();
    Ok(Simulation {
        end: scenario.end,
        nodes,
        network: Network::new(channels, Flows::default()),
        open_workloads: workloads.len(),
        workloads,
        samples: samples(&scenario.record),
        record: Record::create(folder, &scenario.record)?,
        events: 0,
    })
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

fn channel(link: &Link, from: &End, to: &End, numbers: &Numbers, seed: u64) -> Channel {
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
    let name = name(from);
    let seed = seed::derive(seed, &format!("loss {name}"));
    let queue = EgressQueue::with_discipline(config, discipline, seed);
    let ends = (
        numbers[from.node.as_str()],
        numbers[to.node.as_str()],
        to.port,
    );
    Channel::new(name, queue, ends, link.discipline != Discipline::Fifo)
}

fn switches(scenario: &Scenario, channel_by_end: &BTreeMap<String, u32>) -> Result<Vec<Node>> {
    let programs = program::load(scenario)?;
    let switches = scenario.switches.iter();
    switches
        .map(|switch| {
            let program = programs.get(switch.program.as_str()).context("checked")?;
            let pipeline = program::pipeline(program.clone(), switch, scenario.seed)?;
            let port = |number| (number, channel_by_end[&format!("{}:{number}", switch.name)]);
            let ports: Vec<_> = switch.ports.iter().map(|p| port(p.number)).collect();
            let switch = Switch::new(switch.name.clone(), pipeline, &ports, switch.cpu_port);
            Ok(Node::Switch(Box::new(switch)))
        })
        .collect()
}

fn hosts(
    scenario: &Scenario,
    channel_by_end: &BTreeMap<String, u32>,
    numbers: &Numbers,
) -> impl Iterator<Item = Node> {
    scenario.hosts.iter().map(|host| {
        let identity = Identity {
            name: host.name.clone(),
            number: numbers[host.name.as_str()],
            mac: host.mac.0,
            gateway_mac: host.gateway_mac.0,
            addresses: host.addresses.clone(),
            channel: channel_by_end[&format!("{}:0", host.name)],
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
