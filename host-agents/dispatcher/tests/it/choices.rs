//! Sites and replicas: policies, regions, copies, and who falls out.

use std::collections::BTreeMap;
use std::net::IpAddr;

use frontage_dispatcher::counts::Outcome;
use frontage_first_flight::Version;
use frontage_first_flight::compose::whole;
use serde_json::json;

use crate::world::{CLIENT, World, dcid, flight, ip, replica, tunnelled};

const SITE_2: &str = "2001:db8:102::1";
const SITE_3: &str = "2001:db8:103::1";
const FAR: &str = "[2001:db8:c5::9]:40000";

fn from(origin: u8, client: &str, number: u32, name: &str) -> Vec<u8> {
    let datagram = whole(Version::V1, &dcid(number), name.as_bytes(), &[b"h3"]);
    tunnelled(origin, client, &datagram)
}

/// How many of `n` flights go where.
fn spread(world: &mut World, n: u32, name: &str) -> BTreeMap<IpAddr, u32> {
    let mut spread = BTreeMap::new();
    for number in 0..n {
        for end in world.ends(&flight(number, name)) {
            *spread.entry(end).or_default() += 1;
        }
    }
    spread
}

#[test]
fn the_clients_region_decides_between_sites() {
    let mut world = World::served();
    let near = world.ends(&from(1, CLIENT, 1, "FILMS.example."));
    assert!([replica(11), replica(12)].contains(&near[0]));
    let packet = from(1, FAR, 1, "films.example");
    assert_eq!(world.take(&packet), [(ip(SITE_2), packet)]);
}

#[test]
fn services_of_one_deployment_go_alike() {
    let mut world = World::served();
    world.table["services"][1]["deployment"] = json!(7);
    world.table["mapping"].as_array_mut().unwrap().pop();
    // As many sites as the service's own redundancy says.
    for (number, name) in [(1, "films.example"), (2, "copied.example")] {
        let ends = world.ends(&from(1, FAR, number, name));
        assert_eq!((ends[0], ends.len()), (ip(SITE_2), number as usize));
    }
}

/// What came from another site is its choice already.
#[test]
fn another_sites_flights_stay_here() {
    let mut world = World::served();
    let ends = world.ends(&from(3, FAR, 1, "films.example"));
    assert!([replica(11), replica(12)].contains(&ends[0]));
    assert_eq!(ends.len(), 1);
    // Without a replica the client is told, but not if there is another copy of its flight.
    let mut empty = World::new();
    assert_eq!(empty.take(&from(3, FAR, 1, "films.example")).len(), 1);
    empty.expect(Outcome::NoServer, 1);
    assert_eq!(empty.take(&from(3, FAR, 1, "copied.example")), []);
    empty.expect(Outcome::NoServerForCopy, 1);
}

#[test]
fn a_site_without_replicas_falls_to_the_next() {
    let mut world = World::served();
    for sid in [11, 12] {
        world.beat(sid, |beat| beat["accepting"] = json!(false));
    }
    assert_eq!(world.ends(&flight(1, "films.example")), [ip(SITE_2)]);
    assert_eq!(
        world.ends(&flight(2, "copied.example")),
        [ip(SITE_3), ip(SITE_2)]
    );
    // Back, and gone for want of heartbeats.
    world.beat(11, |_| {});
    assert_eq!(world.ends(&flight(3, "films.example")), [replica(11)]);
    world.pass(2);
    assert_eq!(world.ends(&flight(4, "films.example")), [replica(11)]);
    world.pass(1);
    assert_eq!(world.ends(&flight(5, "films.example")), [ip(SITE_2)]);
}

/// A replica that takes itself out keeps what it has begun; one that is gone does not.
#[test]
fn begun_flights_stay_with_a_full_replica() {
    let mut world = World::new();
    world.beat(11, |_| {});
    let begun = flight(1, "films.example");
    assert_eq!(world.ends(&begun), [replica(11)]);
    world.beat(11, |beat| beat["accepting"] = json!(false));
    world.beat(12, |_| {});
    assert_eq!(world.ends(&begun), [replica(11)]);
    assert_eq!(world.ends(&flight(2, "films.example")), [replica(12)]);
    world.replicas.remove(11);
    assert_eq!(world.ends(&begun), [replica(12)]);
}

#[test]
fn copies_go_to_the_best_sites() {
    let mut world = World::served();
    let packet = flight(1, "copied.example");
    let out = world.take(&packet);
    assert!([replica(11), replica(12)].contains(&out[0].0));
    assert_eq!(out[1], (ip(SITE_3), packet.clone()));
    assert_eq!(out[0].1, packet);
    assert_eq!(out.len(), 2);
}

#[test]
fn replicas_share_by_weight() {
    let mut world = World::new();
    world.beat(11, |beat| beat["weight"] = json!(3));
    world.beat(12, |_| {});
    let spread = spread(&mut world, 2000, "films.example");
    let share = spread[&replica(11)];
    // 1500 expected; five standard deviations are 97.
    assert!((1403..=1597).contains(&share), "{share}");
}

/// One that joins takes flights from the others, and moves none between them.
#[test]
fn a_replica_that_joins_moves_nothing_else() {
    let mut two = World::served();
    let mut three = World::served();
    three.beat(13, |_| {});
    for number in 0..300 {
        let packet = flight(number, "films.example");
        let (before, after) = (two.ends(&packet), three.ends(&packet));
        assert!(after == before || after == [replica(13)]);
    }
}

#[test]
fn load_prefers_the_less_loaded_of_two() {
    let mut world = World::new();
    world.table["services"][1]["redundancy"] = json!(1);
    world.beat(11, |beat| beat["load"] = json!(0.9));
    world.beat(12, |beat| beat["load"] = json!(0.1));
    let two = spread(&mut world, 200, "copied.example");
    assert_eq!(two, BTreeMap::from([(replica(12), 200)]));
    // Of three the worst never, the middle when it is not beside the best: a third.
    world.beat(13, |beat| beat["load"] = json!(0.5));
    let mut world = World {
        engine: World::new().engine,
        ..world
    };
    let three = spread(&mut world, 1000, "copied.example");
    assert_eq!(three.get(&replica(11)), None);
    assert!((260..=407).contains(&three[&replica(13)]), "{three:?}");
}

#[test]
fn random_spreads_over_the_sites() {
    let mut world = World::served();
    world.table["services"][0]["policy"] = json!("random");
    let spread = spread(&mut world, 1000, "films.example");
    let there = spread[&ip(SITE_2)];
    assert!((421..=579).contains(&there), "{spread:?}");
}
