// SPDX-License-Identifier: Apache-2.0
//! Checks beyond the types of a scenario: references are valid, and numbers are in range.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use anyhow::{Result, anyhow, bail, ensure};
use frontage_cookie::tcp::Sid;
use softswitch_pipeline::MAX_FRAME;
use softswitch_queue::Loss;

use super::{
    Arrivals, Discipline, End, Host, Link, Protocol, Rank, Scenario, Sizes, Switch, Workload,
};

/// Maximum number of bytes before the payload of a segment: Ethernet, IPv6, and TCP with all options.
const HEADERS: u32 = 14 + 40 + 60;

/// Checks a scenario.
///
/// # Errors
/// Returns the field and the reason.
pub fn check(scenario: &Scenario) -> Result<()> {
    let mut ends = BTreeMap::new();
    for (i, switch) in scenario.switches.iter().enumerate() {
        check_switch(&format!("switches[{i}]"), switch, scenario)?;
        for (j, port) in switch.ports.iter().enumerate() {
            let field = format!("switches[{i}].ports[{j}]");
            let end = (switch.name.as_str(), port.number);
            ensure!(
                ends.insert(end, port.link.as_str()).is_none(),
                "{field}.number: port {} is listed twice",
                port.number
            );
        }
    }
    for (i, host) in scenario.hosts.iter().enumerate() {
        check_host(&format!("hosts[{i}]"), host)?;
        ensure!(
            ends.insert((&host.name, 0), &host.link).is_none(),
            "hosts[{i}].name: duplicate name '{}'",
            host.name
        );
    }
    check_names(scenario)?;
    for (i, link) in scenario.links.iter().enumerate() {
        let field = format!("links[{i}]");
        check_link(&field, link)?;
        for (name, end) in [("a", &link.a), ("b", &link.b)] {
            check_end(&format!("{field}.{name}"), end, &link.name, &mut ends)?;
        }
    }
    if let Some(((node, port), link)) = ends.first_key_value() {
        bail!(
            "links: link '{link}' has no end at port {port} of '{node}': add the end, or remove the port"
        );
    }
    for (i, workload) in scenario.workload.iter().enumerate() {
        check_workload(&format!("workload[{i}]"), workload, scenario)?;
    }
    let record = &scenario.record;
    for (name, interval) in [
        ("queues", record.queues),
        ("loads", record.loads),
        ("throughput", record.throughput),
    ] {
        ensure!(
            interval != Some(0),
            "record.{name}: must be more than 0 ns, or null"
        );
    }
    Ok(())
}

fn check_names(scenario: &Scenario) -> Result<()> {
    let nodes = scenario.switches.iter().map(|switch| &switch.name);
    let nodes = nodes.chain(scenario.hosts.iter().map(|host| &host.name));
    let links = scenario.links.iter().map(|link| &link.name);
    for (kind, names) in [
        ("switches and hosts", nodes.collect::<Vec<_>>()),
        ("links", links.collect()),
    ] {
        let mut seen = BTreeSet::new();
        for name in names {
            check_name(kind, name)?;
            ensure!(seen.insert(name), "{kind}: duplicate name '{name}'");
        }
    }
    Ok(())
}

/// Checks a name that is written to a CSV field.
fn check_name(field: &str, name: &str) -> Result<()> {
    let is_forbidden = |c: char| c == ',' || c == '"' || c.is_control();
    ensure!(
        !name.contains(is_forbidden),
        "{field}: '{name}' must not contain commas, quotes or control characters"
    );
    Ok(())
}

fn check_switch(field: &str, switch: &Switch, scenario: &Scenario) -> Result<()> {
    ensure!(
        scenario.programs.contains_key(&switch.program),
        "{field}.program: unknown program '{}': add it to programs",
        switch.program
    );
    ensure!(
        switch
            .ports
            .iter()
            .all(|port| port.number != switch.cpu_port),
        "{field}.cpu_port: port {} is also in ports: use another number",
        switch.cpu_port
    );
    Ok(())
}

fn check_host(field: &str, host: &Host) -> Result<()> {
    ensure!(
        !host.addresses.is_empty(),
        "{field}.addresses: empty list: add an address"
    );
    host.tcp
        .check()
        .map_err(|fault| anyhow!("{field}.tcp.{fault}"))?;
    let largest = MAX_FRAME as u32 - HEADERS;
    ensure!(
        host.tcp.mss <= largest,
        "{field}.tcp.mss: at most {largest} bytes fit in a frame"
    );
    if let Some(quic) = &host.quic {
        let fault = quic.config().check();
        fault.map_err(|fault| anyhow!("{field}.quic.{fault}"))?;
        let cookie = host
            .server
            .as_ref()
            .is_some_and(|server| server.cookie && server.key.is_none());
        ensure!(
            !cookie,
            "{field}.server.key: missing: QUIC's cookies need a key"
        );
    }
    if let Some(server) = &host.server {
        ensure!(
            server.sid <= Sid::MAX,
            "{field}.server.sid: {} does not fit the TCP cookie: use 0 to {}",
            server.sid,
            Sid::MAX
        );
        ensure!(
            server.rank == Rank::Unsent || host.quic.is_none(),
            "{field}.server.rank: QUIC packets have no fixed position in a response: use unsent, or no quic"
        );
        ensure!(
            server.bandwidth > 0,
            "{field}.server.bandwidth: must be more than 0 bit/s"
        );
        ensure!(
            host.tcp.timestamps || !server.cookie,
            "{field}.server.cookie: TCP's cookies need timestamps: set {field}.tcp.timestamps, or cookie to false"
        );
    }
    Ok(())
}

