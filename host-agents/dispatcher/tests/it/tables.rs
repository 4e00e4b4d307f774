//! The controller's tables and the replicas' heartbeats: what is wrong is refused, with nothing changed.

use std::sync::Arc;
use std::time::Instant;

use frontage_dispatcher::control::{Control, Refused};
use frontage_dispatcher::message::{Difference, Whole};
use frontage_dispatcher::replicas::Replicas;
use frontage_dispatcher::worker::Views;
use serde_json::{Value, from_value, json};

use crate::world::{OWN, heartbeat, ip, table};

fn control() -> Control {
    Control::new(ip(OWN), vec![], Arc::new(Views::default()))
}

fn replace(control: &Control, table: Value) -> Result<Value, String> {
    let whole: Whole = from_value(table).map_err(|error| error.to_string())?;
    control
        .replace(whole)
        .map(|sizes| serde_json::to_value(sizes).unwrap())
}

fn change(control: &Control, difference: Value) -> Result<Value, Refused> {
    let difference: Difference = from_value(difference).unwrap();
    control
        .change(difference)
        .map(|sizes| serde_json::to_value(sizes).unwrap())
}

const SIZES: fn(u64) -> Value = |version| json!({"version": version, "site": 1, "sites": 3, "services": 2, "deployments": 2, "clients": 1, "mapping": 3});

