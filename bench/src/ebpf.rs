// SPDX-License-Identifier: Apache-2.0
//! The cost of the eBPF programs of `frontage-cclb7` per packet, by the kernel's own test run, without attaching them.

use std::net::SocketAddr;
use std::os::fd::AsFd as _;

use anyhow::{Context, Result, anyhow};
use aya::maps::{Array, HashMap};
use aya::programs::SchedClassifier;
use frontage_cclb7::abi::{Config, Connection, Flow, Server};
use frontage_cclb7::agent::{self, Sizes};
use frontage_cclb7::bpf;
use frontage_cclb7::frame::{self, Segment};
use serde_json::{Value, json};

/// Runs of each program.
const REPEAT: u32 = 1_000_000;
const SERVER: &str = "192.0.2.1:80";
const CLIENT: &str = "198.51.100.1:40000";
const SIZES: Sizes = Sizes {
    flows: 1024,
    handshakes: 1024,
};

/// The paper's kernel patch, 99th percentile: retrieving the loads and computing RPT take 30 + 630 cycles at 3 GHz
/// (CloudCookie, section V-E), without parsing and without the echo.
const PAPER_EGRESS_NS: f64 = 220.0;

/// Run both programs on a data segment and on its acknowledgment in the middle of a response, both with the timestamp option
/// where Linux puts it. Return rows for `bench/run.py`.
pub fn measure() -> Result<Value> {
    let server: SocketAddr = SERVER.parse().context("a socket address")?;
    let client: SocketAddr = CLIENT.parse().context("a socket address")?;
    let mut ebpf = agent::load(SIZES)?;
    fill(&mut ebpf, server, client)?;

    let data = Segment {
        source: server,
        destination: client,
        seq: 9_000,
        ack: 1,
        flags: frame::ACK,
        options: frame::timestamps(5_000, 1),
        payload: 1448,
    };
    let acknowledgement = Segment {
        source: client,
        destination: server,
        seq: 1,
        ack: 9_000,
        options: frame::timestamps(1, 0x0004_0000),
        payload: 0,
        ..data.clone()
    };
    let egress = cost(&mut ebpf, "cclb7_egress", &data)?;
    let ingress = cost(&mut ebpf, "cclb7_ingress", &acknowledgement)?;
    Ok(json!([
        {
            "name": "ebpf_ns_per_packet_egress", "value": egress, "unit": "ns",
            "peer": "CloudCookie V-E, kernel patch, p99", "peer_value": PAPER_EGRESS_NS,
            "ratio": f64::from(egress) / PAPER_EGRESS_NS,
        },
        {
            "name": "ebpf_ns_per_packet_ingress", "value": ingress, "unit": "ns",
            "peer": null, "peer_value": null, "ratio": null,
        },
    ]))
}

/// Return the nanoseconds per packet of program `name`.
fn cost(ebpf: &mut aya::Ebpf, name: &str, segment: &Segment) -> Result<u32> {
    let program: &mut SchedClassifier = agent::program(ebpf, name)?;
    program.load()?;
    let outcome = bpf::test_run(program.fd()?.as_fd(), &frame::build(segment), REPEAT)
        .with_context(|| format!("the kernel cannot test-run {name}"))?;
    Ok(outcome.nanoseconds)
}

/// Fill the maps with the settings, one server and one flow.
fn fill(ebpf: &mut aya::Ebpf, server: SocketAddr, client: SocketAddr) -> Result<()> {
    let missing = || anyhow!("missing map in the eBPF object");
    let mut config: Array<_, Config> = ebpf.map_mut("config").ok_or_else(missing)?.try_into()?;
    config.set(
        0,
        Config {
            look_ahead: 1 << 20,
            unit_bytes: 1_000,
            is_ethernet: 1,
            ..Config::default()
        },
        0,
    )?;
    let mut servers: HashMap<_, u16, Server> =
        ebpf.map_mut("servers").ok_or_else(missing)?.try_into()?;
    servers.insert(server.port(), Server { n_af: 12, n_ff: 3 }, 0)?;
    let mut flow: Flow = bytemuck::Zeroable::zeroed();
    flow.base = 1_000;
    flow.acked = 8_000;
    flow.sent = 8_000;
    flow.open = 1;
    flow.expected = 4_000_000;
    flow.gap = 1;
    flow.cookies = 1;
    flow.port = server.port();
    let mut flows: HashMap<_, Connection, Flow> =
        ebpf.map_mut("flows").ok_or_else(missing)?.try_into()?;
    let connection = Connection::new((server.ip(), server.port()), (client.ip(), client.port()));
    flows.insert(connection, flow, 0)?;
    Ok(())
}
