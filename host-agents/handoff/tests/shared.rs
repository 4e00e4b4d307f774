//! A client of one path gets streams by the same packet numbers from its server and two real ones.

use frontage_handoff::lend::{End, Error};

use lending::real_server::RealServer;
use lending::{World, bytes, soon};

#[allow(dead_code)]
mod lending;

/// Bytes of each stream.
const LENGTH: usize = 300_000;

/// Lends to one more; its loan's name, too.
async fn lend(world: &World) -> (u32, RealServer) {
    let look = || world.lender().lend_numbers(&world.server, world.address);
    let (name, grant, events) = soon(look).await;
    assert_eq!((grant.path, grant.server), (0, world.address));
    let mut real = RealServer::new(grant, events, world);
    real.loan = Some(name);
    (name, real)
}

/// A stream that the client opened: its ends, and its id.
type Asked = (noq::RecvStream, noq::SendStream, u64);

/// A stream that `real` answers.
async fn transfer(world: &World, name: u32, real: &mut RealServer, asked: Asked, seed: usize) {
    let (mut answer, mut answering, id) = asked;
    world.lender().lend_stream(name, id).unwrap();
    let content = bytes(LENGTH, seed);
    real.write(id, &content, true);
    let sending = async {
        let mut sent = 0;
        while sent < content.len() {
            // No more than it takes: noq, too, needs some.
            let wanted = ((LENGTH - sent) as u64).saturating_sub(real.free());
            world.more_credit(name, wanted);
            sent = real.deliver_within(sent).await;
        }
    };
    let ((), received) = tokio::join!(sending, answer.read_to_end(LENGTH));
    assert!(received.unwrap() == content);
    let final_size = LENGTH as u64;
    let whole = End::Whole { final_size };
    world.lender().take_back_stream(id, whole).unwrap();
    answering.finish().unwrap();
    assert_eq!(answering.stopped().await, Ok(None));
}

/// Two real servers and noq at once, whose packets are mixed; after some, keys are updated.
async fn three_senders(lost: u32) {
    let world = World::new(0).await;
    world.carry(100_000).await;
    let (one, mut first) = lend(&world).await;
    let (two, mut second) = lend(&world).await;
    assert_ne!(one, two);
    (first.lost, second.lost) = (lost, lost);
    for round in 0..3 {
        let asked = (world.ask().await, world.ask().await);
        tokio::join!(
            transfer(&world, one, &mut first, asked.0, round),
            transfer(&world, two, &mut second, asked.1, 10 + round),
            world.carry(5 << 20)
        );
        world.client.force_key_update();
    }
    assert!(first.grant.keys.generation > 0);
    for name in [one, two] {
        world.lender().give_back(name, 0).unwrap();
        assert_eq!(world.lender().more_numbers(name, 1), Err(Error::Path(name)));
    }
    world.carry(1 << 20).await;
    let (three, mut third) = lend(&world).await;
    transfer(&world, three, &mut third, world.ask().await, 20).await;
    assert!(world.client.close_reason().is_none() && world.server.close_reason().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_come_from_three_senders() {
    three_senders(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_packet_of_a_hundred_is_lost() {
    three_senders(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_packets_of_a_hundred_are_lost() {
    three_senders(5).await;
}

/// Far more than a short number tells apart, all of others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_that_nobody_used_are_no_hindrance() {
    let world = World::new(0).await;
    let (name, mut real) = lend(&world).await;
    for _ in 0..500 {
        world.lender().more_numbers(name, 16).unwrap();
    }
    world.carry(1 << 20).await;
    transfer(&world, name, &mut real, world.ask().await, 1).await;
    let (_, numbers) = world.lender().more_numbers(name, 1000).unwrap();
    assert_eq!(numbers.count(), 64);
}

/// Where the client has several paths, only these are lent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_client_gets_what_it_knows() {
    let world = World::new(2).await;
    let look = || world.lender().lend_path(&world.server, world.address);
    _ = soon(look).await;
    assert!(
        world
            .lender()
            .lend_numbers(&world.server, world.address)
            .is_none()
    );
    assert_eq!(world.lender().more_numbers(1, 1), Err(Error::Path(1)));
    assert!(world.client.close_reason().is_none());
}
