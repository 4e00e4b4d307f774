// SPDX-License-Identifier: Apache-2.0
use std::net::IpAddr;

use artemis::{Name, ServicePrefix};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    prefix: String,
    sid_bits: u8,
    name: String,
    address: IpAddr,
}

#[test]
fn service_addresses_match_the_test_vectors() {
    let vectors: Vec<Vector> = serde_json::from_str(include_str!("../../vectors.json")).unwrap();
    assert!(vectors.len() > 50);
    for Vector {
        prefix,
        sid_bits,
        name,
        address,
    } in vectors
    {
        let parsed: ServicePrefix = format!("{prefix}+{sid_bits}").parse().unwrap();
        let found = parsed.service_address(&Name::new(&name).unwrap());
        assert_eq!(found, address, "{prefix}+{sid_bits} {name}");
    }
}
