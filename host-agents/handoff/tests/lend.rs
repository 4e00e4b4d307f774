//! A client that knows nothing of QDSR gets streams of a connection from elsewhere, and the connection goes on.

use std::net::IpAddr;
use std::time::Duration;

use frontage_handoff::lend::{End, Error, Event, RESET};
use futures_util::FutureExt as _;
use noq::{ConnectionError, PathId, ReadError, VarInt};
use tokio::task::yield_now;
use tokio::time::timeout;

use lending::real_server::RealServer;
use lending::{World, bytes, soon};

mod lending;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lent_streams_come_from_elsewhere_and_others_go_on() {
    let world = World::new(2).await;
    let (grant, events) = world.lend().await;
    assert_eq!((grant.path, grant.server), (1, world.address));
    assert!(
        world
            .lender()
            .lend_path(&world.server, world.address)
            .is_none()
    );
    let mut real = RealServer::new(grant, events, &world);

    for round in 0..4 {
        let (mut answer, mut answering, id) = world.ask().await;
        assert_eq!(world.lender().lend_stream(1, id), Ok(None));
        assert_eq!(world.lender().lend_stream(1, id), Err(Error::Stream(id)));
        let content = bytes(60_000, round);
        real.write(id, &content, true);
        // What the client has is its limit: without noq's and the real server's limits, one would break the other's.
        let wanted = 60_000;
        let credit = world.more_credit(1, wanted);
        assert!(credit >= real.grant.credit);
        let (_, received, ()) = tokio::join!(
            real.deliver(),
            answer.read_to_end(60_000),
            world.carry(100_000)
        );
        assert!(received.unwrap() == content);
        let whole = End::Whole { final_size: 60_000 };
        world.lender().take_back_stream(id, whole).unwrap();
        assert_eq!(
            world.lender().take_back_stream(id, whole),
            Err(Error::Ended(id))
        );
        // noq forgets its half as soon as the client acknowledges what it does not see.
        answering.finish().unwrap();
        assert_eq!(answering.stopped().await, Ok(None));
        world.client.force_key_update();
    }
    assert!(real.grant.keys.generation > 0);
    assert!(world.client.close_reason().is_none() && world.server.close_reason().is_none());
    println!("{} datagrams in {} messages", real.acked, real.messages);
}

