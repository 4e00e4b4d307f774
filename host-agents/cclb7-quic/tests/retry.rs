// SPDX-License-Identifier: Apache-2.0
//! Tokens of Retry packets (RFC 9000, section 8.1.2) remain valid after a reload.

mod common;

use std::fs;
use std::thread;

use common::clients::{Client, PYTHON, SCRIPTS};
use common::edge_switch::VIP;
use common::{PORT, Testbed};
use frontage_testkit::{privileged, wait_for};

#[test]
fn retry_token_survives_reload() {
    if !privileged() || !Client::Aioquic.is_installed() {
        return;
    }
    let testbed = Testbed::new("retry", &[]);
    let retry = testbed.folder.join("retry");
    let (script, port) = (format!("{SCRIPTS}/retry_aioquic.py"), PORT.to_string());
    let (host, out) = (VIP.to_string(), retry.to_str().unwrap());
    thread::scope(|scope| {
        let client = scope.spawn(|| testbed.client(&[PYTHON, &script, out, &host, &port]));
        wait_for("a Retry", || retry.exists() || client.is_finished());
        testbed.rotate();
        assert_eq!(testbed.metric("connections_total"), 0);
        fs::remove_file(&retry).unwrap();
        let output = client.join().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
    });
    wait_for("the connection", || {
        testbed.metric("connections_total") == 1
    });
    assert_eq!(testbed.metric("retries_total"), 1);
}
