// SPDX-License-Identifier: Apache-2.0
//! Failures reach the programs, and the proxies forget failed sessions.

use std::io::ErrorKind;
use std::time::Duration;

use frontage_mobile::key::Secret;
use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::bed::{Bed, LIMIT, Settings, eventually, metric};

/// Return the error with which a connection ends.
async fn failure(stream: &mut TcpStream) -> ErrorKind {
    let read = timeout(LIMIT, stream.read(&mut [0; 10])).await.unwrap();
    read.expect_err("the connection must not end in the ordinary way")
        .kind()
}

#[tokio::test]
async fn reset_of_the_program_reaches_the_service() {
    let bed = Bed::start(Settings::default()).await;
    let (program, mut service) = bed.connect().await;
    SockRef::from(&program)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
    drop(program);
    assert_eq!(failure(&mut service).await, ErrorKind::ConnectionReset);
    let both = [&bed.client_metrics, &bed.server_metrics];
    eventually(|| {
        both.iter()
            .all(|metrics| metric(metrics, "sessions") == 0.0)
    })
    .await;
    assert_eq!(
        metric(
            &bed.client_metrics,
            "sessions_ended_total{result=\"local_failed\"}"
        ),
        1.0
    );
    assert_eq!(
        metric(
            &bed.server_metrics,
            "sessions_ended_total{result=\"peer_reset\"}"
        ),
        1.0
    );
}

#[tokio::test]
async fn unreachable_service_resets_the_program() {
    let bed = Bed::start(Settings::default()).await;
    let Bed { service, local, .. } = bed;
    drop(service);
    let mut program = TcpStream::connect(local).await.unwrap();
    assert_eq!(failure(&mut program).await, ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn peer_that_does_not_come_back_ends_the_session() {
    let session_timeout = Duration::from_millis(300);
    let bed = Bed::start(Settings {
        session_timeout,
        ..Settings::default()
    })
    .await;
    let (mut program, mut service) = bed.connect().await;
    // Nothing answers there.
    bed.target.send_modify(|target| target.port = 1);
    program.write_all(b"x").await.unwrap();
    assert_eq!(failure(&mut program).await, ErrorKind::ConnectionReset);
    assert_eq!(failure(&mut service).await, ErrorKind::ConnectionReset);
    let gone = || {
        metric(
            &bed.client_metrics,
            "sessions_ended_total{result=\"peer_gone\"}",
        )
    };
    eventually(|| gone() == 1.0).await;
}

#[tokio::test]
async fn sessions_above_the_limit_are_refused() {
    let bed = Bed::start(Settings {
        max_sessions: 1,
        ..Settings::default()
    })
    .await;
    let (mut program, mut service) = bed.connect().await;
    let mut second = TcpStream::connect(bed.local).await.unwrap();
    assert_eq!(failure(&mut second).await, ErrorKind::ConnectionReset);
    assert_eq!(
        metric(
            &bed.server_metrics,
            "carriers_rejected_total{reason=\"full\"}"
        ),
        1.0
    );
    program.write_all(b"x").await.unwrap();
    assert_eq!(service.read_u8().await.unwrap(), b'x');
    drop((program, service));
    eventually(|| metric(&bed.client_metrics, "sessions") == 0.0).await;
    bed.connect().await;
}

#[tokio::test]
async fn stranger_cannot_end_a_session() {
    let bed = Bed::start(Settings::default()).await;
    let (mut program, _service) = bed.connect().await;
    // A server with a different key does not know the session either.
    let stranger = Bed::start(Settings::default()).await;
    bed.target
        .send_modify(|target| target.port = stranger.carriers.port());
    let pending = timeout(Duration::from_millis(300), program.read_u8()).await;
    assert!(pending.is_err(), "{pending:?}");
    bed.target
        .send_modify(|target| target.port = bed.carriers.port());
    eventually(|| metric(&bed.client_metrics, "resumptions_total") >= 1.0).await;
}

#[tokio::test]
async fn session_that_the_server_does_not_know_is_reset() {
    let key = Secret::random();
    let same_key = || Settings {
        client_key: key.clone(),
        server_key: key.clone(),
        ..Settings::default()
    };
    let (bed, restarted) = (Bed::start(same_key()).await, Bed::start(same_key()).await);
    let (mut program, _service) = bed.connect().await;
    let port = restarted.carriers.port();
    bed.target.send_modify(|target| target.port = port);
    assert_eq!(failure(&mut program).await, ErrorKind::ConnectionReset);
    assert_eq!(
        metric(
            &bed.client_metrics,
            "sessions_ended_total{result=\"refused\"}"
        ),
        1.0
    );
}
