//! Lender and borrower, where the client has one path: packet numbers go from one to the other as they are needed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use frontage_handoff::borrow::{Borrowed, Borrower, Error, Transport};
use frontage_handoff::lend::{End, Event, Events};
use frontage_quic::session::{Nonce, Observer, Packet};
use frontage_testkit::lossy;
use noq::congestion::CubicConfig;
use noq::{Runtime as _, TokioRuntime};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::task::JoinSet;

use lending::{Remembering, World, bytes, soon};

#[allow(dead_code)]
mod lending;

/// Bytes of each stream.
const LENGTH: usize = 5 << 20;

/// Notes the nonces of packets that are not noq's, with noq's.
struct Noting(Arc<Remembering>);

impl Observer for Noting {
    fn on_sent(&self, packet: &Packet<'_>) {
        let nonce = Nonce {
            path: packet.path,
            number: packet.number,
        };
        self.0.remember(packet.generation, nonce);
    }

    fn on_received(&self, _: &Packet<'_>) {}
}

/// A stream that the client opened: its ends, and its id.
type Asked = (noq::RecvStream, noq::SendStream, u64);

/// A real server of its own socket, that has a loan.
struct Real {
    name: u32,
    borrowed: Arc<Borrowed>,
    events: Option<Events>,
    _borrower: Borrower,
}

impl Real {
    async fn new(world: &World, lost: u32, seed: u64) -> Self {
        Self::beginning_with(CubicConfig::default(), world, lost, seed).await
    }

    async fn beginning_with(congestion: CubicConfig, world: &World, lost: u32, seed: u64) -> Self {
        let look = || world.lender().lend_numbers(&world.server, world.address);
        let (name, grant, events) = soon(look).await;
        let socket = world.socket.try_clone().unwrap();
        let socket = TokioRuntime.wrap_udp_socket(socket).unwrap();
        let borrower = Borrower::new(lossy(socket, lost, seed)).unwrap();
        let transport = Transport {
            congestion: Arc::new(congestion),
            mtu: 1200,
        };
        let opened = borrower.open(&grant, &transport, Arc::new(Noting(world.observer.clone())));
        let opened = opened.await;
        Self {
            name,
            borrowed: Arc::new(opened.unwrap()),
            events: Some(events),
            _borrower: borrower,
        }
    }

    /// Tells it all that there is, and gets it the numbers that it wants: none before it wants `window`, and up to `late` milliseconds after others may have got
    /// higher ones.
    fn relay(
        &mut self,
        world: &Arc<World>,
        (window, late): (u64, u64),
        relaying: &mut JoinSet<()>,
    ) {
        let (world, name, borrowed) = (world.clone(), self.name, self.borrowed.clone());
        let mut random = SmallRng::seed_from_u64(name.into());
        let mut events = self.events.take().unwrap();
        let (mut window, mut unanswered) = (window, Vec::new());
        relaying.spawn(async move {
            loop {
                tokio::select! {
                    event = events.recv() => match event {
                        Some(Event::Feedback(frames)) => borrowed.feedback(&frames).unwrap(),
                        Some(Event::Keys(keys)) => borrowed.rekey(&keys).unwrap(),
                        Some(Event::Moved { client, server }) => borrowed.moved(client, server).unwrap(),
                        Some(Event::ConnectionId(id)) => borrowed.connection_id(id).unwrap(),
                        Some(Event::Closed | Event::Unheard) | None => {
                            borrowed.revoke();
                            return;
                        }
                    },
                    wanted = borrowed.numbers_wanted() => {
                        unanswered.push(wanted);
                        if unanswered.iter().sum::<u64>() < window {
                            continue;
                        }
                        window = 0;
                        for wanted in unanswered.drain(..) {
                            // A loan that is over has none.
                            let Ok((keys, numbers)) = world.lender().more_numbers(name, wanted) else {
                                continue;
                            };
                            if let Some(keys) = keys {
                                borrowed.rekey(&keys).unwrap();
                            }
                            if late > 0 {
                                let late = Duration::from_millis(random.random_range(0..=late));
                                tokio::time::sleep(late).await;
                            }
                            borrowed.numbers(numbers).unwrap();
                        }
                    }
                }
            }
        });
    }

