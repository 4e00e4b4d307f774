// SPDX-License-Identifier: Apache-2.0
//! Invalid scenarios are rejected with the field and the reason.

mod common;

use common::dumbbell;
use frontage_simulator::{Scenario, Simulation};
use serde_json::{Value, json};

#[test]
fn invalid_field_is_rejected_with_its_name() {
    for (pointer, value, expected) in [
        (
            "/links/4/rate",
            json!(0),
            "links[4].rate: must be at least 1 bit/s",
        ),
        (
            "/links/4/speed",
            json!(1),
            "links[4].speed: unknown field `speed`",
        ),
        (
            "/links/0/a",
            json!("h1"),
            "links[0].a: invalid link end 'h1': use NODE:PORT",
        ),
        (
            "/links/0/a",
            json!("h7:0"),
            "links[0].a: unknown or used end h7:0",
        ),
        (
            "/links/0/loss_ppb",
            json!(2_000_000_000),
            "links[0].loss_ppb: 2000000000 is more than 1000000000",
        ),
        (
            "/links/0/name",
            json!("trunk"),
            "links: duplicate name 'trunk'",
        ),
        (
            "/hosts/0/tcp/model",
            json!("ns3"),
            "hosts[0].tcp.model: unknown variant `ns3`",
        ),
        (
            "/hosts/2/server/rank",
            json!("size"),
            "hosts[2].server.rank: unknown variant `size`",
        ),
        (
            "/links/0/discipline",
            json!("lifo"),
            "links[0].discipline: unknown variant `lifo`",
        ),
        (
            "/links/0/discipline",
            json!({"aifo": {"limits": [], "sample": 15}}),
            "links[0].discipline.aifo.limits: empty list: give a limit for each number of smaller ranks",
        ),
        (
            "/links/0/discipline",
            json!({"aifo": {"limits": [20], "sample": 0}}),
            "links[0].discipline.aifo.sample: must be at least 1",
        ),
        (
            "/hosts/1/link",
            json!("l1"),
            "links[1].a: h2:0 is on link 'l1'",
        ),
        (
            "/hosts/1/mac",
            json!("02:00"),
            "hosts[1].mac: invalid MAC address '02:00'",
        ),
        (
            "/hosts/1/name",
            json!("h1"),
            "hosts[1].name: duplicate name 'h1'",
        ),
        (
            "/hosts/2/server/sid",
            json!(5000),
            "hosts[2].server.sid: 5000 does not fit",
        ),
        ("/hosts/2/tcp/mss", json!(0), "hosts[2].tcp.mss: must be"),
        (
            "/hosts/2/tcp/initial_threshold",
            json!(1),
            "hosts[2].tcp.initial_threshold: must be at least 2",
        ),
        (
            "/hosts/2/tcp/congestion",
            json!("bbr"),
            "hosts[2].tcp.congestion: unknown variant `bbr`",
        ),
        (
            "/switches/0/program",
            json!("other"),
            "switches[0].program: unknown program 'other'",
        ),
        (
            "/switches/0/cpu_port",
            json!(100),
            "switches[0].cpu_port: port 100 is also in ports",
        ),
        (
            "/workload/0/client",
            json!("h5"),
            "workload[0].client: unknown host 'h5'",
        ),
        (
            "/workload/0/burst",
            json!(0),
            "workload[0].burst: must be at least 1",
        ),
        (
            "/workload/0/servers",
            json!([]),
            "workload[0].servers: empty list",
        ),
        (
            "/workload/0/servers/0",
            json!("10.0.0.3"),
            "workload[0].servers[0]: invalid socket address",
        ),
        (
            "/workload/0/servers/0",
            json!("[2001:db8::1]:80"),
            "workload[0].servers[0]: client 'h1' has no address of the family",
        ),
        (
            "/workload/0/arrivals",
            json!({"poisson": 0.0}),
            "workload[0].arrivals.poisson: 0 must be a positive",
        ),
        (
            "/workload/0/arrivals",
            json!({"times": [2, 1]}),
            "workload[0].arrivals.times: must be in ascending order",
        ),
        (
            "/workload/0/stop",
            json!(null),
            "workload[0].stop: missing: a Poisson process needs stop",
        ),
        (
            "/workload/0/sizes",
            json!({"cdf": [[0, 0], [9, 0.9]]}),
            "workload[0].sizes.cdf: bytes and probabilities",
        ),
        (
            "/record/queues",
            json!(0),
            "record.queues: must be more than 0 ns",
        ),
        (
            "/hosts/2/server/cookie",
            json!(true),
            "hosts[2].server.key: missing: QUIC's cookies need a key",
        ),
        (
            "/hosts/2/quic/max_datagram",
            json!(100),
            "hosts[2].quic.max_datagram: must be 1200 to 65527 bytes",
        ),
        (
            "/workload/0/protocol",
            json!("sctp"),
            "workload[0].protocol: unknown variant `sctp`",
        ),
        (
            "/workload/0/label",
            json!("a,b"),
            "workload[0].label: 'a,b' must not contain commas",
        ),
        ("/workload/0/rpt", json!([]), "workload[0].rpt: empty list"),
        (
            "/workload/0/rpt",
            json!([[5, 80], [5, 8]]),
            "workload[0].rpt: times must ascend",
        ),
        (
            "/workload/0/rpt",
            json!([[5, -8]]),
            "workload[0].rpt[0][1]: invalid value",
        ),
        ("/seed", json!(-1), "seed: invalid value"),
    ] {
        let mut scenario = dumbbell();
        set(&mut scenario, pointer, value.clone());
        let error = format!("{:#}", Scenario::parse(&scenario.to_string()).unwrap_err());
        assert!(error.contains(expected), "{pointer} = {value}: {error}");
    }
}

