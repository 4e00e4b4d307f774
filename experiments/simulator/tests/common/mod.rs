// SPDX-License-Identifier: Apache-2.0
//! Building blocks of scenarios, and runs in a temporary folder.

#![allow(dead_code, reason = "each test program uses a part")]

use std::collections::BTreeMap;
use std::fs;

use frontage_simulator::{Scenario, Simulation, Summary};
use serde_json::{Value, json};

pub const GIGABIT: u64 = 1_000_000_000;
pub const MILLISECOND: u64 = 1_000_000;
/// The routers' ports to the other router. A port to a host has the host's number.
const TRUNK: u32 = 100;

fn mac(n: u32) -> String {
    format!("02:00:00:00:00:{n:02x}")
}

fn tcp() -> Value {
    json!({
        "mss": 1448, "initial_window": 10, "congestion": "newreno", "min_rto": 5 * MILLISECOND, "initial_rto": 20 * MILLISECOND,
        "max_rto": 1000 * MILLISECOND, "delayed_ack": null, "sack": true, "timestamps": true, "receive_window": 1 << 20,
    })
}

fn quic() -> Value {
    json!({
        "max_datagram": 1452, "initial_window": 10, "congestion": "newreno", "initial_rtt": 20 * MILLISECOND,
        "max_ack_delay": MILLISECOND,
    })
}

fn host(n: u32, kind: &str, gateway: u32) -> Value {
    let server =
        json!({"sid": n, "port": 80, "look_ahead": 100_000, "bandwidth": GIGABIT, "cookie": false});
    json!({
        "name": format!("h{n}"), "mac": mac(n), "addresses": [format!("10.0.0.{n}")], "gateway_mac": mac(gateway),
        "link": format!("l{n}"), "server": (kind == "server").then_some(server), "tcp": tcp(), "quic": quic(),
    })
}

fn link(name: &str, a: &str, b: &str) -> Value {
    json!({
        "name": name, "a": a, "b": b, "rate": GIGABIT, "delay": 10_000, "loss_ppb": 0, "queue_packets": 100,
        "queue_bytes": null, "discipline": "fifo",
    })
}

fn workload(client: u32, server: u32, arrivals: Value, sizes: Value) -> Value {
    json!({
        "label": "test", "client": format!("h{client}"), "servers": [format!("10.0.0.{server}:80")], "arrivals": arrivals,
        "sizes": sizes, "request_bytes": 100, "start": 0, "stop": 50 * MILLISECOND, "connection": "one-per-flow",
    })
}

/// Returns a scenario of a client and a server at the two ends of a link, with one flow of `size` bytes at time 0.
pub fn line(size: u64) -> Value {
    let (mut client, server) = (host(1, "client", 2), host(2, "server", 1));
    client["link"] = json!("l2");
    json!({
        "seed": 1, "end": null, "programs": {}, "switches": [], "hosts": [client, server],
        "links": [link("l2", "h1:0", "h2:0")],
        "workload": [workload(1, 2, json!({"times": [0]}), json!({"fixed": size}))],
        "record": {"flows": true, "queues": null, "loads": null, "throughput": null},
    })
}

/// Returns a scenario with clients 1 and 2 at one router, servers 3 and 4 at another, and a link between the routers.
pub fn dumbbell() -> Value {
    let forward = |n: u32, port: u32, to: u32| {
        json!({"table": "I.next_hops", "match": [format!("{n:x}")], "action": "forward",
               "params": [format!("{port:x}"), "20000000009", format!("2000000000{to:x}")]})
    };
    let route = |n: u32| json!({"table": "I.routes", "match": [format!("a00000{n:x}/32")], "action": "set_next_hop", "params": [format!("{n:x}")]});
    let router = |name: &str, near: [u32; 2]| {
        let entries = (1..=4).flat_map(|n| {
            let (port, to) = if near.contains(&n) {
                (n, n)
            } else {
                (TRUNK, 9)
            };
            [forward(n, port, to), route(n)]
        });
        let mut ports: Vec<_> = near
            .iter()
            .map(|n| json!({"number": n, "link": format!("l{n}")}))
            .collect();
        ports.push(json!({"number": TRUNK, "link": "trunk"}));
        json!({
            "name": name, "program": "router", "ports": ports, "entries": entries.collect::<Vec<_>>(), "packets_out": [],
            "clone_sessions": [], "cpu_port": 510,
        })
    };
    let (near, far) = ("near", "far");
    let mut links: Vec<_> = (1..=4)
        .map(|n| {
            link(
                &format!("l{n}"),
                &format!("h{n}:0"),
                &format!("{}:{n}", if n <= 2 { near } else { far }),
            )
        })
        .collect();
    links.push(link(
        "trunk",
        &format!("{near}:{TRUNK}"),
        &format!("{far}:{TRUNK}"),
    ));
    let program = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../softswitch/pipeline/tests/programs/router.json"
    );
    let flows = |client, server| {
        workload(
            client,
            server,
            json!({"poisson": 1000.0}),
            json!({"uniform": [1, 100_000]}),
        )
    };
    json!({
        "seed": 1, "end": null, "programs": {"router": program},
        "switches": [router(near, [1, 2]), router(far, [3, 4])],
        "hosts": [host(1, "client", 9), host(2, "client", 9), host(3, "server", 9), host(4, "server", 9)],
        "links": links, "workload": [flows(1, 3), flows(2, 4), flows(1, 4)],
        "record": {"flows": true, "queues": 100_000, "loads": 100_000, "throughput": 100_000},
    })
}

/// Returns the link between the routers of a dumbbell.
pub fn trunk(scenario: &mut Value) -> &mut Value {
    &mut scenario["links"][4]
}

/// Output files of a run by name, and its summary.
pub struct Results {
    pub files: BTreeMap<String, String>,
    pub summary: Summary,
}

/// A line of flows.csv.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    pub id: u64,
    pub server: String,
    pub size: u64,
    pub start: u64,
    pub end: u64,
    pub retransmitted: u64,
}

impl Results {
    pub fn flows(&self) -> Vec<Flow> {
        let lines = self.files["flows.csv"].lines().skip(1);
        let flow = |line: &str| {
            let fields: Vec<_> = line.split(',').collect();
            let number = |at: usize| fields[at].parse().unwrap();
            Flow {
                id: number(0),
                server: fields[3].to_owned(),
                size: number(4),
                start: number(5),
                end: number(6),
                retransmitted: number(7),
            }
        };
        lines.map(flow).collect()
    }
}

pub fn run(scenario: &Value) -> Results {
    run_with(scenario, 1)
}

pub fn run_with(scenario: &Value, threads: usize) -> Results {
    let folder = tempfile::tempdir().unwrap();
    let scenario = Scenario::parse(&scenario.to_string()).unwrap();
    let summary = Simulation::new(&scenario, folder.path(), threads)
        .unwrap()
        .run(|_| {})
        .unwrap();
    let mut files: BTreeMap<_, _> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            (
                path.file_name().unwrap().to_str().unwrap().to_owned(),
                fs::read_to_string(path).unwrap(),
            )
        })
        .collect();
    files.insert(
        "summary".to_owned(),
        serde_json::to_string(&summary).unwrap(),
    );
    Results { files, summary }
}