    async fn answer(&self, world: &World, asked: Asked, seed: usize) {
        let (mut answer, mut answering, id) = asked;
        let limit = world.lender().lend_stream(self.name, id).unwrap();
        self.borrowed.request(id, limit, b"please").unwrap();
        let left = self.borrowed.credit() - self.borrowed.used();
        let wanted = (LENGTH as u64).saturating_sub(left);
        world.more_credit(self.name, wanted);
        let content = Bytes::from(bytes(LENGTH, seed));
        let sending = async {
            let (stream, (mut send, mut recv)) = self.borrowed.accept().await.unwrap();
            assert_eq!(stream, id);
            assert_eq!(recv.read_to_end(10).await.unwrap(), b"please");
            send.write_chunk(content.clone()).await.unwrap();
            send.finish().unwrap();
            assert_eq!(send.stopped().await, Ok(None));
        };
        let ((), received) = tokio::join!(sending, answer.read_to_end(LENGTH));
        assert!(received.unwrap() == content);
        let final_size = self.borrowed.sent(id).unwrap();
        assert_eq!(final_size, LENGTH as u64);
        self.borrowed.release(id);
        let whole = End::Whole { final_size };
        world.lender().take_back_stream(id, whole).unwrap();
        answering.finish().unwrap();
        assert_eq!(answering.stopped().await, Ok(None));
    }
}

/// noq and two real servers send five megabytes each, at once; then, by other keys, again the real servers.
async fn three_senders(lost: u32, late: u64) {
    let world = Arc::new(World::new(0).await);
    let mut relaying = JoinSet::new();
    let mut one = Real::new(&world, lost, 7).await;
    let mut two = Real::new(&world, lost, 8).await;
    one.relay(&world, (0, late), &mut relaying);
    two.relay(&world, (0, late), &mut relaying);
    let asked = (world.ask().await, world.ask().await);
    tokio::join!(
        one.answer(&world, asked.0, 1),
        two.answer(&world, asked.1, 2),
        world.carry(LENGTH)
    );
    world.client.force_key_update();
    let asked = (world.ask().await, world.ask().await);
    tokio::join!(
        one.answer(&world, asked.0, 3),
        two.answer(&world, asked.1, 4),
    );
    for real in [one, two] {
        let next = real.borrowed.revoke();
        world.lender().give_back(real.name, next).unwrap();
    }
    while let Some(relayed) = relaying.join_next().await {
        relayed.unwrap();
    }
    world.carry(200_000).await;
    let nonces = world.observer.nonces.lock().unwrap();
    assert!(nonces.iter().any(|(generation, _)| *generation > 0));
    assert!(nonces.iter().all(|(_, nonce)| nonce.path == 0));
    drop(nonces);
    assert!(world.client.close_reason().is_none() && world.server.close_reason().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whole_streams_come_from_three_senders() {
    three_senders(0, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_packet_of_a_hundred_is_lost() {
    three_senders(1, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_packets_of_a_hundred_are_lost() {
    three_senders(5, 0).await;
}

/// The client gets the packets of each in another order than they have numbers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_are_used_late() {
    three_senders(1, 3).await;
}

/// However far the balancer is: noq makes as many packets as it may send while none has its number.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_of_packets_waits_for_numbers() {
    const WINDOW: u64 = 200;
    let world = Arc::new(World::new(0).await);
    let mut congestion = CubicConfig::default();
    congestion.initial_window(2 * WINDOW * 1200);
    let mut real = Real::beginning_with(congestion, &world, 0, 7).await;
    let mut relaying = JoinSet::new();
    real.relay(&world, (WINDOW, 0), &mut relaying);
    let asked = world.ask().await;
    real.answer(&world, asked, 1).await;
    let next = real.borrowed.revoke();
    world.lender().give_back(real.name, next).unwrap();
    while let Some(relayed) = relaying.join_next().await {
        relayed.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_are_given_once() {
    let world = World::new(0).await;
    let real = Real::new(&world, 0, 7).await;
    let (_, numbers) = world.lender().more_numbers(real.name, 3).unwrap();
    real.borrowed.numbers(numbers.clone()).unwrap();
    let again = real.borrowed.numbers(numbers.clone());
    assert_eq!(again, Err(Error::Number(numbers.start)));
}
