// SPDX-License-Identifier: Apache-2.0
//! Delegation of requests to a real server.

mod common;

use std::fs;

use common::Testbed;
use common::clients::{Client, PYTHON, SCRIPTS};
use common::hop::VIP;
use common::real_server::RealServer;
use frontage_testkit::privileged;

/// The request comes before any other 1-RTT packet, as with Bun and lsquic.
#[test]
fn request_in_last_handshake_datagram_is_delegated() {
    if !privileged() || !Client::Aioquic.is_here() {
        return;
    }
    let testbed = Testbed::with_real_server("at-once", &[]);
    let body = b"what the origin has".to_vec();
    let real_server = RealServer::start(&testbed, body.clone());
    let (script, url) = (
        format!("{SCRIPTS}/get_at_once.py"),
        format!("https://[{VIP}]/handed/object"),
    );
    let output = testbed.client(&[PYTHON, &script, "body", &url]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(fs::read(testbed.folder.join("body")).unwrap(), body);
    let kept = |why: &str| testbed.metric(&format!("handoff_local_total{{reason=\"{why}\"}}"));
    // The real server was asked, and refused.
    assert_eq!(
        (real_server.grants(), kept("unavailable"), kept("rejected")),
        (1, 0, 1)
    );
}