#[test]
fn a_table_that_contradicts_itself_is_refused() {
    let control = control();
    assert_eq!(replace(&control, table()), Ok(SIZES(7)));
    type Wrong = (fn(&mut Value), &'static str);
    let wrong: [Wrong; 10] = [
        (
            |t| t["mapping"][0]["sites"] = json!([2, 9]),
            "mapping: deployment 7, sites [2, 9]: site 9 is not among the sites",
        ),
        (
            |t| t["mapping"][0]["sites"] = json!([2, 2]),
            "mapping: deployment 7, sites [2, 2]: site 2 is there twice",
        ),
        (
            |t| t["mapping"][0]["sites"] = json!([]),
            "mapping: deployment 7, sites []: there is none; name one",
        ),
        (
            |t| t["mapping"][0]["deployment"] = json!(9),
            "mapping: deployment 9: no service has it; add one",
        ),
        (
            |t| t["services"][0]["redundancy"] = json!(5),
            "services: films.example: redundancy is 5; use 1 to 4",
        ),
        (
            |t| t["services"][1]["name"] = json!("FILMS.example"),
            "services: FILMS.example has two ids, 3 and 4; remove one",
        ),
        (
            |t| t["services"][1]["id"] = json!(3),
            "services: 3 is the id of films.example and of another",
        ),
        (
            |t| t["sites"][1]["vtep"] = json!("192.0.2.1"),
            "sites: 2's vtep 192.0.2.1 is of another family",
        ),
        (
            |t| t["clients"][0]["prefix"] = json!("2001:db8::1/32"),
            "is no prefix; write",
        ),
        (|t| t["mappings"] = json!([]), "unknown field `mappings`"),
    ];
    for (damage, expected) in wrong {
        let mut table = table();
        table["version"] = json!(8);
        damage(&mut table);
        let problem = replace(&control, table).unwrap_err();
        assert!(problem.contains(expected), "{problem}: {expected}");
    }
    assert_eq!(serde_json::to_value(control.sizes()).unwrap(), SIZES(7));
}

#[test]
fn differences_apply_to_their_version() {
    let control = control();
    let nothing = json!({"from": 7, "version": 8});
    assert_eq!(
        change(&control, nothing.clone()),
        Err(Refused::Version(None))
    );
    replace(&control, table()).unwrap();
    assert_eq!(change(&control, nothing.clone()), Ok(SIZES(8)));
    assert_eq!(change(&control, nothing), Err(Refused::Version(Some(8))));
    let more = json!({
        "from": 8, "version": 9,
        "clients": [{"prefix": "198.51.100.0/24", "region": 5}],
        "mapping": [{"deployment": 7, "sites": [3], "regions": [5, 6]}],
        "remove": {
            "clients": ["2001:db8:c5::/48"], "mapping": [{"deployment": 8, "regions": [0]}], "services": [4],
        },
    });
    let mut sizes = SIZES(9);
    (sizes["services"], sizes["deployments"]) = (json!(1), json!(1));
    assert_eq!(change(&control, more), Ok(sizes.clone()));
    // A service whose deployment is still mapped, and things that are not there.
    for remove in [
        json!({"services": [3]}),
        json!({"clients": ["::/0"]}),
        json!({"mapping": [{"deployment": 7, "regions": [1]}]}),
    ] {
        let difference = json!({"from": 9, "version": 10, "remove": remove});
        assert!(matches!(
            change(&control, difference),
            Err(Refused::Wrong(_))
        ));
    }
    assert_eq!(serde_json::to_value(control.sizes()).unwrap(), sizes);
}

/// Nothing of the mapping is said again for a service that moves to where others are.
#[test]
fn a_service_moves_to_another_deployment() {
    let control = control();
    replace(&control, table()).unwrap();
    let moved = json!({
        "from": 7, "version": 8,
        "services": [{"name": "copied.example", "id": 4, "deployment": 7, "alpn": ["h3"], "policy": "load"}],
    });
    let left = change(&control, moved.clone()).unwrap_err();
    assert!(
        matches!(left, Refused::Wrong(problem) if problem.starts_with("mapping: deployment 8: no service has it"))
    );
    let mut whole = moved;
    whole["remove"] = json!({"mapping": [{"deployment": 8, "regions": [0]}]});
    let mut sizes = SIZES(8);
    (sizes["deployments"], sizes["mapping"]) = (json!(1), json!(2));
    assert_eq!(change(&control, whole), Ok(sizes));
}

#[test]
fn services_may_take_each_others_names() {
    let control = control();
    replace(&control, table()).unwrap();
    let services: Vec<_> = [(3, "copied.example"), (4, "films.example")]
        .map(|(id, name)| json!({"name": name, "id": id, "deployment": id + 4, "alpn": ["h3"], "policy": "load"}))
        .into();
    let swapped = json!({"from": 7, "version": 8, "services": services});
    assert_eq!(change(&control, swapped), Ok(SIZES(8)));
}

#[test]
fn heartbeats_are_checked() {
    let mut replicas = Replicas::default();
    for (field, value) in [
        ("load", json!(1.5)),
        ("weight", json!(0)),
        ("ttl", json!(-1)),
        ("ttl", json!(1e9)),
        ("address", json!("192.0.2.1")),
    ] {
        let mut wrong = heartbeat(1, &["films.example"]);
        wrong[field] = value;
        let problem = replicas.beat(1, from_value(wrong).unwrap(), Instant::now(), ip(OWN));
        assert!(problem.unwrap_err().starts_with(field));
    }
    assert!(replicas.show(Instant::now()).is_empty());
}

#[test]
fn measurements_are_means_and_taken_once() {
    let control = control();
    assert!(control.take_measurements().is_none());
    replace(&control, table()).unwrap();
    for (rtt, count) in [(1000, 1), (4000, 2), (9, 0)] {
        let mut beat = heartbeat(1, &[]);
        beat["rtts"] = json!([{"prefix": "2001:db8:c1::/48", "rtt_us": rtt, "count": count}]);
        control.beat(1, from_value(beat).unwrap()).unwrap();
    }
    let taken = serde_json::to_value(control.take_measurements()).unwrap();
    assert_eq!(
        taken,
        json!([{"prefix": "2001:db8:c1::/48", "rtt_us": 3000, "count": 3, "site": 1}])
    );
    assert_eq!(
        serde_json::to_value(control.take_measurements()).unwrap(),
        json!([])
    );
}
