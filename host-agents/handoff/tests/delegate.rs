// SPDX-License-Identifier: Apache-2.0
//! An unmodified noq client receives streams from a real server.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::{Buf as _, Bytes};
use frontage_handoff::delegate::{DelegatedConnection, Error};
use frontage_handoff::grant::Grant;
use frontage_quic::h3;
use frontage_quic_wire::write_varint;
use noq::{ConnectionError, TransportErrorCode, VarInt};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::task::JoinSet;

use delegate_testbed::{DelegateTestbed, SentPackets, forward_request, pattern, transport};

mod delegate_testbed;

const LENGTH: usize = 10 << 20;

/// Transfer ten megabytes with `loss_percent` of the packets to the client lost, and key updates by both sides.
async fn transfer_ten_megabytes(loss_percent: u32) {
    let mut testbed = DelegateTestbed::new(loss_percent).await;
    let grant = testbed.grant().await;
    let sent = Arc::<SentPackets>::default();
    let delegated = testbed.delegate(&grant, sent.clone()).await;
    let mut request = testbed.request(b"ten megabytes", &delegated).await;

    let serving = async {
        let (id, (mut send, mut recv)) = delegated.accept().await.unwrap();
        assert_eq!(id, request.stream);
        assert_eq!(recv.read_to_end(100).await.unwrap(), b"ten megabytes");
        send.write_all(&pattern(LENGTH)).await.unwrap();
        send.finish().unwrap();
        assert_eq!(send.stopped().await.unwrap(), None);
    };
    let reading = async {
        let mut received = vec![0; 2 * LENGTH / 3];
        let (first, second) = received.split_at_mut(LENGTH / 3);
        request.response.read_exact(first).await.unwrap();
        testbed.balancer.force_key_update();
        request.response.read_exact(second).await.unwrap();
        testbed.client.force_key_update();
        received.extend(request.response.read_to_end(LENGTH).await.unwrap());
        received
    };
    let ((), received) = tokio::join!(serving, reading);
    assert!(received == pattern(LENGTH));
    assert_eq!(delegated.sent(request.stream), Some(LENGTH as u64));
    assert_eq!(delegated.used(), LENGTH as u64);

    let next = delegated.revoke();
    let sent = std::mem::take(&mut *sent.0.lock().unwrap());
    assert!(sent.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
    assert!(sent[0].0 >= grant.first);
    let (last, generation) = sent[sent.len() - 1];
    assert_eq!(last + 1, next);
    assert!(generation > 0, "no key update");
    assert!(testbed.client.close_reason().is_none() && testbed.balancer.close_reason().is_none());
    assert_eq!(
        testbed.delegate.counters().invalid_feedback.load(Relaxed),
        0
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_is_delivered_without_loss() {
    transfer_ten_megabytes(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_is_delivered_with_1_percent_loss() {
    transfer_ten_megabytes(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_is_delivered_with_5_percent_loss() {
    transfer_ten_megabytes(5).await;
}

/// Respond with `length` bytes on the next delegated stream.
async fn respond(delegated: &DelegatedConnection, length: usize) -> noq::SendStream {
    let (_, (mut send, mut recv)) = delegated.accept().await.unwrap();
    recv.read_to_end(1 << 16).await.unwrap();
    send.write_all(&pattern(length)).await.unwrap();
    send.finish().unwrap();
    send
}

/// From 16 and from 4096 streams on, stream ids take more octets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_with_ids_of_any_length_are_delegated() {
    let mut testbed = DelegateTestbed::new(0).await;
    let delegated = testbed.delegate(&testbed.grant().await, Arc::new(())).await;
    let mut others = Vec::new();
    for (before, index) in [0, 3, 20, 21, 4097, 4098].into_iter().enumerate() {
        while before + others.len() < index {
            others.push(testbed.client.open_bi().await.unwrap());
        }
        let mut request = testbed.request(&pattern(5000), &delegated).await;
        assert_eq!(request.stream, 4 * index as u64);
        let sending = respond(&delegated, 50_000);
        let (send, received) = tokio::join!(sending, request.response.read_to_end(50_001));
        assert!(received.unwrap() == pattern(50_000));
        assert_eq!(send.stopped().await, Ok(None));
        delegated.release(request.stream);
    }
    assert_eq!(delegated.used(), 6 * 50_000);
}

/// The next delegation continues with the numbers that follow.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn returned_path_is_delegated_again() {
    let mut testbed = DelegateTestbed::new(0).await;
    let mut grant = testbed.grant().await;
    for length in [20_000, 30_000] {
        let sent = Arc::<SentPackets>::default();
        let delegated = testbed.delegate(&grant, sent.clone()).await;
        let mut request = testbed.request(b"again", &delegated).await;
        let sending = respond(&delegated, length);
        let (send, received) = tokio::join!(sending, request.response.read_to_end(length + 1));
        assert!(received.unwrap() == pattern(length));
        assert_eq!(send.stopped().await, Ok(None));

        let next = delegated.revoke();
        let left = sent.0.lock().unwrap().len();
        // Nothing of this is sent.
        let mut request = testbed.request(b"too late", &delegated).await;
        drop(respond(&delegated, length).await);
        request.response.stop(VarInt::from_u32(0)).unwrap();
        assert_eq!(delegated.next_number(), next);
        assert_eq!(sent.0.lock().unwrap().len(), left);
        assert!(next > grant.first + length as u64 / 1500);
        // A dead real server may have used more numbers.
        grant.first = next + 1_000_000;
    }
    assert!(testbed.client.close_reason().is_none());
}

/// The real server sends no more than its credit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sent_bytes_never_exceed_credit() {
    let mut testbed = DelegateTestbed::new(0).await;
    let mut grant = testbed.grant().await;
    grant.credit = 30_000;
    let delegated = testbed.delegate(&grant, Arc::new(())).await;
    let mut request = testbed.request(b"limited", &delegated).await;
    let reading = async {
        let mut received = vec![0; 30_000];
        request.response.read_exact(&mut received).await.unwrap();
        assert_eq!((delegated.used(), delegated.credit()), (30_000, 30_000));
        // MAX_DATA of 50,000, in four octets.
        delegated.on_feedback(&[0x10, 0x80, 0, 0xc3, 0x50]).unwrap();
        received.extend(request.response.read_to_end(50_000).await.unwrap());
        received
    };
    let (_, received) = tokio::join!(respond(&delegated, 50_000), reading);
    assert!(received == pattern(50_000));
    assert_eq!((delegated.used(), delegated.credit()), (50_000, 50_000));
}

/// noq closes its connection with the error code for the client's connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ack_of_unsent_packet_ends_delegation() {
    let testbed = DelegateTestbed::new(0).await;
    let grant = testbed.grant().await;
    let delegated = testbed.delegate(&grant, Arc::new(())).await;
    assert!(matches!(
        delegated.on_feedback(&[0x1e]),
        Err(Error::Feedback(_))
    ));
    assert_eq!(
        testbed.delegate.counters().invalid_feedback.load(Relaxed),
        1
    );
    assert!(delegated.connection.close_reason().is_none());
    // ACK of a packet that was never sent.
    let mut frame = vec![0x02];
    write_varint(&mut frame, grant.first + 1000);
    frame.extend([0, 0, 0]);
    delegated.on_feedback(&frame).unwrap();
    let ConnectionError::TransportError(error) = delegated.connection.closed().await else {
        panic!("not a transport error");
    };
    assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
    assert!(testbed.client.close_reason().is_none() && testbed.balancer.close_reason().is_none());
}

/// Invalid feedback does not affect other connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_feedback_affects_only_its_own_connection() {
    const SEED: u64 = 11;
    let mut testbed = DelegateTestbed::new(0).await;
    let grant = testbed.grant().await;
    // The packets of these delegations, all with the same numbers, go to a socket that is not a client's.
    let nowhere = std::net::UdpSocket::bind("[::1]:0").unwrap();
    let mut noisy = grant.clone();
    noisy.client = nowhere.local_addr().unwrap();
    let mut random = SmallRng::seed_from_u64(SEED);
    for _ in 0..100 {
        let delegated = testbed.delegate(&noisy, Arc::new(())).await;
        delegated.request(8, None, b"noise").unwrap();
        let send = respond(&delegated, 20_000).await;
        for _ in 0..10 {
            let mut frames = vec![[0x02, 0x03, 0x05, 0x10, 0x11][random.random_range(0..5)]];
            for _ in 0..random.random_range(2..9) {
                let value = random.random::<u64>() >> random.random_range(2..63);
                let near = grant.first + value % 16;
                let choice = random.random_range(0..5);
                write_varint(&mut frames, [0, 8, value % 16, near, value][choice]);
            }
            // May be rejected or not.
            _ = delegated.on_feedback(&frames);
        }
        drop(send);
    }
    let delegated = testbed.delegate(&grant, Arc::new(())).await;
    let mut request = testbed.request(b"and now", &delegated).await;
    let sending = respond(&delegated, 1000);
    let (_, received) = tokio::join!(sending, request.response.read_to_end(1001));
    assert!(received.unwrap() == pattern(1000));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_grants_are_rejected() {
    let testbed = DelegateTestbed::new(0).await;
    let good = testbed.grant().await;
    let open = async |change: fn(&mut Grant)| {
        let mut grant = good.clone();
        change(&mut grant);
        let transport = transport();
        let opened = testbed.delegate.open(&grant, &transport, Arc::new(()));
        opened.await.err()
    };
    assert_eq!(open(|_| {}).await, None);
    assert_eq!(
        open(|grant| grant.suite = 0x1305).await,
        Some(Error::Suite(0x1305))
    );
    let short = open(|grant| grant.keys.secret = b"short"[..].into()).await;
    assert_eq!(short, Some(Error::Secret(5)));
    // An ack_delay_exponent of more than 20 (RFC 9000, section 18.2).
    let refused = open(|grant| grant.client_parameters = b"\x0a\x01\x15"[..].into()).await;
    assert!(matches!(refused, Some(Error::Refused(_))), "{refused:?}");
}

/// A packet to the client's old address is lost and retransmitted to the new one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_follow_client_to_new_address() {
    let mut testbed = DelegateTestbed::new(0).await;
    let real_grant = testbed.grant().await;
    let nowhere = std::net::UdpSocket::bind("[::1]:0").unwrap();
    let mut grant = real_grant.clone();
    grant.client = nowhere.local_addr().unwrap();
    let delegated = testbed.delegate(&grant, Arc::new(())).await;
    let mut request = testbed.request(b"where to", &delegated).await;
    let send = respond(&delegated, 1000).await;
    let mut packet = [0; 2000];
    nowhere.recv(&mut packet).unwrap();
    delegated
        .on_client_moved(real_grant.client, real_grant.server)
        .unwrap();
    assert!(request.response.read_to_end(1001).await.unwrap() == pattern(1000));
    assert_eq!(send.stopped().await, Ok(None));
}

/// Crate `h3` serves delegated streams under their real ids. Its control streams are not sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h3_server_serves_delegated_streams() {
    const REQUESTS: usize = 30;
    let mut testbed = DelegateTestbed::new(1).await;
    let delegated = testbed.delegate(&testbed.grant().await, Arc::new(())).await;
    let connection = h3::Connection::new(testbed.client.clone());
    let (mut driver, requests) = ::h3::client::new(connection).await.unwrap();
    let driving = tokio::spawn(async move { driver.wait_idle().await });
    let mut clients = JoinSet::new();
    for _ in 0..REQUESTS {
        let mut requests = requests.clone();
        clients.spawn(async move {
            let request = http::Request::get("https://frontage.test/").body(());
            let mut stream = requests.send_request(request.unwrap()).await.unwrap();
            stream.finish().await.unwrap();
            let response = stream.recv_response().await.unwrap();
            let mut received = Vec::new();
            while let Some(mut part) = stream.recv_data().await.unwrap() {
                received.extend(part.copy_to_bytes(part.remaining()));
            }
            let id = response.headers()["stream"].to_str().unwrap().to_owned();
            assert_eq!(id, stream.id().into_inner().to_string());
            assert!(received == pattern(50_000));
        });
    }
    let mut server = ::h3::server::Connection::<_, Bytes>::new(delegated.h3())
        .await
        .unwrap();
    let mut responders = JoinSet::new();
    for _ in 0..REQUESTS {
        forward_request(testbed.accept().await, &delegated).await;
        let resolver = server.accept().await.unwrap().expect("a request");
        responders.spawn(async move {
            let (_, mut stream) = resolver.resolve_request().await.unwrap();
            let id = stream.id().into_inner();
            let response = http::Response::builder().header("stream", id).body(());
            stream.send_response(response.unwrap()).await.unwrap();
            stream.send_data(pattern(50_000)).await.unwrap();
            // Completes once the client has acknowledged everything.
            stream.finish().await.unwrap();
        });
    }
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    while let Some(responder) = responders.join_next().await {
        responder.unwrap();
    }
    assert!(testbed.client.close_reason().is_none());
    driving.abort();
}
