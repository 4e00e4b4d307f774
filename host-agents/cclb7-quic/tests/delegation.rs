// SPDX-License-Identifier: Apache-2.0
//! Delegation of requests to a real server.

mod common;

use std::fs;

use common::Testbed;
use common::clients::{Client, PYTHON, SCRIPTS};
use common::edge_switch::VIP;
use common::real_server::RealServer;
use frontage_testkit::privileged;

/// The request precedes all other 1-RTT packets, as with Bun and lsquic.
#[test]
fn request_in_last_handshake_datagram_is_delegated() {
    if !privileged() || !Client::Aioquic.is_installed() {
        return;
    }
    let testbed = Testbed::with_real_server("at-once", &[]);
    let body = b"body of the origin".to_vec();
    let real_server = RealServer::start(&testbed, body.clone());
    let (script, url) = (
        format!("{SCRIPTS}/get_at_once.py"),
        format!("https://[{VIP}]/handed/object"),
    );
    let output = testbed.client(&[PYTHON, &script, "body", &url]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert_eq!(fs::read(testbed.folder.join("body")).unwrap(), body);
    let local =
        |reason: &str| testbed.metric(&format!("handoff_local_total{{reason=\"{reason}\"}}"));
    // The balancer delegated the request, and the real server rejected it.
    assert_eq!(
        (
            real_server.grants(),
            local("unavailable"),
            local("rejected")
        ),
        (1, 0, 1)
    );
}

/// The controller needs them where its names of real servers differ.
#[test]
fn metrics_have_the_addresses_of_real_servers() {
    if !privileged() {
        return;
    }
    let testbed = Testbed::with_real_server("addresses", &[]);
    let labels = "server=\"rs.test\",address=\"127.0.0.1:4500\"";
    assert_eq!(testbed.metric(&format!("real_server_info{{{labels}}}")), 1);
}
