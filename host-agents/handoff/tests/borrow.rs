//! A noq client that knows of nothing gets streams from a host that is not its server.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::{Buf as _, Bytes};
use frontage_handoff::borrow::{Borrowed, Error};
use frontage_handoff::grant::Grant;
use frontage_quic::h3;
use frontage_quic_wire::write_varint;
use noq::{ConnectionError, TransportErrorCode, VarInt};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::task::JoinSet;

use scene::{Scene, Sent, hand_on, pattern, transport};

mod scene;

const LENGTH: usize = 10 << 20;

/// A stream of ten megabytes, with so many packets of a hundred lost on the way to the client, and key updates by both sides.
async fn ten_megabytes(lost: u32) {
    let mut scene = Scene::new(lost).await;
    let grant = scene.grant().await;
    let sent = Arc::<Sent>::default();
    let borrowed = scene.lend(&grant, sent.clone()).await;
    let mut asked = scene.ask(b"ten megabytes", &borrowed).await;

    let serving = async {
        let (id, (mut send, mut recv)) = borrowed.accept().await.unwrap();
        assert_eq!(id, asked.stream);
        assert_eq!(recv.read_to_end(100).await.unwrap(), b"ten megabytes");
        send.write_all(&pattern(LENGTH)).await.unwrap();
        send.finish().unwrap();
        assert_eq!(send.stopped().await.unwrap(), None);
    };
    let reading = async {
        let mut received = vec![0; 2 * LENGTH / 3];
        let (first, second) = received.split_at_mut(LENGTH / 3);
        asked.answer.read_exact(first).await.unwrap();
        scene.balancer.force_key_update();
        asked.answer.read_exact(second).await.unwrap();
        scene.client.force_key_update();
        received.extend(asked.answer.read_to_end(LENGTH).await.unwrap());
        received
    };
    let ((), received) = tokio::join!(serving, reading);
    assert!(received == pattern(LENGTH));
    assert_eq!(borrowed.sent(asked.stream), Some(LENGTH as u64));
    assert_eq!(borrowed.used(), LENGTH as u64);

    let next = borrowed.revoke();
    let sent = std::mem::take(&mut *sent.0.lock().unwrap());
    assert!(sent.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
    assert!(sent[0].0 >= grant.first);
    let (last, generation) = sent[sent.len() - 1];
    assert_eq!(last + 1, next);
    assert!(generation > 0, "no key update");
    assert!(scene.client.close_reason().is_none() && scene.balancer.close_reason().is_none());
    assert_eq!(scene.borrower.counts().bad_feedback.load(Relaxed), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_comes_whole() {
    ten_megabytes(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_packet_of_a_hundred_is_lost() {
    ten_megabytes(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_packets_of_a_hundred_are_lost() {
    ten_megabytes(5).await;
}

/// So many bytes on the next stream that is granted.
async fn answer(borrowed: &Borrowed, length: usize) -> noq::SendStream {
    let (_, (mut send, mut recv)) = borrowed.accept().await.unwrap();
    recv.read_to_end(1 << 16).await.unwrap();
    send.write_all(&pattern(length)).await.unwrap();
    send.finish().unwrap();
    send
}

/// Past 16 and past 4096 streams, noq's ids take more octets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_any_id_are_granted() {
    let mut scene = Scene::new(0).await;
    let borrowed = scene.lend(&scene.grant().await, Arc::new(())).await;
    let mut others = Vec::new();
    for (before, index) in [0, 3, 20, 21, 4097, 4098].into_iter().enumerate() {
        while before + others.len() < index {
            others.push(scene.client.open_bi().await.unwrap());
        }
        let mut asked = scene.ask(&pattern(5000), &borrowed).await;
        assert_eq!(asked.stream, 4 * index as u64);
        let sending = answer(&borrowed, 50_000);
        let (send, received) = tokio::join!(sending, asked.answer.read_to_end(50_001));
        assert!(received.unwrap() == pattern(50_000));
        assert_eq!(send.stopped().await, Ok(None));
        borrowed.release(asked.stream);
    }
    assert_eq!(borrowed.used(), 6 * 50_000);
}

/// What is left to others goes on where the first one stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_is_lent_again() {
    let mut scene = Scene::new(0).await;
    let mut grant = scene.grant().await;
    for length in [20_000, 30_000] {
        let sent = Arc::<Sent>::default();
        let borrowed = scene.lend(&grant, sent.clone()).await;
        let mut asked = scene.ask(b"again", &borrowed).await;
        let sending = answer(&borrowed, length);
        let (send, received) = tokio::join!(sending, asked.answer.read_to_end(length + 1));
        assert!(received.unwrap() == pattern(length));
        assert_eq!(send.stopped().await, Ok(None));

        let next = borrowed.revoke();
        let left = sent.0.lock().unwrap().len();
        // Nothing of this leaves.
        let mut asked = scene.ask(b"too late", &borrowed).await;
        drop(answer(&borrowed, length).await);
        asked.answer.stop(VarInt::from_u32(0)).unwrap();
        assert_eq!(borrowed.next_number(), next);
        assert_eq!(sent.0.lock().unwrap().len(), left);
        assert!(next > grant.first + length as u64 / 1500);
        // A real server that fell silent may have used more.
        grant.first = next + 1_000_000;
    }
    assert!(scene.client.close_reason().is_none());
}

/// A share of MAX_DATA is used, no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credit_and_limits_are_kept() {
    let mut scene = Scene::new(0).await;
    let mut grant = scene.grant().await;
    grant.credit = 30_000;
    let borrowed = scene.lend(&grant, Arc::new(())).await;
    let mut asked = scene.ask(b"limited", &borrowed).await;
    let more = async {
        let mut received = vec![0; 30_000];
        asked.answer.read_exact(&mut received).await.unwrap();
        assert_eq!((borrowed.used(), borrowed.credit()), (30_000, 30_000));
        // MAX_DATA of 50,000, in four octets.
        borrowed.feedback(&[0x10, 0x80, 0, 0xc3, 0x50]).unwrap();
        received.extend(asked.answer.read_to_end(50_000).await.unwrap());
        received
    };
    let (_, received) = tokio::join!(answer(&borrowed, 50_000), more);
    assert!(received == pattern(50_000));
    assert_eq!((borrowed.used(), borrowed.credit()), (50_000, 50_000));
}

/// noq closes its connection with the code with which the balancer is to close the client's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lies_end_what_is_borrowed() {
    let scene = Scene::new(0).await;
    let grant = scene.grant().await;
    let borrowed = scene.lend(&grant, Arc::new(())).await;
    assert!(matches!(
        borrowed.feedback(&[0x1e]),
        Err(Error::Feedback(_))
    ));
    assert_eq!(scene.borrower.counts().bad_feedback.load(Relaxed), 1);
    assert!(borrowed.connection.close_reason().is_none());
    // It acknowledges a packet that nobody sent.
    let mut frame = vec![0x02];
    write_varint(&mut frame, grant.first + 1000);
    frame.extend([0, 0, 0]);
    borrowed.feedback(&frame).unwrap();
    let ConnectionError::TransportError(error) = borrowed.connection.closed().await else {
        panic!("no fault of the client's");
    };
    assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
    assert!(scene.client.close_reason().is_none() && scene.balancer.close_reason().is_none());
}

/// Whatever is said, other connections of the borrower's go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn noise_ends_at_most_what_it_is_about() {
    const SEED: u64 = 11;
    let mut scene = Scene::new(0).await;
    let grant = scene.grant().await;
    // What is sent meanwhile, all with the same numbers, is no client's.
    let nowhere = std::net::UdpSocket::bind("[::1]:0").unwrap();
    let mut noisy = grant.clone();
    noisy.client = nowhere.local_addr().unwrap();
    let mut random = SmallRng::seed_from_u64(SEED);
    for _ in 0..100 {
        let borrowed = scene.lend(&noisy, Arc::new(())).await;
        borrowed.request(8, None, b"noise").unwrap();
        let send = answer(&borrowed, 20_000).await;
        for _ in 0..10 {
            let mut frames = vec![[0x02, 0x03, 0x05, 0x10, 0x11][random.random_range(0..5)]];
            for _ in 0..random.random_range(2..9) {
                let value = random.random::<u64>() >> random.random_range(2..63);
                let near = grant.first + value % 16;
                let choice = random.random_range(0..5);
                write_varint(&mut frames, [0, 8, value % 16, near, value][choice]);
            }
            // Refused or not.
            _ = borrowed.feedback(&frames);
        }
        drop(send);
    }
    let borrowed = scene.lend(&grant, Arc::new(())).await;
    let mut asked = scene.ask(b"and now", &borrowed).await;
    let sending = answer(&borrowed, 1000);
    let (_, received) = tokio::join!(sending, asked.answer.read_to_end(1001));
    assert!(received.unwrap() == pattern(1000));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grants_that_make_no_sense_are_refused() {
    let scene = Scene::new(0).await;
    let good = scene.grant().await;
    let open = async |change: fn(&mut Grant)| {
        let mut grant = good.clone();
        change(&mut grant);
        let transport = transport();
        let opened = scene.borrower.open(&grant, &transport, Arc::new(()));
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

/// A packet that goes where the client was is lost; it is sent again to where it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_moved_is_followed() {
    let mut scene = Scene::new(0).await;
    let true_grant = scene.grant().await;
    let nowhere = std::net::UdpSocket::bind("[::1]:0").unwrap();
    let mut grant = true_grant.clone();
    grant.client = nowhere.local_addr().unwrap();
    let borrowed = scene.lend(&grant, Arc::new(())).await;
    let mut asked = scene.ask(b"where to", &borrowed).await;
    let send = answer(&borrowed, 1000).await;
    let mut packet = [0; 2000];
    nowhere.recv(&mut packet).unwrap();
    borrowed
        .moved(true_grant.client, true_grant.server)
        .unwrap();
    assert!(asked.answer.read_to_end(1001).await.unwrap() == pattern(1000));
    assert_eq!(send.stopped().await, Ok(None));
}

/// Crate h3 serves borrowed streams as its own, by their true ids, and its control streams are nobody's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http3_is_served() {
    const REQUESTS: usize = 30;
    let mut scene = Scene::new(1).await;
    let borrowed = scene.lend(&scene.grant().await, Arc::new(())).await;
    let connection = h3::Connection::new(scene.client.clone());
    let (mut driver, requests) = ::h3::client::new(connection).await.unwrap();
    let driving = tokio::spawn(async move { driver.wait_idle().await });
    let mut asking = JoinSet::new();
    for _ in 0..REQUESTS {
        let mut requests = requests.clone();
        asking.spawn(async move {
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
    let mut server = ::h3::server::Connection::<_, Bytes>::new(borrowed.h3())
        .await
        .unwrap();
    let mut answering = JoinSet::new();
    for _ in 0..REQUESTS {
        hand_on(scene.accept().await, &borrowed).await;
        let resolver = server.accept().await.unwrap().expect("a request");
        answering.spawn(async move {
            let (_, mut stream) = resolver.resolve_request().await.unwrap();
            let id = stream.id().into_inner();
            let response = http::Response::builder().header("stream", id).body(());
            stream.send_response(response.unwrap()).await.unwrap();
            stream.send_data(pattern(50_000)).await.unwrap();
            // The client has it all once this is ready.
            stream.finish().await.unwrap();
        });
    }
    while let Some(asked) = asking.join_next().await {
        asked.unwrap();
    }
    while let Some(answered) = answering.join_next().await {
        answered.unwrap();
    }
    assert!(scene.client.close_reason().is_none());
    driving.abort();
}
