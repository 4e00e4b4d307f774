// SPDX-License-Identifier: Apache-2.0
//! A client that changes its connection ids and retires the old ones (RFC 9000, section 5.1.2).

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use frontage_quic::session::{Config, Observer, Packet};
use frontage_quic_wire::frames::{self, Frame};
use frontage_testkit::privileged;
use noq::{Endpoint, EndpointConfig, TokioRuntime, TransportConfig};
use noq_proto::RandomConnectionIdGenerator;

use crate::common::client::{Client, tls};
use crate::common::{Testbed, content, run, until};

/// Time for which the client accepts a connection id.
const LIFETIME: Duration = Duration::from_millis(150);
/// Length of a connection id in octets.
const LENGTH: usize = 8;

/// Connection ids of packets with stream data.
#[derive(Default)]
struct Ids(Mutex<HashSet<Vec<u8>>>);

impl Observer for Ids {
    fn on_sent(&self, _: &Packet<'_>) {}

    fn on_received(&self, packet: &Packet<'_>) {
        // The balancer has no bytes of requests' streams here.
        let mut frames = frames::read(packet.payload);
        if frames.any(|frame| matches!(frame, Frame::Stream { id, .. } if id % 4 == 0)) {
            let id = packet.header[1..=LENGTH].to_vec();
            self.0.lock().unwrap().insert(id);
        }
    }
}

fn a_client_changes_ids(name: &str, paths: u32) {
    if !privileged() {
        return;
    }
    let file = content(1, 10_000_000);
    let files = [("file".to_owned(), file.clone())];
    let testbed = Testbed::new(name, 1, "round-robin", "", &files);
    run(&testbed, async || {
        let ids = Arc::<Ids>::default();
        let observer = ids.clone();
        let session = Config::client(tls(&testbed), vec![], move || observer.clone()).unwrap();
        let mut config = EndpointConfig::default();
        config.cid_generator(Arc::new(|| {
            let mut generator = RandomConnectionIdGenerator::new(LENGTH);
            generator.set_lifetime(LIFETIME);
            Box::new(generator)
        }));
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        let endpoint = Endpoint::new(config, None, socket, Arc::new(TokioRuntime)).unwrap();
        let (session, transport) = (Arc::new(session), TransportConfig::default());
        let client = Client::with(endpoint, session, transport, testbed.address(), paths).await;
        // How fast the machine is decides in which of them.
        let (mut answers, mut changes) = (0, 0);
        while changes < 3 && answers < 30 {
            ids.0.lock().unwrap().clear();
            assert!(client.get("file").await.unwrap() == Ok((200, file.clone())));
            answers += 1;
            changes += ids.0.lock().unwrap().len() - 1;
        }
        assert!(changes >= 3, "{changes} in {answers} answers");
        assert!(client.quic.close_reason().is_none());
        // The client has the last before it says so.
        until("all are acknowledged", || testbed.answers(0) == answers).await;
        client.close().await;
    });
    assert_eq!(testbed.balancer_metric("body_bytes_total"), 0);
    assert_eq!(testbed.metric_about(0, "aborted_total"), 0);
}

#[test]
fn client_changes_connection_ids_with_paths() {
    a_client_changes_ids("renamed", 2);
}

#[test]
fn client_changes_connection_ids_with_single_path() {
    a_client_changes_ids("renamed-one", 1);
}
