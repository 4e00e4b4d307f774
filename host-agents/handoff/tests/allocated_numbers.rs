// SPDX-License-Identifier: Apache-2.0
//! Delegator and delegate together, for a client with a single path: real servers request packet numbers as needed.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use frontage_handoff::delegate::{Delegate, DelegatedConnection, Error, NumberRequest, Transport};
use frontage_handoff::delegator::{Event, Events, StreamEnd};
use frontage_quic::session::{Nonce, Observer, Packet};
use frontage_testkit::lossy;
use noq::congestion::CubicConfig;
use noq::{Runtime as _, TokioRuntime};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use testbed::{NonceRecorder, Testbed, bytes, wait_for};

#[allow(dead_code)]
mod testbed;

/// Length of each stream in bytes.
const LENGTH: usize = 5 << 20;

/// Records the nonces of a real server together with those of the balancer.
struct RecordNonces(Arc<NonceRecorder>);

impl Observer for RecordNonces {
    fn on_sent(&self, packet: &Packet<'_>) {
        let nonce = Nonce {
            path: packet.path,
            number: packet.number,
        };
        self.0.record(packet.generation, nonce);
    }

    fn on_received(&self, _: &Packet<'_>) {}
}

/// The client's receiving half, the server's sending half, and the id of a stream.
type RequestStream = (noq::RecvStream, noq::SendStream, u64);

/// A real server with its own socket and one delegation.
struct RealServer {
    id: u32,
    delegated: Arc<DelegatedConnection>,
    events: Option<Events>,
    /// Held from the allocation of numbers until the real server has them, so that it gets them in ascending order.
    order: Arc<Mutex<()>>,
    _delegate: Delegate,
}

impl RealServer {
    async fn new(testbed: &Testbed, lost: u32, seed: u64) -> Self {
        Self::with_congestion(CubicConfig::default(), testbed, lost, seed).await
    }

    async fn with_congestion(
        congestion: CubicConfig,
        testbed: &Testbed,
        lost: u32,
        seed: u64,
    ) -> Self {
        let start = || {
            testbed
                .delegator()
                .delegate_numbers(&testbed.server, testbed.address)
        };
        let (id, grant, events) = wait_for(start).await;
        let socket = testbed.socket.try_clone().unwrap();
        let socket = TokioRuntime.wrap_udp_socket(socket).unwrap();
        let delegate = Delegate::new(lossy(socket, lost, seed)).unwrap();
        let transport = Transport {
            congestion: Arc::new(congestion),
            mtu: 1200,
        };
        let opened = delegate.open(
            &grant,
            &transport,
            Arc::new(RecordNonces(testbed.observer.clone())),
        );
        let opened = opened.await;
        Self {
            id,
            delegated: Arc::new(opened.unwrap()),
            events: Some(events),
            order: Arc::default(),
            _delegate: delegate,
        }
    }

    /// Forward all events, and answer requests for numbers: none before `window` are requested, and each with a delay of up
    /// to `late` milliseconds, during which others may get higher ones.
    fn relay(
        &mut self,
        testbed: &Arc<Testbed>,
        (window, late): (u64, u64),
        relaying: &mut JoinSet<()>,
    ) {
        let (testbed, id, delegated) = (testbed.clone(), self.id, self.delegated.clone());
        let mut random = SmallRng::seed_from_u64(id.into());
        let (mut events, order) = (self.events.take().unwrap(), self.order.clone());
        let (mut window, mut unanswered) = (window, Vec::new());
        relaying.spawn(async move {
            loop {
                tokio::select! {
                    event = events.recv() => match event {
                        Some(Event::Feedback(frames)) => delegated.on_feedback(&frames).unwrap(),
                        Some(Event::Keys(keys)) => delegated.set_keys(&keys).unwrap(),
                        Some(Event::Moved { client, server }) => delegated.on_client_moved(client, server).unwrap(),
                        Some(Event::ConnectionId(id)) => delegated.set_connection_id(id).unwrap(),
                        Some(Event::NumbersExpired(below)) => delegated.on_numbers_expired(below),
                        Some(Event::Closed | Event::Unreachable) | None => {
                            delegated.revoke();
                            return;
                        }
                    },
                    wanted = delegated.numbers_needed() => {
                        unanswered.push(wanted);
                        if unanswered.iter().map(|wanted| wanted.count).sum::<u64>() < window {
                            continue;
                        }
                        window = 0;
                        for wanted in unanswered.drain(..) {
                            let _order = order.lock().await;
                            // Fails if the delegation has ended.
                            let Ok((keys, numbers)) = testbed.delegator().allocate_numbers(id, wanted) else {
                                continue;
                            };
                            if let Some(keys) = keys {
                                delegated.set_keys(&keys).unwrap();
                            }
                            if late > 0 {
                                let late = Duration::from_millis(random.random_range(0..=late));
                                tokio::time::sleep(late).await;
                            }
                            delegated.on_numbers(&numbers).unwrap();
                        }
                    }
                }
            }
        });
    }

