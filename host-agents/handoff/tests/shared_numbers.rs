// SPDX-License-Identifier: Apache-2.0
//! A client with a single path receives streams from its balancer and two real servers, which share the packet numbers.

use frontage_handoff::delegate::NumberRequest;
use frontage_handoff::delegator::{Error, StreamEnd};

use testbed::real_server::RealServer;
use testbed::{Testbed, bytes, wait_for};

#[allow(dead_code)]
mod testbed;

/// Length of each stream in bytes.
const LENGTH: usize = 300_000;

/// Return a request for `count` numbers, for packets that wait.
fn request(count: u64) -> NumberRequest {
    NumberRequest { count, ahead: 0 }
}

/// Start a delegation to a real server. Returns the delegation's id, too.
async fn delegate(testbed: &Testbed) -> (u32, RealServer) {
    let start = || {
        testbed
            .delegator()
            .delegate_numbers(&testbed.server, testbed.address)
    };
    let (id, grant, events) = wait_for(start).await;
    assert_eq!((grant.path, grant.server), (0, testbed.address));
    let mut real = RealServer::new(grant, events, testbed);
    real.delegation = Some(id);
    (id, real)
}

/// The client's receiving half, the server's sending half, and the id of a stream.
type RequestStream = (noq::RecvStream, noq::SendStream, u64);

/// Have `real` respond to a request.
async fn transfer(
    testbed: &Testbed,
    delegation: u32,
    real: &mut RealServer,
    stream: RequestStream,
    seed: usize,
) {
    let (mut response, mut server_half, id) = stream;
    testbed.delegator().delegate_stream(delegation, id).unwrap();
    let content = bytes(LENGTH, seed);
    real.write(id, &content, true);
    let sending = async {
        let mut sent = 0;
        while sent < content.len() {
            // Not more than needed, because noq needs credit, too.
            let wanted = ((LENGTH - sent) as u64).saturating_sub(real.free());
            testbed.more_credit(delegation, wanted);
            sent = real.deliver_within(sent).await;
        }
    };
    let ((), received) = tokio::join!(sending, response.read_to_end(LENGTH));
    assert!(received.unwrap() == content);
    let final_size = LENGTH as u64;
    let end = StreamEnd::Complete { final_size };
    testbed.delegator().reclaim_stream(id, end).unwrap();
    server_half.finish().unwrap();
    assert_eq!(server_half.stopped().await, Ok(None));
}

/// Two real servers and noq send at the same time, with key updates in between.
async fn three_senders(loss_percent: u32) {
    let testbed = Testbed::new(0).await;
    testbed.carry(100_000).await;
    let (one, mut first) = delegate(&testbed).await;
    let (two, mut second) = delegate(&testbed).await;
    assert_ne!(one, two);
    (first.loss_percent, second.loss_percent) = (loss_percent, loss_percent);
    for round in 0..3 {
        let streams = (testbed.request().await, testbed.request().await);
        tokio::join!(
            transfer(&testbed, one, &mut first, streams.0, round),
            transfer(&testbed, two, &mut second, streams.1, 10 + round),
            testbed.carry(5 << 20)
        );
        testbed.client.force_key_update();
    }
    assert!(first.grant.keys.generation > 0);
    for id in [one, two] {
        testbed.delegator().return_path(id, 0).unwrap();
        assert_eq!(
            testbed.delegator().allocate_numbers(id, request(1)),
            Err(Error::Path(id))
        );
    }
    testbed.carry(1 << 20).await;
    let (three, mut third) = delegate(&testbed).await;
    transfer(&testbed, three, &mut third, testbed.request().await, 20).await;
    assert!(testbed.client.close_reason().is_none() && testbed.server.close_reason().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_senders_deliver_streams_without_loss() {
    three_senders(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_senders_deliver_streams_with_1_percent_loss() {
    three_senders(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_senders_deliver_streams_with_5_percent_loss() {
    three_senders(5).await;
}

/// The gap is far larger than a truncated packet number can encode.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unused_numbers_do_not_disturb_other_senders() {
    let testbed = Testbed::new(0).await;
    let (id, mut real) = delegate(&testbed).await;
    for _ in 0..500 {
        testbed
            .delegator()
            .allocate_numbers(id, request(16))
            .unwrap();
    }
    testbed.carry(1 << 20).await;
    transfer(&testbed, id, &mut real, testbed.request().await, 1).await;
    let many = testbed.delegator().allocate_numbers(id, request(1000));
    let (_, numbers) = many.unwrap();
    assert_eq!(numbers.into_iter().flatten().count(), 64);
}

/// A client with several paths gets delegated paths only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn multipath_client_gets_no_delegation_by_numbers() {
    let testbed = Testbed::new(2).await;
    let start = || {
        testbed
            .delegator()
            .delegate_path(&testbed.server, testbed.address)
    };
    _ = wait_for(start).await;
    assert!(
        testbed
            .delegator()
            .delegate_numbers(&testbed.server, testbed.address)
            .is_none()
    );
    assert_eq!(
        testbed.delegator().allocate_numbers(1, request(1)),
        Err(Error::Path(1))
    );
    assert!(testbed.client.close_reason().is_none());
}
