// SPDX-License-Identifier: Apache-2.0
//! Complete runs: they are reproducible and account for every packet.

mod common;

use common::{MILLISECOND, Results, dumbbell, run, run_with, trunk};
use serde_json::{Value, json};

/// Returns a dumbbell with losses and queue overflows.
fn lossy_dumbbell() -> Value {
    let mut scenario = dumbbell();
    let trunk = trunk(&mut scenario);
    trunk["loss_ppb"] = json!(10_000_000);
    trunk["queue_packets"] = json!(12);
    scenario
}

fn check_conservation(results: &Results) {
    let summary = &results.summary;
    let (p, f) = (summary.packets, summary.flows);
    assert_eq!(
        p.sent + p.copied,
        p.delivered + p.dropped + p.to_controller + p.in_flight,
        "{p:?}"
    );
    assert_eq!(f.begun, f.ended + f.failed + f.active, "{f:?}");
    assert_eq!(f.ended, results.flows().len() as u64);
}

/// Returns the same dumbbell with QUIC.
fn lossy_quic_dumbbell() -> Value {
    let mut scenario = lossy_dumbbell();
    for workload in scenario["workload"].as_array_mut().unwrap() {
        workload["protocol"] = json!("quic");
    }
    scenario
}

#[test]
fn same_scenario_gives_identical_output() {
    let first = run(&lossy_dumbbell());
    assert_eq!(run(&lossy_dumbbell()).files, first.files);
    assert_eq!(
        run(&lossy_quic_dumbbell()).files,
        run(&lossy_quic_dumbbell()).files
    );
    assert!(
        first
            .files
            .values()
            .all(|text| text.lines().count() > 100 || text.starts_with('{'))
    );
    let mut other = lossy_dumbbell();
    other["seed"] = json!(2);
    assert_ne!(run(&other).files["flows.csv"], first.files["flows.csv"]);
}

#[test]
fn output_does_not_depend_on_the_number_of_threads() {
    let mut persistent = lossy_dumbbell();
    for workload in persistent["workload"].as_array_mut().unwrap() {
        workload["connection"] = json!("persistent");
    }
    let mut without_delay = lossy_dumbbell();
    for link in &mut without_delay["links"].as_array_mut().unwrap()[..3] {
        link["delay"] = json!(0);
    }
    for mut scenario in [
        lossy_dumbbell(),
        lossy_quic_dumbbell(),
        persistent,
        without_delay,
    ] {
        scenario["workload"][0]["stop"] = json!(10 * MILLISECOND);
        scenario["end"] = json!(20 * MILLISECOND);
        let alone = run(&scenario);
        check_conservation(&alone);
        assert!(alone.summary.flows.ended > 20, "{:?}", alone.summary.flows);
        for threads in [2, 100] {
            assert_eq!(run_with(&scenario, threads).files, alone.files);
        }
    }
}

#[test]
fn every_packet_is_delivered_dropped_or_in_flight() {
    check_run(lossy_dumbbell());
}

#[test]
fn every_quic_packet_is_delivered_dropped_or_in_flight() {
    check_run(lossy_quic_dumbbell());
}

fn check_run(scenario: Value) {
    let complete = run(&scenario);
    check_conservation(&complete);
    assert_eq!(complete.summary.flows.active, 0);
    assert!(
        complete.summary.flows.begun > 100,
        "{:?}",
        complete.summary.flows
    );
    assert_eq!(complete.summary.flows.failed, 0);
    let tail_drops = complete.summary.switches["far"].dropped.tail_drop;
    let lost: u64 = complete.summary.lost.values().sum();
    assert!(
        tail_drops > 0 && lost > 0,
        "{tail_drops} dropped, {lost} lost"
    );

    let mut cut = scenario;
    cut["end"] = json!(20 * MILLISECOND);
    let cut = run(&cut);
    check_conservation(&cut);
    assert_eq!(cut.summary.end, 20 * MILLISECOND);
    assert!(cut.summary.packets.in_flight > 0 && cut.summary.flows.active > 0);
}

