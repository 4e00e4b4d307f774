// SPDX-License-Identifier: Apache-2.0
//! Print `host-agents/naming/vectors.json`, the test vectors for all languages.

use artemis::{Name, ServicePrefix};
use serde_json::json;

const PREFIXES: [&str; 12] = [
    "2001:db8:a::/48+16",
    "2001:db8:a::/48+0",
    "2001:db8:a::/48+1",
    "2001:db8:a::/48+80",
    "2001:db8:a:8000::/49+13",
    "2001:db8::1/128+0",
    "::/0+128",
    "198.51.100.0/24+8",
    "198.51.100.0/24+3",
    "198.51.100.0/24+0",
    "10.0.0.0/8+24",
    "0.0.0.0/0+32",
];
const NAMES: [&str; 7] = [
    "films.example",
    "FILMS.Example.",
    "films.example..",
    "a",
    "the quick brown fox",
    "Grüße.ÄÖ.example",
    "a-name-of-more-than-one-block.of-the-hash.which-is-128-octets-long.so-that-this-one-needs-two.0123456789.0123456789.0123456789.example",
];

fn main() {
    let mut lines = Vec::new();
    for prefix in PREFIXES {
        let parsed: ServicePrefix = prefix.parse().expect("a prefix");
        let network = prefix.split_once('+').expect("N_sid").0;
        for name in NAMES {
            let address = parsed.service_address(&Name::new(name).expect("a name"));
            let sid_bits = parsed.sid_bits();
            lines.push(
                json!({"prefix": network, "sid_bits": sid_bits, "name": name, "address": address})
                    .to_string(),
            );
        }
    }
    println!("[\n{}\n]", lines.join(",\n"));
}
