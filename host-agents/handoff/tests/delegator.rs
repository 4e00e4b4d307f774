// SPDX-License-Identifier: Apache-2.0
//! An unmodified client receives streams from a real server, and its connection continues.

use std::net::IpAddr;
use std::time::Duration;

use frontage_handoff::delegator::{Error, Event, RESET_PLACEHOLDER, StreamEnd};
use futures_util::FutureExt as _;
use noq::{ConnectionError, PathId, ReadError, VarInt};
use tokio::task::yield_now;
use tokio::time::timeout;

use testbed::real_server::RealServer;
use testbed::{Testbed, bytes, wait_for};

mod testbed;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delegated_and_own_streams_are_delivered() {
    let testbed = Testbed::new(2).await;
    let (grant, events) = testbed.delegate().await;
    assert_eq!((grant.path, grant.server), (1, testbed.address));
    assert!(
        testbed
            .delegator()
            .delegate_path(&testbed.server, testbed.address)
            .is_none()
    );
    let mut real = RealServer::new(grant, events, &testbed);

    for round in 0..4 {
        let (mut response, mut server_half, id) = testbed.request().await;
        assert_eq!(testbed.delegator().delegate_stream(1, id), Ok(None));
        assert_eq!(
            testbed.delegator().delegate_stream(1, id),
            Err(Error::Stream(id))
        );
        let content = bytes(60_000, round);
        real.write(id, &content, true);
        // noq and the real server share the client's limit.
        let wanted = 60_000;
        let credit = testbed.more_credit(1, wanted);
        assert!(credit >= real.grant.credit);
        let (_, received, ()) = tokio::join!(
            real.deliver(),
            response.read_to_end(60_000),
            testbed.carry(100_000)
        );
        assert!(received.unwrap() == content);
        let end = StreamEnd::Complete { final_size: 60_000 };
        testbed.delegator().reclaim_stream(id, end).unwrap();
        assert_eq!(
            testbed.delegator().reclaim_stream(id, end),
            Err(Error::Ended(id))
        );
        // noq forgets its half once the client acknowledges the packet, although the client does not see the FIN.
        server_half.finish().unwrap();
        assert_eq!(server_half.stopped().await, Ok(None));
        testbed.client.force_key_update();
    }
    assert!(real.grant.keys.generation > 0);
    assert!(testbed.client.close_reason().is_none() && testbed.server.close_reason().is_none());
    println!(
        "{} datagrams acknowledged in {} messages",
        real.acked, real.messages
    );
}