    /// Get numbers ahead of a response, if there are any.
    async fn take_numbers_ahead(&self, testbed: &Testbed) -> Option<Range<u64>> {
        let _order = self.order.lock().await;
        let (generation, numbers) = testbed.delegator().allocate_numbers_ahead(self.id)?;
        let taken = self.delegated.on_numbers_ahead(generation, numbers.clone());
        taken.unwrap();
        Some(numbers)
    }

    /// Get numbers ahead, and respond to a request with `LENGTH` bytes.
    async fn respond(&self, testbed: &Testbed, stream: RequestStream, seed: usize) {
        self.take_numbers_ahead(testbed).await;
        self.respond_with(testbed, stream, bytes(LENGTH, seed))
            .await;
    }

    /// Respond to a request with `content`.
    async fn respond_with(&self, testbed: &Testbed, stream: RequestStream, content: Vec<u8>) {
        let length = content.len();
        let (mut response, mut server_half, id) = stream;
        let limit = testbed.delegator().delegate_stream(self.id, id).unwrap();
        self.delegated.request(id, limit, b"please").unwrap();
        let left = self.delegated.credit() - self.delegated.used();
        let wanted = (length as u64).saturating_sub(left);
        testbed.more_credit(self.id, wanted);
        let content = Bytes::from(content);
        let sending = async {
            let (stream, (mut send, mut recv)) = self.delegated.accept().await.unwrap();
            assert_eq!(stream, id);
            assert_eq!(recv.read_to_end(10).await.unwrap(), b"please");
            send.write_chunk(content.clone()).await.unwrap();
            send.finish().unwrap();
            assert_eq!(send.stopped().await, Ok(None));
        };
        let ((), received) = tokio::join!(sending, response.read_to_end(length));
        assert!(received.unwrap() == content);
        let final_size = self.delegated.sent(id).unwrap();
        assert_eq!(final_size, length as u64);
        self.delegated.release(id);
        let end = StreamEnd::Complete { final_size };
        testbed.delegator().reclaim_stream(id, end).unwrap();
        server_half.finish().unwrap();
        assert_eq!(server_half.stopped().await, Ok(None));
    }
}

/// noq and two real servers send five megabytes each at the same time; then the real servers again, with new keys.
async fn three_senders(loss_percent: u32, late: u64) {
    let testbed = Arc::new(Testbed::new(0).await);
    let mut relaying = JoinSet::new();
    let mut one = RealServer::new(&testbed, loss_percent, 7).await;
    let mut two = RealServer::new(&testbed, loss_percent, 8).await;
    one.relay(&testbed, (0, late), &mut relaying);
    two.relay(&testbed, (0, late), &mut relaying);
    let streams = (testbed.request().await, testbed.request().await);
    tokio::join!(
        one.respond(&testbed, streams.0, 1),
        two.respond(&testbed, streams.1, 2),
        testbed.carry(LENGTH)
    );
    testbed.client.force_key_update();
    let streams = (testbed.request().await, testbed.request().await);
    tokio::join!(
        one.respond(&testbed, streams.0, 3),
        two.respond(&testbed, streams.1, 4),
    );
    for real in [one, two] {
        let next = real.delegated.revoke();
        testbed.delegator().return_path(real.id, next).unwrap();
    }
    while let Some(relayed) = relaying.join_next().await {
        relayed.unwrap();
    }
    testbed.carry(200_000).await;
    let nonces = testbed.observer.nonces.lock().unwrap();
    assert!(nonces.iter().any(|(generation, _)| *generation > 0));
    assert!(nonces.iter().all(|(_, nonce)| nonce.path == 0));
    drop(nonces);
    assert!(testbed.client.close_reason().is_none() && testbed.server.close_reason().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_senders_deliver_streams_without_loss() {
    three_senders(0, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_senders_deliver_streams_with_1_percent_loss() {
    three_senders(1, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_senders_deliver_streams_with_5_percent_loss() {
    three_senders(5, 0).await;
}

/// The client receives packets out of order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_numbers_are_tolerated() {
    three_senders(1, 3).await;
}

/// However far the balancer is: noq makes as many packets as it may send while none has its number.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_of_packets_waits_for_numbers() {
    const WINDOW: u64 = 200;
    let testbed = Arc::new(Testbed::new(0).await);
    let mut congestion = CubicConfig::default();
    congestion.initial_window(2 * WINDOW * 1200);
    let mut real = RealServer::with_congestion(congestion, &testbed, 0, 7).await;
    let mut relaying = JoinSet::new();
    real.relay(&testbed, (WINDOW, 0), &mut relaying);
    let streams = testbed.request().await;
    real.respond(&testbed, streams, 1).await;
    let next = real.delegated.revoke();
    testbed.delegator().return_path(real.id, next).unwrap();
    while let Some(relayed) = relaying.join_next().await {
        relayed.unwrap();
    }
}

/// Return whether a packet was sealed with one of `numbers`.
fn has_used(testbed: &Testbed, numbers: &Range<u64>) -> bool {
    let nonces = testbed.observer.nonces.lock().unwrap();
    nonces
        .iter()
        .any(|(_, nonce)| numbers.contains(&nonce.number))
}

/// Respond with a few packets. `before` gets the numbers ahead, of which no packet has used any: this needs a runtime with a
/// single thread. Returns whether a packet used one of them.
async fn short_response(before: impl FnOnce(&RealServer, Range<u64>)) -> bool {
    let testbed = Arc::new(Testbed::new(0).await);
    let mut real = RealServer::new(&testbed, 0, 7).await;
    let mut relaying = JoinSet::new();
    // Before the first request for numbers is answered
    let numbers = real.take_numbers_ahead(&testbed).await.unwrap();
    before(&real, numbers.clone());
    real.relay(&testbed, (0, 0), &mut relaying);
    let stream = testbed.request().await;
    real.respond_with(&testbed, stream, bytes(3_000, 1)).await;
    has_used(&testbed, &numbers)
}

#[tokio::test]
async fn short_response_uses_numbers_ahead() {
    assert!(short_response(|_, _| {}).await);
}

#[tokio::test]
async fn expired_numbers_are_not_used() {
    let expire = |real: &RealServer, numbers: Range<u64>| {
        real.delegated.on_numbers_expired(numbers.end);
    };
    assert!(!short_response(expire).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_ahead_for_other_keys_are_ignored() {
    let testbed = Arc::new(Testbed::new(0).await);
    let mut real = RealServer::new(&testbed, 0, 7).await;
    let mut relaying = JoinSet::new();
    real.relay(&testbed, (0, 0), &mut relaying);
    let (generation, numbers) = testbed.delegator().allocate_numbers_ahead(real.id).unwrap();
    let ignored = real
        .delegated
        .on_numbers_ahead(generation + 1, numbers.clone());
    ignored.unwrap();
    let stream = testbed.request().await;
    real.respond_with(&testbed, stream, bytes(3_000, 1)).await;
    assert!(!has_used(&testbed, &numbers));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeated_numbers_are_rejected() {
    let testbed = Testbed::new(0).await;
    let real = RealServer::new(&testbed, 0, 7).await;
    let request = NumberRequest { count: 3, ahead: 0 };
    let allocated = testbed.delegator().allocate_numbers(real.id, request);
    let (_, numbers) = allocated.unwrap();
    real.delegated.on_numbers(&numbers).unwrap();
    let again = real.delegated.on_numbers(&numbers);
    assert_eq!(again, Err(Error::Number(numbers[0].start)));
}
