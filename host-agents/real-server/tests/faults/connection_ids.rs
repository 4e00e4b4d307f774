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
use crate::common::{Testbed, content, run, wait_until};

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
        // The balancer itself does not send data on request streams here.
        let mut frames = frames::read(packet.payload);
        if frames.any(|frame| matches!(frame, Frame::Stream { id, .. } if id % 4 == 0)) {
            let id = packet.header[1..=LENGTH].to_vec();
            self.0.lock().unwrap().insert(id);
        }
    }
}

fn change_connection_ids(name: &str, paths: u32) {
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
        let client =
            Client::connect_with(endpoint, session, transport, testbed.address(), paths).await;
        // The number of changes per response depends on the speed of the machine.
        let (mut responses, mut changes) = (0, 0);
        while changes < 3 && responses < 30 {
            ids.0.lock().unwrap().clear();
            assert!(client.get("file").await.unwrap() == Ok((200, file.clone())));
            responses += 1;
            changes += ids.0.lock().unwrap().len() - 1;
        }
        assert!(changes >= 3, "{changes} changes in {responses} responses");
        assert!(client.quic.close_reason().is_none());
        // The client acknowledges the end of a response only after `get` has returned it.
        wait_until("all responses are acknowledged", || {
            testbed.completed_responses(0) == responses
        })
        .await;
        client.close().await;
    });
    assert_eq!(testbed.balancer_metric("body_bytes_total"), 0);
    assert_eq!(testbed.metric_for(0, "aborted_total"), 0);
}

#[test]
fn client_changes_connection_ids_with_paths() {
    change_connection_ids("renamed", 2);
}

#[test]
fn client_changes_connection_ids_with_single_path() {
    change_connection_ids("renamed-one", 1);
}