/// What the client hears of a stream that ended.
async fn ending(answer: &mut noq::RecvStream) -> ReadError {
    loop {
        match answer.read_chunk(10_000).await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it was reset"),
            Err(error) => return error,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_are_reset_where_they_ended() {
    let world = World::new(2).await;
    let (grant, events) = world.lend().await;
    let mut real = RealServer::new(grant, events, &world);
    for (length, final_size) in [(5000, Some(5000)), (5000, None), (70_000, Some(70_000))] {
        let (mut answer, mut answering, id) = world.ask().await;
        world.lender().lend_stream(1, id).unwrap();
        real.write(id, &bytes(length, 1), false);
        world.more_credit(1, 100_000);
        real.deliver().await;
        let end = End::Reset {
            code: 0x102,
            final_size,
        };
        world.lender().take_back_stream(id, end).unwrap();
        answering.reset(RESET).unwrap();
        let code = VarInt::from_u32(0x102);
        assert_eq!(ending(&mut answer).await, ReadError::Reset(code));
        // A false size would have ended the connection (RFC 9000, section 4.5).
        world.carry(1000).await;
    }
    let (_, mut answering, id) = world.ask().await;
    world.lender().lend_stream(1, id).unwrap();
    let size = 1 << 40;
    let end = End::Whole { final_size: size };
    let refused = world.lender().take_back_stream(id, end);
    assert_eq!(refused, Err(Error::FinalSize { stream: id, size }));
    let end = End::Whole { final_size: 0 };
    world.lender().take_back_stream(id, end).unwrap();
    answering.finish().unwrap();
    world.carry(1000).await;
    assert!(world.client.close_reason().is_none() && world.server.close_reason().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_comes_back_and_is_lent_again() {
    let world = World::new(2).await;
    let mut next = 0;
    for round in 0..12 {
        let (grant, events) = world.lend().await;
        assert!(grant.path == 1 && grant.first >= next);
        let mut real = RealServer::new(grant, events, &world);
        let (mut answer, mut answering, id) = world.ask().await;
        world.lender().lend_stream(1, id).unwrap();
        let content = bytes(20_000, round);
        real.write(id, &content, true);
        let (_, received) = tokio::join!(real.deliver(), answer.read_to_end(20_000));
        assert!(received.unwrap() == content);
        assert_eq!(
            world.lender().give_back(1, real.next),
            Err(Error::Streams(1))
        );
        let whole = End::Whole { final_size: 20_000 };
        world.lender().take_back_stream(id, whole).unwrap();
        answering.finish().unwrap();
        let before = real.grant.first - 1;
        assert_eq!(
            world.lender().give_back(1, before),
            Err(Error::Number(before))
        );
        world.lender().give_back(1, real.next).unwrap();
        assert_eq!(world.lender().give_back(1, real.next), Err(Error::Path(1)));
        assert_eq!(world.lender().lend_stream(1, 400), Err(Error::Path(1)));
        next = real.next;
        while let Some(event) = real.events.recv().await {
            assert!(matches!(
                event,
                Event::Feedback(_) | Event::Closed | Event::Keys(_)
            ));
        }
        // Also by noq, whose packets there follow.
        world.server.path(1u32.into()).unwrap().ping().unwrap();
        world.carry(30_000).await;
    }
    assert!(world.client.close_reason().is_none() && world.server.close_reason().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_path_of_a_dead_server_is_burnt_and_its_streams_end() {
    let world = World::new(3).await;
    let (grant, events) = world.lend().await;
    let mut real = RealServer::new(grant, events, &world);
    world.more_credit(1, 100_000);
    let mut asked = Vec::new();
    for _ in 0..3 {
        let (answer, answering, id) = world.ask().await;
        world.lender().lend_stream(1, id).unwrap();
        real.write(id, &bytes(9000, 1), false);
        asked.push((answer, answering, id));
    }
    real.deliver().await;
    world.lender().forsake(1).unwrap();
    for (answer, answering, id) in &mut asked {
        let end = End::Reset {
            code: 0x102,
            final_size: None,
        };
        // Each may have used all of the credit; the client gives that back.
        let taking = || world.lender().take_back_stream(*id, end);
        soon(|| (!matches!(taking(), Err(Error::Credit { .. }))).then_some(())).await;
        assert_eq!(taking(), Err(Error::Ended(*id)));
        answering.reset(RESET).unwrap();
        let code = VarInt::from_u32(0x102);
        assert_eq!(ending(answer).await, ReadError::Reset(code));
    }
    let mut events = real.events;
    while events.recv().await.is_some() {}
    let (grant, _events) = world.lend().await;
    assert_eq!(grant.path, 2);
    // All of it was taken to be sent; that is the client's to give again.
    world.carry(1_000_000).await;
    world.server.path(1u32.into()).unwrap().close().unwrap();
    world.carry(1000).await;
    assert!(world.client.close_reason().is_none() && world.server.close_reason().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_are_shared_and_nobody_starves() {
    let world = World::new(3).await;
    // Three windows of the client's by noq alone.
    world.carry(1_200_000).await;
    let mut real = Vec::new();
    for _ in 0..2 {
        let (grant, events) = world.lend().await;
        assert!(grant.credit > 0 && grant.credit < 200_000);
        real.push(RealServer::new(grant, events, &world));
    }
    // And by real servers alone, then by all at once.
    for round in 0..6 {
        for real in &mut real {
            let (mut answer, mut answering, id) = world.ask().await;
            let path = real.grant.path;
            world.lender().lend_stream(path, id).unwrap();
            world.more_credit(path, 200_000);
            let content = bytes(200_000, round);
            let mut sent = 0;
            let reading = answer.read_to_end(200_000);
            let sending = async {
                real.write(id, &content, true);
                while sent < content.len() {
                    sent = real.deliver_within(sent).await;
                }
            };
            let carrying = world.carry(if round < 3 { 0 } else { 300_000 });
            let (received, (), ()) = tokio::join!(reading, sending, carrying);
            assert!(received.unwrap() == content);
            let whole = End::Whole {
                final_size: 200_000,
            };
            world.lender().take_back_stream(id, whole).unwrap();
            answering.finish().unwrap();
        }
    }
    assert!(world.client.close_reason().is_none() && world.server.close_reason().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_server_hears_what_concerns_it() {
    let world = World::new(2).await;
    let (grant, events) = world.lend().await;
    let mut real = RealServer::new(grant, events, &world);
    let (mut answer, _answering, id) = world.ask().await;
    world.lender().lend_stream(1, id).unwrap();
    answer.stop(VarInt::from_u32(77)).unwrap();
    while real.told.is_empty() {
        let event = real.events.recv().await.unwrap();
        real.take(event);
    }
    assert_eq!(real.told, [(id, 77)]);
    // noq was not told, and has nothing to say about it.
    world.carry(1000).await;
    world.client.close(VarInt::from_u32(3), b"enough");
    let mut last = None;
    while let Some(event) = real.events.recv().await {
        last = Some(event);
    }
    assert_eq!(last, Some(Event::Closed));
    let lent = soon(|| Some(world.lender().lend_path(&world.server, world.address)));
    assert!(lent.await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_violation_towards_a_real_server_closes_the_connection_with_its_code() {
    let world = World::new(2).await;
    let (_grant, _events) = world.lend().await;
    world.lender().violated(0x0a);
    world
        .server
        .close(VarInt::from_u32(0), b"a packet that was not sent");
    let ConnectionError::ConnectionClosed(close) = world.client.closed().await else {
        panic!("by the transport");
    };
    assert_eq!(
        close.error_code,
        noq::TransportErrorCode::PROTOCOL_VIOLATION
    );
    assert_eq!(close.reason[..], b"a packet that was not sent"[..25]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_path_is_lent_to_a_client_of_one() {
    let world = World::new(0).await;
    world.carry(2_000_000).await;
    assert!(
        world
            .lender()
            .lend_path(&world.server, world.address)
            .is_none()
    );
    assert_eq!(world.lender().lend_stream(1, 0), Err(Error::Path(1)));
    assert_eq!(world.lender().need_credit(1, 9), Err(Error::Path(1)));
}

/// As if a real server had sent so many: what the client says is taken for true until that is asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_has_sealed_enough_is_updated_whoever_sealed() {
    let world = World::new(2).await;
    let (grant, events) = world.lend().await;
    let mut real = RealServer::new(grant, events, &world);
    let (_answer, _answering, id) = world.ask().await;
    world.lender().lend_stream(1, id).unwrap();
    // The first update is noq's own doing, after a few packets.
    world.client.force_key_update();
    for before in [0, 1] {
        if before == 1 {
            // AES-GCM's limit (RFC 9001, section 6.6).
            real.next += 1 << 23;
            real.write(id, &bytes(100, 1), false);
            real.deliver().await;
        }
        while real.grant.keys.generation == before {
            world.carry(1000).await;
            let recent = Duration::from_millis(10);
            if let Ok(event) = timeout(recent, real.events.recv()).await {
                real.take(event.expect("the path is still lent"));
            }
        }
    }
    assert_eq!(real.grant.keys.generation, 2);
}

/// Of noq's at either end, each updates keys by itself after 10 to 1000 packets, in the midst of what real servers have under way, unless one has done it before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_updated_before_a_path_is_lent_and_not_then() {
    let world = World::new(2).await;
    world.lender().renew_keys(&world.server).await;
    // By what is sent next.
    world.carry(1000).await;
    let (grant, mut events) = world.lend().await;
    assert_eq!(grant.keys.generation, 1);
    let own = world.client.path(PathId::ZERO).expect("it is there");
    while world.client.stats().udp_tx.datagrams < 1200 {
        own.ping().unwrap();
        yield_now().await;
    }
    world.carry(1000).await;
    while let Some(event) = events.recv().now_or_never() {
        assert!(!matches!(event, Some(Event::Keys(_)) | None), "{event:?}");
    }
}

/// The client says nothing by the lent path, but what it asks comes from elsewhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_server_hears_where_the_client_is() {
    let world = World::new(2).await;
    let (grant, mut events) = world.lend().await;
    world.nat.rebind([127, 0, 0, 2].into()).await;
    let (_answer, _answering, id) = world.ask().await;
    world.lender().lend_stream(1, id).unwrap();
    let client = loop {
        if let Event::Moved { client, server } = events.recv().await.unwrap() {
            assert_eq!(server, grant.server);
            break client;
        }
    };
    assert_eq!(client.ip(), IpAddr::from([127, 0, 0, 2]));
}
