// SPDX-License-Identifier: Apache-2.0
//! Tables and heartbeats: invalid ones are rejected and change nothing.

use std::sync::Arc;
use std::time::Instant;

use frontage_dispatcher::control::{ControlPlane, UpdateError};
use frontage_dispatcher::message::{FullTable, TableDelta};
use frontage_dispatcher::replicas::Replicas;
use frontage_dispatcher::worker::ViewChannel;
use serde_json::{Value, from_value, json};

use crate::testbed::{OWN, heartbeat, ip, table};

fn control_plane() -> ControlPlane {
    ControlPlane::new(ip(OWN), vec![], Arc::new(ViewChannel::default()))
}

fn replace(control: &ControlPlane, table: Value) -> Result<Value, String> {
    let table: FullTable = from_value(table).map_err(|error| error.to_string())?;
    control
        .replace_table(table)
        .map(|summary| serde_json::to_value(summary).unwrap())
}

fn apply(control: &ControlPlane, delta: Value) -> Result<Value, UpdateError> {
    let delta: TableDelta = from_value(delta).unwrap();
    control
        .apply_delta(delta)
        .map(|summary| serde_json::to_value(summary).unwrap())
}

const SUMMARY: fn(u64) -> Value = |version| json!({"version": version, "site": 1, "sites": 3, "services": 2, "deployments": 2, "clients": 1, "mapping": 3});

#[test]
fn contradictory_table_is_rejected() {
    let control = control_plane();
    assert_eq!(replace(&control, table()), Ok(SUMMARY(7)));
    type Case = (fn(&mut Value), &'static str);
    let cases: [Case; 10] = [
        (
            |t| t["mapping"][0]["sites"] = json!([2, 9]),
            "mapping: deployment 7, sites [2, 9]: unknown site 9",
        ),
        (
            |t| t["mapping"][0]["sites"] = json!([2, 2]),
            "mapping: deployment 7, sites [2, 2]: duplicate site 2",
        ),
        (
            |t| t["mapping"][0]["sites"] = json!([]),
            "mapping: deployment 7, sites []: empty list: name a site",
        ),
        (
            |t| t["mapping"][0]["deployment"] = json!(9),
            "mapping: deployment 9: no service uses it: add one",
        ),
        (
            |t| t["services"][0]["redundancy"] = json!(5),
            "services: films.example: redundancy is 5: must be 1 to 4",
        ),
        (
            |t| t["services"][1]["name"] = json!("FILMS.example"),
            "services: FILMS.example has two ids, 3 and 4: remove one",
        ),
        (
            |t| t["services"][1]["id"] = json!(3),
            "services: 3 is the id of films.example and of another service",
        ),
        (
            |t| t["sites"][1]["vtep"] = json!("192.0.2.1"),
            "sites: 2: vtep 192.0.2.1 must be of the same family",
        ),
        (
            |t| t["clients"][0]["prefix"] = json!("2001:db8::1/32"),
            "invalid prefix \"2001:db8::1/32\": use",
        ),
        (|t| t["mappings"] = json!([]), "unknown field `mappings`"),
    ];
    for (damage, expected) in cases {
        let mut table = table();
        table["version"] = json!(8);
        damage(&mut table);
        let problem = replace(&control, table).unwrap_err();
        assert!(problem.contains(expected), "{problem}: {expected}");
    }
    assert_eq!(serde_json::to_value(control.summary()).unwrap(), SUMMARY(7));
}

#[test]
fn delta_applies_to_its_version_only() {
    let control = control_plane();
    let nothing = json!({"from": 7, "version": 8});
    assert_eq!(
        apply(&control, nothing.clone()),
        Err(UpdateError::VersionMismatch(None))
    );
    replace(&control, table()).unwrap();
    assert_eq!(apply(&control, nothing.clone()), Ok(SUMMARY(8)));
    assert_eq!(
        apply(&control, nothing),
        Err(UpdateError::VersionMismatch(Some(8)))
    );
    let more = json!({
        "from": 8, "version": 9,
        "clients": [{"prefix": "198.51.100.0/24", "region": 5}],
        "mapping": [{"deployment": 7, "sites": [3], "regions": [5, 6]}],
        "remove": {
            "clients": ["2001:db8:c5::/48"], "mapping": [{"deployment": 8, "regions": [0]}], "services": [4],
        },
    });
    let mut summary = SUMMARY(9);
    (summary["services"], summary["deployments"]) = (json!(1), json!(1));
    assert_eq!(apply(&control, more), Ok(summary.clone()));
    // A service whose deployment is still mapped, and entries that do not exist.
    for remove in [
        json!({"services": [3]}),
        json!({"clients": ["::/0"]}),
        json!({"mapping": [{"deployment": 7, "regions": [1]}]}),
    ] {
        let delta = json!({"from": 9, "version": 10, "remove": remove});
        assert!(matches!(
            apply(&control, delta),
            Err(UpdateError::Invalid(_))
        ));
    }
    assert_eq!(serde_json::to_value(control.summary()).unwrap(), summary);
}

/// A service that moves to the deployment of others needs no new mapping.
#[test]
fn service_moves_to_another_deployment() {
    let control = control_plane();
    replace(&control, table()).unwrap();
    let moved = json!({
        "from": 7, "version": 8,
        "services": [{"name": "copied.example", "id": 4, "deployment": 7, "alpn": ["h3"], "policy": "load"}],
    });
    let error = apply(&control, moved.clone()).unwrap_err();
    assert!(
        matches!(error, UpdateError::Invalid(problem) if problem.starts_with("mapping: deployment 8: no service uses it"))
    );
    let mut delta = moved;
    delta["remove"] = json!({"mapping": [{"deployment": 8, "regions": [0]}]});
    let mut summary = SUMMARY(8);
    (summary["deployments"], summary["mapping"]) = (json!(1), json!(2));
    assert_eq!(apply(&control, delta), Ok(summary));
}

#[test]
fn services_can_exchange_names() {
    let control = control_plane();
    replace(&control, table()).unwrap();
    let services: Vec<_> = [(3, "copied.example"), (4, "films.example")]
        .map(|(id, name)| json!({"name": name, "id": id, "deployment": id + 4, "alpn": ["h3"], "policy": "load"}))
        .into();
    let swapped = json!({"from": 7, "version": 8, "services": services});
    assert_eq!(apply(&control, swapped), Ok(SUMMARY(8)));
}

#[test]
fn invalid_heartbeat_is_rejected() {
    let mut replicas = Replicas::default();
    for (field, value) in [
        ("load", json!(1.5)),
        ("weight", json!(0)),
        ("ttl", json!(-1)),
        ("ttl", json!(1e9)),
        ("address", json!("192.0.2.1")),
    ] {
        let mut message = heartbeat(1, &["films.example"]);
        message[field] = value;
        let problem = replicas.record(1, from_value(message).unwrap(), Instant::now(), ip(OWN));
        assert!(problem.unwrap_err().starts_with(field));
    }
    assert!(replicas.status(Instant::now()).is_empty());
}

#[test]
fn measurements_are_means_and_returned_once() {
    let control = control_plane();
    assert!(control.take_measurements().is_none());
    replace(&control, table()).unwrap();
    for (rtt, count) in [(1000, 1), (4000, 2), (9, 0)] {
        let mut message = heartbeat(1, &[]);
        message["rtts"] = json!([{"prefix": "2001:db8:c1::/48", "rtt_us": rtt, "count": count}]);
        control
            .record_heartbeat(1, from_value(message).unwrap())
            .unwrap();
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