fn check_link(field: &str, link: &Link) -> Result<()> {
    ensure!(link.rate > 0, "{field}.rate: must be at least 1 bit/s");
    ensure!(
        Loss::from_ppb(link.loss_ppb).is_some(),
        "{field}.loss_ppb: {} is more than 1000000000",
        link.loss_ppb
    );
    ensure!(
        link.discipline == Discipline::Fifo || link.queue_bytes.is_none(),
        "{field}.queue_bytes: PIFO, SP-PIFO and AIFO limit their queue in packets: use queue_packets"
    );
    if let Discipline::Aifo { limits, sample } = &link.discipline {
        ensure!(
            !limits.is_empty(),
            "{field}.discipline.aifo.limits: empty list: give a limit for each number of smaller ranks, from 0 on"
        );
        ensure!(
            *sample > 0,
            "{field}.discipline.aifo.sample: must be at least 1"
        );
    }
    Ok(())
}

fn check_end<'a>(
    field: &str,
    end: &'a End,
    link: &str,
    ends: &mut BTreeMap<(&'a str, u32), &'a str>,
) -> Result<()> {
    match ends.remove(&(end.node.as_str(), end.port)) {
        Some(other) if other == link => Ok(()),
        Some(other) => bail!("{field}: {}:{} is on link '{other}'", end.node, end.port),
        None => bail!(
            "{field}: unknown or used end {}:{}: a host's port is 0, and each port has one link",
            end.node,
            end.port
        ),
    }
}

fn check_workload(field: &str, workload: &Workload, scenario: &Scenario) -> Result<()> {
    check_name(&format!("{field}.label"), &workload.label)?;
    let client = scenario
        .hosts
        .iter()
        .find(|host| host.name == workload.client);
    let Some(client) = client else {
        bail!("{field}.client: unknown host '{}'", workload.client);
    };
    ensure!(
        !workload.servers.is_empty(),
        "{field}.servers: empty list: name a server"
    );
    for (i, server) in workload.servers.iter().enumerate() {
        let has_family = |a: &IpAddr| a.is_ipv4() == server.is_ipv4();
        ensure!(
            client.addresses.iter().any(has_family),
            "{field}.servers[{i}]: client '{}' has no address of the family of {server}",
            client.name
        );
    }
    ensure!(
        workload.protocol == Protocol::Tcp || client.quic.is_some(),
        "{field}.protocol: client '{}' has no quic",
        client.name
    );
    ensure!(workload.burst > 0, "{field}.burst: must be at least 1");
    ensure!(
        workload.request_bytes > 0,
        "{field}.request_bytes: must be at least 1"
    );
    if let Some(rpt) = &workload.rpt {
        ensure!(
            !rpt.is_empty(),
            "{field}.rpt: empty list: add a time, or use null for the real RPT"
        );
        ensure!(
            rpt.is_sorted_by(|a, b| a.0 < b.0),
            "{field}.rpt: times must ascend"
        );
    }
    match &workload.arrivals {
        Arrivals::Poisson(rate) => {
            ensure!(
                rate.is_finite() && *rate > 0.0,
                "{field}.arrivals.poisson: {rate} must be a positive number of flows per second"
            );
            ensure!(
                workload.stop.is_some() || scenario.end.is_some(),
                "{field}.stop: missing: a Poisson process needs stop, or the scenario an end"
            );
        }
        Arrivals::Times(times) => {
            ensure!(
                times.is_sorted(),
                "{field}.arrivals.times: must be in ascending order"
            );
        }
    }
    match &workload.sizes {
        Sizes::Fixed(bytes) => ensure!(*bytes > 0, "{field}.sizes.fixed: must be at least 1"),
        Sizes::Uniform(low, high) => ensure!(
            0 < *low && low <= high,
            "{field}.sizes.uniform: must satisfy 0 < {low} <= {high}"
        ),
        Sizes::Cdf(points) => ensure!(
            points.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1)
                && points
                    .iter()
                    .all(|(bytes, p)| (0.0..1e15).contains(bytes) && (0.0..=1.0).contains(p))
                && points.last().is_some_and(|last| last.1 == 1.0),
            "{field}.sizes.cdf: bytes and probabilities must ascend, and the last probability must be 1"
        ),
    }
    Ok(())
}
