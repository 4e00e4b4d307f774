//! Lender and borrower: a client that is noq's and nothing else gets streams from a host that is not its server.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use frontage_handoff::borrow::{Borrowed, Borrower, Transport};
use frontage_handoff::grant::Grant;
use frontage_handoff::lend::{End, Error, Event, Events};
use frontage_testkit::lossy;
use noq::congestion::CubicConfig;
use noq::{PathId, Runtime as _, TokioRuntime};

use lending::{World, bytes};

#[allow(dead_code)]
mod lending;

/// A real server's end, which sends from the server's address.
fn borrower(world: &World, lost: u32) -> Borrower {
    let socket = world.socket.try_clone().unwrap();
    let socket = TokioRuntime.wrap_udp_socket(socket).unwrap();
    let seed = 7;
    Borrower::new(lossy(socket, lost, seed)).unwrap()
}

async fn borrow(borrower: &Borrower, grant: &Grant) -> Arc<Borrowed> {
    let transport = Transport {
        congestion: Arc::new(CubicConfig::default()),
        mtu: 1200,
    };
    let opened = borrower.open(grant, &transport, Arc::new(())).await;
    Arc::new(opened.unwrap())
}

/// Tells a real server all that there is.
async fn relay(mut events: Events, borrowed: Arc<Borrowed>) {
    while let Some(event) = events.recv().await {
        match event {
            Event::Feedback(frames) => borrowed.feedback(&frames).unwrap(),
            Event::Keys(keys) => borrowed.rekey(&keys).unwrap(),
            Event::Moved { client, server } => borrowed.moved(client, server).unwrap(),
            Event::ConnectionId(id) => borrowed.connection_id(id).unwrap(),
            Event::Closed | Event::Unheard => drop(borrowed.revoke()),
        }
    }
}

/// A stream that `borrowed` answers with `length` bytes.
async fn transfer(world: &World, path: u32, borrowed: &Borrowed, length: usize, seed: usize) {
    let (mut answer, mut answering, id) = world.ask().await;
    let limit = world.lender().lend_stream(path, id).unwrap();
    borrowed.request(id, limit, b"please").unwrap();
    let left = borrowed.credit() - borrowed.used();
    let wanted = (length as u64).saturating_sub(left);
    world.more_credit(path, wanted);
    let content = Bytes::from(bytes(length, seed));
    let sending = async {
        let (stream, (mut send, mut recv)) = borrowed.accept().await.unwrap();
        assert_eq!(stream, id);
        assert_eq!(recv.read_to_end(10).await.unwrap(), b"please");
        send.write_chunk(content.clone()).await.unwrap();
        send.finish().unwrap();
        assert_eq!(send.stopped().await, Ok(None));
    };
    let ((), received) = tokio::join!(sending, answer.read_to_end(length));
    assert!(received.unwrap() == content);
    let final_size = borrowed.sent(id).unwrap();
    assert_eq!(final_size, length as u64);
    borrowed.release(id);
    let whole = End::Whole { final_size };
    world.lender().take_back_stream(id, whole).unwrap();
    answering.finish().unwrap();
    assert_eq!(answering.stopped().await, Ok(None));
}

/// Two real servers at once, each on a path of its own, while the balancer's own streams go on.
async fn two_real_servers(lost: u32) {
    let world = World::new(3).await;
    let mut serving = tokio::task::JoinSet::new();
    let borrower = borrower(&world, lost);
    let mut ends = Vec::new();
    for seed in 0..2 {
        let (grant, events) = world.lend().await;
        let borrowed = borrow(&borrower, &grant).await;
        serving.spawn(relay(events, borrowed.clone()));
        ends.push((grant.path, borrowed, seed));
    }
    for (path, borrowed, seed) in &ends {
        transfer(&world, *path, borrowed, 5 << 20, *seed).await;
        world.client.force_key_update();
        world.carry(200_000).await;
    }
    for (path, borrowed, _) in ends {
        let next = borrowed.revoke();
        world.lender().give_back(path, next).unwrap();
    }
    assert!(world.client.close_reason().is_none() && world.server.close_reason().is_none());
    serving.abort_all();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whole_streams_come_from_two_real_servers() {
    two_real_servers(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_packet_of_a_hundred_is_lost() {
    two_real_servers(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_packets_of_a_hundred_are_lost() {
    two_real_servers(5).await;
}

/// The same path, again and again, by real servers that come and go.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_goes_from_one_to_the_next() {
    let world = World::new(2).await;
    for round in 0..5 {
        let borrower = borrower(&world, 1);
        let (grant, events) = world.lend().await;
        let borrowed = borrow(&borrower, &grant).await;
        let relaying = tokio::spawn(relay(events, borrowed.clone()));
        transfer(&world, 1, &borrowed, 300_000, round).await;
        let next = borrowed.revoke();
        assert!(next > grant.first);
        relaying.abort();
        _ = relaying.await;
        world.lender().give_back(1, next).unwrap();
    }
    assert!(world.client.close_reason().is_none() && world.server.close_reason().is_none());
}

/// A NAT before the client takes another port, then another address: with that, what is known of the way counts no more (RFC 9000, section 9.4).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_moves_is_followed() {
    let world = World::new(2).await;
    let borrower = borrower(&world, 0);
    let (grant, events) = world.lend().await;
    let borrowed = borrow(&borrower, &grant).await;
    let relaying = tokio::spawn(relay(events, borrowed.clone()));
    let window = || {
        let state = borrowed.connection.congestion_state(PathId::ZERO);
        state.unwrap().window()
    };
    let first = window();
    transfer(&world, 1, &borrowed, 3 << 20, 1).await;
    let grown = window();
    assert!(grown > 2 * first, "{first} has grown to {grown}");
    let here = IpAddr::from([127, 0, 0, 1]);
    world.nat.rebind(here).await;
    transfer(&world, 1, &borrowed, 100_000, 2).await;
    assert!(window() > first, "{first} again at another port");
    for last in [2, 3, 1] {
        world.nat.rebind([127, 0, 0, last].into()).await;
        transfer(&world, 1, &borrowed, 1000, 3).await;
        let new = window();
        assert!(new < first + 2000, "{first} has become {new}");
        transfer(&world, 1, &borrowed, 3 << 20, 4).await;
    }
    // Who knows that the client is there has it no more.
    let next = borrowed.revoke();
    let refused = world.lender().give_back(1, next);
    assert_eq!(refused, Err(Error::Moved(1)));
    world.lender().forsake(1).unwrap();
    relaying.abort();
    assert!(world.client.close_reason().is_none() && world.server.close_reason().is_none());
}
