//! Which requests are handed to a real server.

mod common;

use std::fs;

use common::World;
use common::clients::{Client, PYTHON, SCRIPTS};
use common::hop::VIP;
use common::real_server::RealServer;
use frontage_testkit::privileged;

/// Before any other 1-RTT packet, as Bun's and lsquic's are.
#[test]
fn a_request_in_the_last_datagram_of_a_handshake() {
    if !privileged() || !Client::Aioquic.is_here() {
        return;
    }
    let world = World::with_real_server("at-once", &[]);
    let body = b"what the origin has".to_vec();
    let real_server = RealServer::start(&world, body.clone());
    let (script, url) = (
        format!("{SCRIPTS}/get_at_once.py"),
        format!("https://[{VIP}]/handed/object"),
    );
    let output = world.client(&[PYTHON, &script, "body", &url]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(fs::read(world.folder.join("body")).unwrap(), body);
    let kept = |why: &str| world.metric(&format!("handoff_local_total{{reason=\"{why}\"}}"));
    // The real server was asked, and refused.
    assert_eq!(
        (real_server.grants(), kept("unavailable"), kept("rejected")),
        (1, 0, 1)
    );
}
