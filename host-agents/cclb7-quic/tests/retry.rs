//! A client that was sent a Retry (RFC 9000, section 8.1.2) comes back with its token, whatever the server has read meanwhile.

mod common;

use std::fs;
use std::thread;

use common::clients::{Client, PYTHON, SCRIPTS};
use common::hop::VIP;
use common::{PORT, World};
use frontage_testkit::{privileged, wait_for};

#[test]
fn a_token_outlives_a_reload() {
    if !privileged() || !Client::Aioquic.is_here() {
        return;
    }
    let world = World::new("retry", &[]);
    let retry = world.folder.join("retry");
    let (script, port) = (format!("{SCRIPTS}/retry_aioquic.py"), PORT.to_string());
    let (host, out) = (VIP.to_string(), retry.to_str().unwrap());
    thread::scope(|scope| {
        let client = scope.spawn(|| world.client(&[PYTHON, &script, out, &host, &port]));
        wait_for("a Retry", || retry.exists() || client.is_finished());
        world.rotate();
        assert_eq!(world.metric("connections_total"), 0);
        fs::remove_file(&retry).unwrap();
        let output = client.join().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    });
    wait_for("the connection", || world.metric("connections_total") == 1);
    assert_eq!(world.metric("retries_total"), 1);
}
