// SPDX-License-Identifier: Apache-2.0
//! Whole runs: the same bytes twice, and nothing lost without a count.

mod common;

use common::{MILLISECOND, Results, dumbbell, run, trunk};
use serde_json::{Value, json};

/// A dumbbell in which much goes wrong: frames are lost, queues run over.
fn rough() -> Value {
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

/// The same over QUIC.
fn rough_quic() -> Value {
    let mut scenario = rough();
    for workload in scenario["workload"].as_array_mut().unwrap() {
        workload["protocol"] = json!("quic");
    }
    scenario
}

#[test]
fn same_scenario_gives_identical_output() {
    let first = run(&rough());
    assert_eq!(run(&rough()).files, first.files);
    assert_eq!(run(&rough_quic()).files, run(&rough_quic()).files);
    assert!(
        first
            .files
            .values()
            .all(|text| text.lines().count() > 100 || text.starts_with('{'))
    );
    let mut other = rough();
    other["seed"] = json!(2);
    assert_ne!(run(&other).files["flows.csv"], first.files["flows.csv"]);
}

#[test]
fn every_packet_is_delivered_dropped_or_in_flight() {
    check_ends(rough());
}

#[test]
fn every_quic_packet_is_delivered_dropped_or_in_flight() {
    check_ends(rough_quic());
}

fn check_ends(scenario: Value) {
    let whole = run(&scenario);
    check_conservation(&whole);
    assert_eq!(whole.summary.flows.active, 0);
    assert!(whole.summary.flows.begun > 100, "{:?}", whole.summary.flows);
    assert_eq!(whole.summary.flows.failed, 0);
    let full = whole.summary.switches["far"].dropped.tail_drop;
    let lost: u64 = whole.summary.lost.values().sum();
    assert!(full > 0 && lost > 0, "{full} dropped, {lost} lost");

    let mut cut = scenario;
    cut["end"] = json!(20 * MILLISECOND);
    let cut = run(&cut);
    check_conservation(&cut);
    assert_eq!(cut.summary.end, 20 * MILLISECOND);
    assert!(cut.summary.packets.in_flight > 0 && cut.summary.flows.active > 0);
}

#[test]
fn frames_are_lost_at_the_configured_rate_by_the_seed() {
    let lost = |seed: u64| {
        let mut scenario = dumbbell();
        scenario["seed"] = json!(seed);
        trunk(&mut scenario)["loss_ppb"] = json!(50_000_000);
        let results = run(&scenario);
        let lost: u64 = results.summary.lost.values().sum();
        // Everything that was sent crosses three links, or is lost on the second.
        let crossed = results.summary.packets.sent;
        (lost, lost as f64 / crossed as f64)
    };
    let (count, share) = lost(7);
    // Some 10,000 frames at 5 %: a standard deviation of 0.2 %.
    assert!((0.04..0.06).contains(&share), "{share} of the frames lost");
    assert_eq!(lost(7).0, count);
    assert_ne!(lost(8).0, count);
}

#[test]
fn every_flow_is_answered_completely_by_its_server() {
    let results = run(&dumbbell());
    let mut flows = results.flows();
    flows.sort_by_key(|flow| flow.id);
    assert!(flows.iter().map(|flow| flow.id).eq(1..=flows.len() as u64));
    let to_h4 = flows.iter().filter(|flow| flow.server == "h4").count();
    assert!(to_h4 > flows.len() / 2 && to_h4 < flows.len());
    // Four frames at least, over three links of 10 us each.
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
fn long_response_leaves_n_ff_before_its_end() {
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

/// An unmasked dynamic cookie makes TSval decrease at times, and a receiver drops such segments (RFC 7323, section 5.3).
#[test]
fn client_in_the_data_center_removes_cookies_itself() {
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
    let taken: Vec<_> = results
        .flows()
        .iter()
        .map(|flow| flow.end - flow.start)
        .collect();
    assert_eq!(taken.len(), 3);
    // The first one alone waits for a handshake: a SYN and a SYN-ACK over three links of 10 us.
    assert!(taken[0] > taken[1] + 2 * 30_000, "{taken:?}");
    assert_eq!(taken[1], taken[2]);
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
    // A line a flow and turn. The one that begins with nothing has to come out of its time-outs first.
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
    // 100 full frames before it take 12 ms; its own eight frames and the rest of one before each take 2.
    assert!(
        pifo.max(sp_pifo) < 3 * MILLISECOND && fifo > 2 * pifo.max(sp_pifo),
        "FIFO {fifo} ns, PIFO {pifo} ns, SP-PIFO {sp_pifo} ns"
    );
}
