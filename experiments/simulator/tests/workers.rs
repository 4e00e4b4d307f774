// SPDX-License-Identifier: Apache-2.0
//! Worker packets: a program clones packets at egress and recirculates them, as schedulers do to report queue depths.

mod common;

use std::fs;

use common::{line, run};
use serde_json::json;
use softswitch_p4c::{Options, compile, diag};

/// Number of recirculations of each worker.
const LAPS: u64 = 3;

#[test]
fn worker_packets_circulate_and_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("worker.json");
    let (sources, diags) = (diag::SourceMap::default(), diag::Diagnostics::default());
    let text = include_str!("programs/worker.p4").to_owned();
    let output = compile("worker.p4", text, &Options::default(), &sources, &diags).unwrap();
    fs::write(&program, output.json.unwrap().to_string()).unwrap();

    let mut scenario = line(100_000);
    let plain = run(&scenario);
    scenario["programs"] = json!({"worker": program});
    scenario["switches"] = json!([{
        "name": "s", "program": "worker", "ports": [{"number": 1, "link": "l1"}, {"number": 2, "link": "l2"}], "entries": [],
        "packets_out": [], "clone_sessions": [{"id": 1, "replicas": [{"port": 510, "instance": 1}]}], "cpu_port": 510,
    }]);
    let mut near = scenario["links"][0].clone();
    near["name"] = json!("l1");
    near["b"] = json!("s:1");
    scenario["links"][0]["a"] = json!("s:2");
    scenario["links"][0]["b"] = json!("h2:0");
    scenario["links"].as_array_mut().unwrap().push(near);
    scenario["hosts"][0]["link"] = json!("l1");
    let results = run(&scenario);

    let (packets, switch) = (results.summary.packets, results.summary.switches["s"]);
    assert_eq!(results.flows().len(), 1);
    assert_eq!(
        packets.sent, plain.summary.packets.sent,
        "hosts are not affected"
    );
    // The last acknowledgment may be in flight when the run ends.
    let forwarded = switch.received;
    assert_eq!(
        (switch.copied, switch.dropped.ingress),
        (forwarded, forwarded)
    );
    assert_eq!(switch.recirculated, LAPS * forwarded);
    assert_eq!(packets.p4, (1 + LAPS) * forwarded);
    assert_eq!(
        packets.sent + packets.copied,
        packets.delivered + packets.dropped + packets.in_flight
    );
    let laps = &results.summary.counters["s"]["I.laps"];
    assert!((1..=3).all(|lap| laps[&lap] == forwarded), "{laps:?}");
}
