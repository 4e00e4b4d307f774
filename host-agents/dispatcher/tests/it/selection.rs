// SPDX-License-Identifier: Apache-2.0
//! Selection of sites and replicas: policies, regions, copies and failures.

use std::collections::BTreeMap;
use std::net::IpAddr;

use frontage_dispatcher::outcome::Outcome;
use frontage_first_flight::Version;
use frontage_first_flight::compose::whole;
use serde_json::json;

use crate::testbed::{CLIENT, Testbed, dcid, encapsulate, flight, ip, replica};

const SITE_2: &str = "2001:db8:102::1";
const SITE_3: &str = "2001:db8:103::1";
const FAR: &str = "[2001:db8:c5::9]:40000";

fn flight_from(origin: u8, client: &str, number: u32, name: &str) -> Vec<u8> {
    let datagram = whole(Version::V1, &dcid(number), name.as_bytes(), &[b"h3"]);
    encapsulate(origin, client, &datagram)
}

/// Counts the destinations of `n` flights.
fn count_destinations(testbed: &mut Testbed, n: u32, name: &str) -> BTreeMap<IpAddr, u32> {
    let mut counts = BTreeMap::new();
    for number in 0..n {
        for destination in testbed.destinations(&flight(number, name)) {
            *counts.entry(destination).or_default() += 1;
        }
    }
    counts
}

#[test]
fn region_of_the_client_selects_the_site() {
    let mut testbed = Testbed::with_replicas();
    let near = testbed.destinations(&flight_from(1, CLIENT, 1, "FILMS.example."));
    assert!([replica(11), replica(12)].contains(&near[0]));
    let packet = flight_from(1, FAR, 1, "films.example");
    assert_eq!(testbed.process(&packet), [(ip(SITE_2), packet)]);
}

#[test]
fn services_of_a_deployment_share_its_mapping() {
    let mut testbed = Testbed::with_replicas();
    testbed.table["services"][1]["deployment"] = json!(7);
    testbed.table["mapping"].as_array_mut().unwrap().pop();
    // The number of sites is each service's own redundancy.
    for (number, name) in [(1, "films.example"), (2, "copied.example")] {
        let destinations = testbed.destinations(&flight_from(1, FAR, number, name));
        assert_eq!(
            (destinations[0], destinations.len()),
            (ip(SITE_2), number as usize)
        );
    }
}

/// The other site has already selected this one.
#[test]
fn flight_from_another_site_is_not_steered_again() {
    let mut testbed = Testbed::with_replicas();
    let destinations = testbed.destinations(&flight_from(3, FAR, 1, "films.example"));
    assert!([replica(11), replica(12)].contains(&destinations[0]));
    assert_eq!(destinations.len(), 1);
    // Without a replica the flight is refused, but not if another site has a copy.
    let mut empty = Testbed::new();
    assert_eq!(
        empty
            .process(&flight_from(3, FAR, 1, "films.example"))
            .len(),
        1
    );
    empty.expect_count(Outcome::NoServer, 1);
    assert_eq!(empty.process(&flight_from(3, FAR, 1, "copied.example")), []);
    empty.expect_count(Outcome::NoServerForCopy, 1);
}

#[test]
fn site_without_replicas_is_replaced_by_the_next() {
    let mut testbed = Testbed::with_replicas();
    for sid in [11, 12] {
        testbed.heartbeat(sid, |beat| beat["accepting"] = json!(false));
    }
    assert_eq!(
        testbed.destinations(&flight(1, "films.example")),
        [ip(SITE_2)]
    );
    assert_eq!(
        testbed.destinations(&flight(2, "copied.example")),
        [ip(SITE_3), ip(SITE_2)]
    );
    // The replica returns, and then expires without heartbeats.
    testbed.heartbeat(11, |_| {});
    assert_eq!(
        testbed.destinations(&flight(3, "films.example")),
        [replica(11)]
    );
    testbed.advance(2);
    assert_eq!(
        testbed.destinations(&flight(4, "films.example")),
        [replica(11)]
    );
    testbed.advance(1);
    assert_eq!(
        testbed.destinations(&flight(5, "films.example")),
        [ip(SITE_2)]
    );
}

/// A replica that stops accepting keeps its flights; a removed replica does not.
#[test]
fn known_flight_stays_with_a_replica_that_stops_accepting() {
    let mut testbed = Testbed::new();
    testbed.heartbeat(11, |_| {});
    let known = flight(1, "films.example");
    assert_eq!(testbed.destinations(&known), [replica(11)]);
    testbed.heartbeat(11, |beat| beat["accepting"] = json!(false));
    testbed.heartbeat(12, |_| {});
    assert_eq!(testbed.destinations(&known), [replica(11)]);
    assert_eq!(
        testbed.destinations(&flight(2, "films.example")),
        [replica(12)]
    );
    testbed.replicas.remove(11);
    assert_eq!(testbed.destinations(&known), [replica(12)]);
}

#[test]
fn copies_go_to_the_best_sites() {
    let mut testbed = Testbed::with_replicas();
    let packet = flight(1, "copied.example");
    let out = testbed.process(&packet);
    assert!([replica(11), replica(12)].contains(&out[0].0));
    assert_eq!(out[1], (ip(SITE_3), packet.clone()));
    assert_eq!(out[0].1, packet);
    assert_eq!(out.len(), 2);
}

#[test]
fn flights_are_distributed_by_replica_weight() {
    let mut testbed = Testbed::new();
    testbed.heartbeat(11, |beat| beat["weight"] = json!(3));
    testbed.heartbeat(12, |_| {});
    let counts = count_destinations(&mut testbed, 2000, "films.example");
    let share = counts[&replica(11)];
    // 1500 expected; five standard deviations are 97.
    assert!((1403..=1597).contains(&share), "{share}");
}

/// A new replica takes flights from the others, but no flight moves between those.
#[test]
fn new_replica_moves_no_flight_between_the_others() {
    let mut two = Testbed::with_replicas();
    let mut three = Testbed::with_replicas();
    three.heartbeat(13, |_| {});
    for number in 0..300 {
        let packet = flight(number, "films.example");
        let (before, after) = (two.destinations(&packet), three.destinations(&packet));
        assert!(after == before || after == [replica(13)]);
    }
}

#[test]
fn load_policy_prefers_the_less_loaded_of_two() {
    let mut testbed = Testbed::new();
    testbed.table["services"][1]["redundancy"] = json!(1);
    testbed.heartbeat(11, |beat| beat["load"] = json!(0.9));
    testbed.heartbeat(12, |beat| beat["load"] = json!(0.1));
    let two = count_destinations(&mut testbed, 200, "copied.example");
    assert_eq!(two, BTreeMap::from([(replica(12), 200)]));
    // Of three, the most loaded is never selected, and the middle one unless it is drawn with the least loaded: a third.
    testbed.heartbeat(13, |beat| beat["load"] = json!(0.5));
    let mut testbed = Testbed {
        engine: Testbed::new().engine,
        ..testbed
    };
    let three = count_destinations(&mut testbed, 1000, "copied.example");
    assert_eq!(three.get(&replica(11)), None);
    assert!((260..=407).contains(&three[&replica(13)]), "{three:?}");
}

#[test]
fn random_policy_distributes_flights_over_sites() {
    let mut testbed = Testbed::with_replicas();
    testbed.table["services"][0]["policy"] = json!("random");
    let counts = count_destinations(&mut testbed, 1000, "films.example");
    let remote = counts[&ip(SITE_2)];
    assert!((421..=579).contains(&remote), "{counts:?}");
}