#[test]
fn losses_follow_the_configured_rate_and_the_seed() {
    let lost = |seed: u64| {
        let mut scenario = dumbbell();
        scenario["seed"] = json!(seed);
        trunk(&mut scenario)["loss_ppb"] = json!(50_000_000);
        let results = run(&scenario);
        let lost: u64 = results.summary.lost.values().sum();
        // Every sent frame crosses three links, or is lost on the second.
        let sent = results.summary.packets.sent;
        (lost, lost as f64 / sent as f64)
    };
    let (count, share) = lost(7);
    // About 10,000 frames at 5 %: a standard deviation of 0.2 %.
    assert!((0.04..0.06).contains(&share), "{share} of the frames lost");
    assert_eq!(lost(7).0, count);
    assert_ne!(lost(8).0, count);
}

#[test]
fn every_flow_completes() {
    let results = run(&dumbbell());
    let mut flows = results.flows();
    flows.sort_by_key(|flow| flow.id);
    assert!(flows.iter().map(|flow| flow.id).eq(1..=flows.len() as u64));
    let to_h4 = flows.iter().filter(|flow| flow.server == "h4").count();
    assert!(to_h4 > flows.len() / 2 && to_h4 < flows.len());
    // At least four frames in sequence, over three links of 10 us each.
    assert!(flows.iter().all(|flow| flow.end - flow.start > 4 * 30_000));
    assert!(results.files["loads.csv"].lines().count() > 500);
}

#[test]
fn host_can_be_client_and_server() {
    let mut scenario = dumbbell();
    for host in 0..4 {
        scenario["hosts"][host]["server"] = scenario["hosts"][3]["server"].clone();
        scenario["hosts"][host]["server"]["sid"] = json!(host);
    }
    let workload = scenario["workload"].as_array_mut().unwrap();
    workload.truncate(2);
    workload[0]["servers"] = json!(["10.0.0.2:80", "10.0.0.3:80", "10.0.0.4:80"]);
    workload[1]["servers"] = json!(["10.0.0.1:80", "10.0.0.3:80", "10.0.0.4:80"]);
    let results = run(&scenario);
    check_conservation(&results);
    let flows = results.flows();
    assert_eq!(results.summary.flows.ended, results.summary.flows.begun);
    for server in ["h1", "h2", "h3", "h4"] {
        assert!(flows.iter().any(|flow| flow.server == server), "{server}");
    }
}

#[test]
fn long_response_leaves_n_ff_before_it_ends() {
    for protocol in ["tcp", "quic"] {
        let mut scenario = dumbbell();
        let workload = scenario["workload"].as_array_mut().unwrap();
        workload.truncate(1);
        workload[0]["arrivals"] = json!({"times": [0]});
        workload[0]["sizes"] = json!({"fixed": 1_000_000});
        workload[0]["protocol"] = json!(protocol);
        let results = run(&scenario);
        let loads = |expected: &str| {
            let mut lines = results.files["loads.csv"].lines();
            lines.any(|line| line.ends_with(&format!(",h3,{expected}")))
        };
        assert!(loads("1,1") && loads("1,0"), "{protocol}");
    }
}

/// With an unmasked dynamic cookie, TSval may decrease, and a receiver drops such segments (RFC 7323, section 5.3).
#[test]
fn flow_without_edge_switch_ends_only_if_the_client_masks_cookies() {
    let ended = |masks: bool| {
        let mut scenario = dumbbell();
        scenario["end"] = json!(200 * MILLISECOND);
        scenario["hosts"][2]["server"]["cookie"] = json!(true);
        scenario["hosts"][2]["quic"] = json!(null);
        scenario["hosts"][0]["masks"] = json!(masks);
        let workload = scenario["workload"].as_array_mut().unwrap();
        workload.truncate(1);
        workload[0]["arrivals"] = json!({"times": [0]});
        workload[0]["sizes"] = json!({"fixed": 10_000_000});
        run(&scenario).summary.flows.ended
    };
    assert_eq!(ended(true), 1);
    assert_eq!(ended(false), 0);
}