#[test]
fn quic_workload_of_client_without_quic_is_rejected() {
    let mut scenario = dumbbell();
    set(&mut scenario, "/workload/0/protocol", json!("quic"));
    set(&mut scenario, "/hosts/0/quic", json!(null));
    let error = Scenario::parse(&scenario.to_string())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("workload[0].protocol: client 'h1' has no quic"),
        "{error}"
    );
}

#[test]
fn invalid_program_or_entry_is_rejected_with_its_position() {
    for (pointer, value, expected) in [
        (
            "/programs/router",
            json!("/nowhere.json"),
            "programs.router: /nowhere.json: No such file",
        ),
        (
            "/switches/1/entries/0/table",
            json!("I.acl"),
            "switch 'far', entries[0] of I.acl: unknown table: use",
        ),
        (
            "/switches/1/entries/0/action",
            json!("fly"),
            "entries[0] of I.next_hops: unknown action 'fly'",
        ),
        (
            "/switches/1/entries/0/params/0",
            json!("g"),
            "invalid hexadecimal number 'g'",
        ),
        (
            "/switches/1/entries/2",
            dumbbell()["switches"][1]["entries"][0].clone(),
            "entries[2] of I.next_hops: ",
        ),
    ] {
        let mut scenario = dumbbell();
        set(&mut scenario, pointer, value.clone());
        let scenario = Scenario::parse(&scenario.to_string()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let error = format!(
            "{:#}",
            Simulation::new(&scenario, folder.path(), 1).unwrap_err()
        );
        assert!(error.contains(expected), "{pointer} = {value}: {error}");
    }
}

#[test]
fn example_scenario_is_accepted() {
    Scenario::parse(include_str!("../examples/long_flows.json")).unwrap();
}

fn set(scenario: &mut Value, pointer: &str, value: Value) {
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    match scenario.pointer_mut(parent).unwrap() {
        Value::Array(list) => list[field.parse::<usize>().unwrap()] = value,
        object => object[field] = value,
    }
}