/// Read a stream that is reset. Returns the error.
async fn end_of(response: &mut noq::RecvStream) -> ReadError {
    loop {
        match response.read_chunk(10_000).await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("FIN instead of a reset"),
            Err(error) => return error,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aborted_stream_is_reset_with_final_size() {
    let testbed = Testbed::new(2).await;
    let (grant, events) = testbed.delegate().await;
    let mut real = RealServer::new(grant, events, &testbed);
    for (length, final_size) in [(5000, Some(5000)), (5000, None), (70_000, Some(70_000))] {
        let (mut response, mut server_half, id) = testbed.request().await;
        testbed.delegator().delegate_stream(1, id).unwrap();
        real.write(id, &bytes(length, 1), false);
        testbed.more_credit(1, 100_000);
        real.deliver().await;
        let end = StreamEnd::Reset {
            code: 0x102,
            final_size,
        };
        testbed.delegator().reclaim_stream(id, end).unwrap();
        server_half.reset(RESET_PLACEHOLDER).unwrap();
        let code = VarInt::from_u32(0x102);
        assert_eq!(end_of(&mut response).await, ReadError::Reset(code));
        // An inconsistent final size would have closed the connection (RFC 9000, section 4.5).
        testbed.carry(1000).await;
    }
    let (_, mut server_half, id) = testbed.request().await;
    testbed.delegator().delegate_stream(1, id).unwrap();
    let size = 1 << 40;
    let end = StreamEnd::Complete { final_size: size };
    let refused = testbed.delegator().reclaim_stream(id, end);
    assert_eq!(refused, Err(Error::FinalSize { stream: id, size }));
    let end = StreamEnd::Complete { final_size: 0 };
    testbed.delegator().reclaim_stream(id, end).unwrap();
    server_half.finish().unwrap();
    testbed.carry(1000).await;
    assert!(testbed.client.close_reason().is_none() && testbed.server.close_reason().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn returned_path_is_delegated_again() {
    let testbed = Testbed::new(2).await;
    let mut next = 0;
    for round in 0..12 {
        let (grant, events) = testbed.delegate().await;
        assert!(grant.path == 1 && grant.first >= next);
        let mut real = RealServer::new(grant, events, &testbed);
        let (mut response, mut server_half, id) = testbed.request().await;
        testbed.delegator().delegate_stream(1, id).unwrap();
        let content = bytes(20_000, round);
        real.write(id, &content, true);
        let (_, received) = tokio::join!(real.deliver(), response.read_to_end(20_000));
        assert!(received.unwrap() == content);
        assert_eq!(
            testbed.delegator().return_path(1, real.next),
            Err(Error::Streams(1))
        );
        let end = StreamEnd::Complete { final_size: 20_000 };
        testbed.delegator().reclaim_stream(id, end).unwrap();
        server_half.finish().unwrap();
        let before = real.grant.first - 1;
        assert_eq!(
            testbed.delegator().return_path(1, before),
            Err(Error::Number(before))
        );
        testbed.delegator().return_path(1, real.next).unwrap();
        assert_eq!(
            testbed.delegator().return_path(1, real.next),
            Err(Error::Path(1))
        );
        assert_eq!(
            testbed.delegator().delegate_stream(1, 400),
            Err(Error::Path(1))
        );
        next = real.next;
        while let Some(event) = real.events.recv().await {
            assert!(matches!(
                event,
                Event::Feedback(_) | Event::Closed | Event::Keys(_)
            ));
        }
        // noq uses the path again, with the numbers that follow.
        testbed.server.path(1u32.into()).unwrap().ping().unwrap();
        testbed.carry(30_000).await;
    }
    assert!(testbed.client.close_reason().is_none() && testbed.server.close_reason().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_server_loses_its_path_and_its_streams_are_reset() {
    let testbed = Testbed::new(3).await;
    let (grant, events) = testbed.delegate().await;
    let mut real = RealServer::new(grant, events, &testbed);
    testbed.more_credit(1, 100_000);
    let mut requests = Vec::new();
    for _ in 0..3 {
        let (response, server_half, id) = testbed.request().await;
        testbed.delegator().delegate_stream(1, id).unwrap();
        real.write(id, &bytes(9000, 1), false);
        requests.push((response, server_half, id));
    }
    real.deliver().await;
    testbed.delegator().abandon(1).unwrap();
    for (response, server_half, id) in &mut requests {
        let end = StreamEnd::Reset {
            code: 0x102,
            final_size: None,
        };
        // Each stream may have used all of the credit, so this waits until the client raises MAX_DATA.
        let reclaim = || testbed.delegator().reclaim_stream(*id, end);
        wait_for(|| (!matches!(reclaim(), Err(Error::Credit { .. }))).then_some(())).await;
        assert_eq!(reclaim(), Err(Error::Ended(*id)));
        server_half.reset(RESET_PLACEHOLDER).unwrap();
        let code = VarInt::from_u32(0x102);
        assert_eq!(end_of(response).await, ReadError::Reset(code));
    }
    let mut events = real.events;
    while events.recv().await.is_some() {}
    let (grant, _events) = testbed.delegate().await;
    assert_eq!(grant.path, 2);
    // The client has to raise MAX_DATA by all that was counted as sent.
    testbed.carry(1_000_000).await;
    testbed.server.path(1u32.into()).unwrap().close().unwrap();
    testbed.carry(1000).await;
    assert!(testbed.client.close_reason().is_none() && testbed.server.close_reason().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shared_limits_let_no_sender_starve() {
    let testbed = Testbed::new(3).await;
    // noq alone uses the client's window three times.
    testbed.carry(1_200_000).await;
    let mut real = Vec::new();
    for _ in 0..2 {
        let (grant, events) = testbed.delegate().await;
        assert!(grant.credit > 0 && grant.credit < 200_000);
        real.push(RealServer::new(grant, events, &testbed));
    }
    // Then the real servers alone, then all at once.
    for round in 0..6 {
        for real in &mut real {
            let (mut response, mut server_half, id) = testbed.request().await;
            let path = real.grant.path;
            testbed.delegator().delegate_stream(path, id).unwrap();
            testbed.more_credit(path, 200_000);
            let content = bytes(200_000, round);
            let mut sent = 0;
            let reading = response.read_to_end(200_000);
            let sending = async {
                real.write(id, &content, true);
                while sent < content.len() {
                    sent = real.deliver_within(sent).await;
                }
            };
            let carrying = testbed.carry(if round < 3 { 0 } else { 300_000 });
            let (received, (), ()) = tokio::join!(reading, sending, carrying);
            assert!(received.unwrap() == content);
            let end = StreamEnd::Complete {
                final_size: 200_000,
            };
            testbed.delegator().reclaim_stream(id, end).unwrap();
            server_half.finish().unwrap();
        }
    }
    assert!(testbed.client.close_reason().is_none() && testbed.server.close_reason().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_server_gets_frames_about_its_streams() {
    let testbed = Testbed::new(2).await;
    let (grant, events) = testbed.delegate().await;
    let mut real = RealServer::new(grant, events, &testbed);
    let (mut response, _server_half, id) = testbed.request().await;
    testbed.delegator().delegate_stream(1, id).unwrap();
    response.stop(VarInt::from_u32(77)).unwrap();
    while real.stream_frames.is_empty() {
        let event = real.events.recv().await.unwrap();
        real.take(event);
    }
    assert_eq!(real.stream_frames, [(id, 77)]);
    // noq did not get the frame.
    testbed.carry(1000).await;
    testbed.client.close(VarInt::from_u32(3), b"enough");
    let mut last = None;
    while let Some(event) = real.events.recv().await {
        last = Some(event);
    }
    assert_eq!(last, Some(Event::Closed));
    let delegated = wait_for(|| {
        Some(
            testbed
                .delegator()
                .delegate_path(&testbed.server, testbed.address),
        )
    });
    assert!(delegated.await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn violation_towards_real_server_closes_connection_with_its_code() {
    let testbed = Testbed::new(2).await;
    let (_grant, _events) = testbed.delegate().await;
    testbed.delegator().set_violation(0x0a);
    testbed
        .server
        .close(VarInt::from_u32(0), b"a packet that was not sent");
    let ConnectionError::ConnectionClosed(close) = testbed.client.closed().await else {
        panic!("not closed by the transport");
    };
    assert_eq!(
        close.error_code,
        noq::TransportErrorCode::PROTOCOL_VIOLATION
    );
    assert_eq!(close.reason[..], b"a packet that was not sent"[..25]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn single_path_client_gets_no_delegated_path() {
    let testbed = Testbed::new(0).await;
    testbed.carry(2_000_000).await;
    assert!(
        testbed
            .delegator()
            .delegate_path(&testbed.server, testbed.address)
            .is_none()
    );
    assert_eq!(
        testbed.delegator().delegate_stream(1, 0),
        Err(Error::Path(1))
    );
    assert_eq!(
        testbed.delegator().request_credit(1, 9),
        Err(Error::Path(1))
    );
}

/// The real server skips numbers as if it had sent that many packets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_of_real_server_count_towards_confidentiality_limit() {
    let testbed = Testbed::new(2).await;
    let (grant, events) = testbed.delegate().await;
    let mut real = RealServer::new(grant, events, &testbed);
    let (_response, _server_half, id) = testbed.request().await;
    testbed.delegator().delegate_stream(1, id).unwrap();
    // noq makes the first update by itself after a few packets.
    testbed.client.force_key_update();
    for before in [0, 1] {
        if before == 1 {
            // The limit of AES-GCM (RFC 9001, section 6.6).
            real.next += 1 << 23;
            real.write(id, &bytes(100, 1), false);
            real.deliver().await;
        }
        while real.grant.keys.generation == before {
            testbed.carry(1000).await;
            let recent = Duration::from_millis(10);
            if let Ok(event) = timeout(recent, real.events.recv()).await {
                real.take(event.expect("still delegated"));
            }
        }
    }
    assert_eq!(real.grant.keys.generation, 2);
}

/// noq at either end updates the keys by itself after 10 to 1000 packets, while packets of real servers are in flight,
/// unless they were updated before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_updated_before_first_delegation_and_not_after() {
    let testbed = Testbed::new(2).await;
    testbed.delegator().update_keys(&testbed.server).await;
    // The next packet uses the new keys.
    testbed.carry(1000).await;
    let (grant, mut events) = testbed.delegate().await;
    assert_eq!(grant.keys.generation, 1);
    let own = testbed.client.path(PathId::ZERO).expect("path 0");
    while testbed.client.stats().udp_tx.datagrams < 1200 {
        own.ping().unwrap();
        yield_now().await;
    }
    testbed.carry(1000).await;
    while let Some(event) = events.recv().now_or_never() {
        assert!(!matches!(event, Some(Event::Keys(_)) | None), "{event:?}");
    }
}

/// The client sends nothing on the delegated path, but its request on path 0 arrives from a new address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_server_is_notified_of_new_client_address() {
    let testbed = Testbed::new(2).await;
    let (grant, mut events) = testbed.delegate().await;
    testbed.nat.rebind([127, 0, 0, 2].into()).await;
    let (_response, _server_half, id) = testbed.request().await;
    testbed.delegator().delegate_stream(1, id).unwrap();
    let client = loop {
        if let Event::Moved { client, server } = events.recv().await.unwrap() {
            assert_eq!(server, grant.server);
            break client;
        }
    };
    assert_eq!(client.ip(), IpAddr::from([127, 0, 0, 2]));
}
