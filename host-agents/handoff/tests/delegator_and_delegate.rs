// SPDX-License-Identifier: Apache-2.0
//! Delegator and delegate together: an unmodified noq client receives streams from real servers.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use frontage_handoff::delegate::{Delegate, DelegatedConnection, Transport};
use frontage_handoff::delegator::{Error, Event, Events, StreamEnd};
use frontage_handoff::grant::Grant;
use frontage_testkit::lossy;
use noq::congestion::CubicConfig;
use noq::{PathId, Runtime as _, TokioRuntime};

use testbed::{NonceRecorder, Testbed, bytes};

#[allow(dead_code)]
mod testbed;

/// Create a delegate that sends from the server's address and loses `loss_percent` of its packets.
fn new_delegate(testbed: &Testbed, loss_percent: u32) -> Delegate {
    let socket = testbed.socket.try_clone().unwrap();
    let socket = TokioRuntime.wrap_udp_socket(socket).unwrap();
    let seed = 7;
    Delegate::new(lossy(socket, loss_percent, seed)).unwrap()
}

async fn open(delegate: &Delegate, grant: &Grant) -> Arc<DelegatedConnection> {
    let transport = Transport {
        congestion: Arc::new(CubicConfig::default()),
        mtu: 1200,
    };
    let opened = delegate.open(grant, &transport, Arc::new(())).await;
    Arc::new(opened.unwrap())
}

/// Forward all events to a real server.
async fn relay(mut events: Events, delegated: Arc<DelegatedConnection>) {
    while let Some(event) = events.recv().await {
        match event {
            Event::Feedback(frames) => delegated.on_feedback(&frames).unwrap(),
            Event::Keys(keys) => delegated.set_keys(&keys).unwrap(),
            Event::Moved { client, server } => delegated.on_client_moved(client, server).unwrap(),
            Event::ConnectionId(id) => delegated.set_connection_id(id).unwrap(),
            Event::NumbersExpired(below) => delegated.on_numbers_expired(below),
            Event::Closed | Event::Unreachable => drop(delegated.revoke()),
        }
    }
}

/// Report to the balancer when the client acknowledges nothing, as a real server does. The balancer then checks whether the
/// client has moved.
async fn report_no_ack(
    observer: Arc<NonceRecorder>,
    balancer: noq::Connection,
    delegated: Arc<DelegatedConnection>,
) {
    loop {
        let report = delegated.no_ack().await;
        let reported = observer.delegator.on_no_ack_report(&balancer, 1, report);
        reported.unwrap();
    }
}

/// Have `delegated` respond to a request with `length` bytes.
async fn transfer(
    testbed: &Testbed,
    path: u32,
    delegated: &DelegatedConnection,
    length: usize,
    seed: usize,
) {
    let (mut response, mut server_half, id) = testbed.request().await;
    let limit = testbed.delegator().delegate_stream(path, id).unwrap();
    delegated.request(id, limit, b"please").unwrap();
    let left = delegated.credit() - delegated.used();
    let wanted = (length as u64).saturating_sub(left);
    testbed.more_credit(path, wanted);
    let content = Bytes::from(bytes(length, seed));
    let sending = async {
        let (stream, (mut send, mut recv)) = delegated.accept().await.unwrap();
        assert_eq!(stream, id);
        assert_eq!(recv.read_to_end(10).await.unwrap(), b"please");
        send.write_chunk(content.clone()).await.unwrap();
        send.finish().unwrap();
        assert_eq!(send.stopped().await, Ok(None));
    };
    let ((), received) = tokio::join!(sending, response.read_to_end(length));
    assert!(received.unwrap() == content);
    let final_size = delegated.sent(id).unwrap();
    assert_eq!(final_size, length as u64);
    delegated.release(id);
    let end = StreamEnd::Complete { final_size };
    testbed.delegator().reclaim_stream(id, end).unwrap();
    server_half.finish().unwrap();
    assert_eq!(server_half.stopped().await, Ok(None));
}

