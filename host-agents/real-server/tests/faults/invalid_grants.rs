// SPDX-License-Identifier: Apache-2.0
//! Invalid grants: from unknown peers, with another version, or replayed.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use frontage_handoff::grant::{Grant, Keys};
use frontage_handoff::link::tls::Files;
use frontage_handoff::message::{Cookie, Message as _, ToServer};
use frontage_testkit::privileged;
use noq::{Connection, ConnectionId, Endpoint};

use crate::common::ca::Ca;
use crate::common::{LINK, Testbed, run, wait_until};

/// First packet number and credit of the grant.
pub const FIRST: u64 = 10;
pub const CREDIT: u64 = 1 << 20;

/// Return an Open message for a path of a nonexistent connection.
pub fn open(cookie: Option<Cookie>, credit: u64) -> Vec<u8> {
    let secret = Bytes::from_static(&[7; 32]);
    let grant = Grant {
        path: 1,
        first: FIRST,
        connection_id: ConnectionId::new(&[1; 8]),
        suite: 0x1301,
        header_secret: secret.clone(),
        keys: Keys {
            generation: 0,
            secret,
        },
        client_parameters: Bytes::new(),
        server: "10.0.0.2:443".parse().unwrap(),
        client: "10.0.0.1:9".parse().unwrap(),
        credit,
        rtt: Duration::from_millis(1),
    };
    let mut wire = BytesMut::new();
    let min_size = 0;
    ToServer::Open {
        grant,
        cookie,
        min_size,
    }
    .encode(&mut wire);
    wire.to_vec()
}

/// Connect to the first real server with certificate `name` and CA `ca`. Returns None if the handshake fails.
pub async fn link(testbed: &Testbed, name: &str, ca: &str) -> Option<Connection> {
    let file = |name: &str| testbed.folder.join(name);
    let config = Files {
        certificate: file(&format!("{name}.pem")),
        private_key: file(&format!("{name}.key")),
        ca: testbed.folder.join(ca),
    };
    let endpoint = Endpoint::client("0.0.0.0:0".parse().unwrap()).unwrap();
    let address = ([10, 0, 0, 3], LINK).into();
    let connecting = endpoint.connect_with(config.client().unwrap(), address, "rs0.test");
    connecting.unwrap().await.ok()
}

#[test]
fn invalid_grants_are_counted_by_name() {
    if !privileged() {
        return;
    }
    let testbed = Testbed::new("forged", 1, "round-robin", "", &[]);
    // A certificate of another CA with the balancer's name, and one of this CA for an unknown name.
    std::fs::create_dir(testbed.folder.join("other")).unwrap();
    let other = Ca::new(&testbed.folder.join("other"));
    other.issue("lb.test");
    let rejected_links = || testbed.server_metric(0, "rejected_links_total");
    let malformed =
        |reason: &str| testbed.server_metric(0, &format!("malformed_total{{reason=\"{reason}\"}}"));
    run(&testbed, async || {
        for (i, name) in ["other/lb.test", "rs0.test"].into_iter().enumerate() {
            if let Some(link) = link(&testbed, name, "ca.pem").await {
                link.closed().await;
            }
            wait_until("a rejected link is counted", || {
                rejected_links() == i as u64 + 1
            })
            .await;
        }
        let link = link(&testbed, "lb.test", "ca.pem").await.unwrap();
        let mut old_version = open(None, CREDIT);
        // The version follows the type and two octets of length.
        assert_eq!((old_version[0], old_version[3]), (0, 1));
        old_version[3] = 0;
        let repeated = open(None, CREDIT).repeat(2);
        for (wire, reason) in [
            (old_version, "version"),
            (repeated, "second_open"),
            (open(None, CREDIT), "replayed_open"),
            (vec![0x06, 0], "no_open"),
        ] {
            let (mut send, mut receive) = link.open_bi().await.unwrap();
            send.write_all(&wire).await.unwrap();
            // The stream ends without a message.
            let response = receive.read_to_end(100).await.unwrap_or_default();
            assert!(response.is_empty(), "{reason}: {response:?}");
            wait_until(reason, || malformed(reason) == 1).await;
        }
    });
    assert_eq!(testbed.server_metric(0, "grants_total"), 1);
}