#[test]
fn persistent_connection_is_reused() {
    let mut scenario = dumbbell();
    scenario["workload"].as_array_mut().unwrap().truncate(1);
    let workload = &mut scenario["workload"][0];
    workload["arrivals"] = json!({"times": [0, MILLISECOND, 2 * MILLISECOND]});
    workload["sizes"] = json!({"fixed": 5000});
    workload["connection"] = json!("persistent");
    let results = run(&scenario);
    let durations: Vec<_> = results
        .flows()
        .iter()
        .map(|flow| flow.end - flow.start)
        .collect();
    assert_eq!(durations.len(), 3);
    // Only the first flow waits for a handshake: a SYN and a SYN-ACK over three links of 10 us.
    assert!(durations[0] > durations[1] + 2 * 30_000, "{durations:?}");
    assert_eq!(durations[1], durations[2]);
}

/// CloudCookie, figure 11.
#[test]
fn bandwidth_goes_to_the_lowest_configured_rpt() {
    const TURN: u64 = 100 * MILLISECOND;
    let mut scenario = dumbbell();
    scenario["end"] = json!(4 * TURN);
    scenario["record"]["throughput"] = json!(TURN);
    let trunk = trunk(&mut scenario);
    trunk["discipline"] = json!("pifo");
    trunk["rate"] = json!(100_000_000);
    let workload = scenario["workload"].as_array_mut().unwrap();
    workload.truncate(2);
    for (workload, rpt) in workload.iter_mut().zip([[1000, 8], [80, 80]]) {
        workload["arrivals"] = json!({"times": [0]});
        workload["sizes"] = json!({"fixed": 1_000_000_000});
        workload["rpt"] = json!([[0, rpt[0]], [TURN, rpt[1]]]);
    }
    let results = run(&scenario);
    let received: Vec<f64> = results.files["throughput.csv"]
        .lines()
        .skip(1)
        .map(|line| line.rsplit(',').next().unwrap().parse().unwrap())
        .collect();
    // A line per flow and turn. The flow that is starved first must recover from its timeouts.
    let in_turn =
        |turn: usize| [0, 1].map(|flow| received[2 * turn + flow] - received[2 * turn - 2 + flow]);
    assert!(received[1] > 4.0 * received[0], "{received:?}");
    let [one, two] = in_turn(3);
    assert!(one > 4.0 * two, "{received:?}");
}

#[test]
fn ideal_scheduler_serves_the_short_flow_first() {
    let short = |discipline: &str| {
        let mut scenario = dumbbell();
        let trunk = trunk(&mut scenario);
        trunk["discipline"] = json!(discipline);
        trunk["rate"] = json!(100_000_000);
        let workload = scenario["workload"].as_array_mut().unwrap();
        workload.truncate(2);
        workload[0]["arrivals"] = json!({"times": [0]});
        workload[0]["sizes"] = json!({"fixed": 5_000_000});
        workload[1]["arrivals"] = json!({"times": [40 * MILLISECOND]});
        workload[1]["sizes"] = json!({"fixed": 10_000});
        let results = run(&scenario);
        check_conservation(&results);
        let flow = results
            .flows()
            .into_iter()
            .find(|flow| flow.size == 10_000)
            .unwrap();
        flow.end - flow.start
    };
    let (fifo, pifo, sp_pifo) = (short("fifo"), short("pifo"), short("sp-pifo"));
    // 100 queued full frames take 12 ms. The flow's own eight frames, each after the rest of another one, take 2 ms.
    assert!(
        pifo.max(sp_pifo) < 3 * MILLISECOND && fifo > 2 * pifo.max(sp_pifo),
        "FIFO {fifo} ns, PIFO {pifo} ns, SP-PIFO {sp_pifo} ns"
    );
}