/// Two real servers send at the same time, each on its own path, while the balancer's own streams continue.
async fn two_real_servers(loss_percent: u32) {
    let testbed = Testbed::new(3).await;
    let mut serving = tokio::task::JoinSet::new();
    let delegate = new_delegate(&testbed, loss_percent);
    let mut ends = Vec::new();
    for seed in 0..2 {
        let (grant, events) = testbed.delegate().await;
        let delegated = open(&delegate, &grant).await;
        serving.spawn(relay(events, delegated.clone()));
        ends.push((grant.path, delegated, seed));
    }
    for (path, delegated, seed) in &ends {
        transfer(&testbed, *path, delegated, 5 << 20, *seed).await;
        testbed.client.force_key_update();
        testbed.carry(200_000).await;
    }
    for (path, delegated, _) in ends {
        let next = delegated.revoke();
        testbed.delegator().return_path(path, next).unwrap();
    }
    assert!(testbed.client.close_reason().is_none() && testbed.server.close_reason().is_none());
    serving.abort_all();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_real_servers_deliver_streams_without_loss() {
    two_real_servers(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_real_servers_deliver_streams_with_1_percent_loss() {
    two_real_servers(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_real_servers_deliver_streams_with_5_percent_loss() {
    two_real_servers(5).await;
}

/// One path is delegated to five real servers in turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn path_is_delegated_to_one_server_after_another() {
    let testbed = Testbed::new(2).await;
    for round in 0..5 {
        let delegate = new_delegate(&testbed, 1);
        let (grant, events) = testbed.delegate().await;
        let delegated = open(&delegate, &grant).await;
        let relaying = tokio::spawn(relay(events, delegated.clone()));
        transfer(&testbed, 1, &delegated, 300_000, round).await;
        let next = delegated.revoke();
        assert!(next > grant.first);
        relaying.abort();
        _ = relaying.await;
        testbed.delegator().return_path(1, next).unwrap();
    }
    assert!(testbed.client.close_reason().is_none() && testbed.server.close_reason().is_none());
}

/// A NAT in front of the client changes the client's port, then its address. A new address resets congestion control
/// (RFC 9000, section 9.4).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_address_change_resets_congestion_window_and_port_change_does_not() {
    let testbed = Testbed::new(2).await;
    let delegate = new_delegate(&testbed, 0);
    let (grant, events) = testbed.delegate().await;
    let delegated = open(&delegate, &grant).await;
    let mut relaying = tokio::task::JoinSet::new();
    relaying.spawn(relay(events, delegated.clone()));
    let (observer, balancer) = (testbed.observer.clone(), testbed.server.clone());
    relaying.spawn(report_no_ack(observer, balancer, delegated.clone()));
    let window = || {
        let state = delegated.connection.congestion_state(PathId::ZERO);
        state.unwrap().window()
    };
    let first = window();
    transfer(&testbed, 1, &delegated, 3 << 20, 1).await;
    let grown = window();
    assert!(
        grown > 2 * first,
        "window grew from {first} only to {grown}"
    );
    let same_address = IpAddr::from([127, 0, 0, 1]);
    testbed.nat.rebind(same_address).await;
    transfer(&testbed, 1, &delegated, 100_000, 2).await;
    assert!(
        window() > first,
        "window was reset to {first} at a new port"
    );
    for last in [2, 3, 1] {
        testbed.nat.rebind([127, 0, 0, last].into()).await;
        transfer(&testbed, 1, &delegated, 1000, 3).await;
        let new = window();
        assert!(
            new < 2 * first,
            "window of {first} became {new} at a new address"
        );
        transfer(&testbed, 1, &delegated, 3 << 20, 4).await;
    }
    relaying.abort_all();
    // Only the real server has validated the new address.
    let next = delegated.revoke();
    let refused = testbed.delegator().return_path(1, next);
    assert_eq!(refused, Err(Error::Moved(1)));
    testbed.delegator().abandon(1).unwrap();
    assert!(testbed.client.close_reason().is_none() && testbed.server.close_reason().is_none());
}
