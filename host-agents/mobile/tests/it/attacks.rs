// SPDX-License-Identifier: Apache-2.0
//! Strangers and recordings cannot open, resume or end sessions.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use frontage_mobile::key::Secret;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::bed::{Bed, LIMIT, Settings, eventually, metric};

/// The bytes that clients sent through a relay, by connection.
type Recordings = Arc<Mutex<Vec<Vec<u8>>>>;

/// Relay connections to `server` from every address of 127.0.0.0/8, and record what clients send.
async fn recording_relay(server: SocketAddr) -> (u16, Recordings) {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let recordings = Recordings::default();
    let shared = recordings.clone();
    tokio::spawn(async move {
        loop {
            let (near, _) = listener.accept().await.unwrap();
            let far = TcpStream::connect(server).await.unwrap();
            let index = shared.lock().len();
            shared.lock().push(Vec::new());
            tokio::spawn(record(near, far, shared.clone(), index));
        }
    });
    (port, recordings)
}

async fn record(near: TcpStream, far: TcpStream, recordings: Recordings, index: usize) {
    let (mut near_reader, mut near_writer) = near.into_split();
    let (mut far_reader, mut far_writer) = far.into_split();
    let down = tokio::io::copy(&mut far_reader, &mut near_writer);
    let up = async {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = near_reader.read(&mut buffer).await {
            recordings.lock()[index].extend(&buffer[..count]);
            far_writer.write_all(&buffer[..count]).await.unwrap();
        }
    };
    tokio::select! {
        _ = down => {}
        () = up => {}
    }
}

/// Send bytes to the server, and return its whole answer.
async fn answer(server: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(server).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    let _ = timeout(LIMIT, stream.read_to_end(&mut answer))
        .await
        .unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn recordings_neither_resume_nor_open_sessions() {
    let bed = Bed::start(Settings::default()).await;
    let (port, recordings) = recording_relay(bed.carriers).await;
    bed.target.send_modify(|target| target.port = port);
    let (mut program, mut service) = bed.connect().await;
    let moved = vec![IpAddr::from([127, 0, 0, 2])];
    bed.target.send_modify(|target| target.addresses = moved);
    eventually(|| metric(&bed.server_metrics, "resumptions_total") >= 1.0).await;
    let resumptions = metric(&bed.server_metrics, "resumptions_total");
    let (opening, resumption) = {
        let recorded = recordings.lock();
        (recorded[0].clone(), recorded.last().unwrap().clone())
    };
    assert_eq!(answer(bed.carriers, &resumption).await, b"");
    // The server closes a rejected carrier before it counts it.
    let repeated = "carriers_rejected_total{reason=\"repeated\"}";
    eventually(|| metric(&bed.server_metrics, repeated) >= 1.0).await;
    assert_eq!(
        metric(&bed.server_metrics, "resumptions_total"),
        resumptions
    );
    // The server answers the recorded opening, but its next record cannot be decrypted.
    answer(bed.carriers, &opening).await;
    let opened = timeout(Duration::from_millis(300), bed.service.accept()).await;
    assert!(opened.is_err(), "a recording reached the service");
    program.write_all(b"x").await.unwrap();
    assert_eq!(
        timeout(LIMIT, service.read_u8()).await.unwrap().unwrap(),
        b'x'
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn random_bytes_are_rejected_and_counted() {
    let bed = Bed::start(Settings::default()).await;
    for first in 0..3 {
        let mut bytes = vec![first; 400];
        bytes[1..17].fill(0);
        assert_eq!(answer(bed.carriers, &bytes).await, b"");
    }
    let rejected = |reason: &str| {
        metric(
            &bed.server_metrics,
            &format!("carriers_rejected_total{{reason=\"{reason}\"}}"),
        )
    };
    eventually(|| rejected("version") == 2.0 && rejected("authentication") == 1.0).await;
}

#[tokio::test]
async fn client_with_another_key_reaches_no_service() {
    let settings = Settings {
        client_key: Secret::random(),
        ..Settings::default()
    };
    let bed = Bed::start(settings).await;
    let _program = TcpStream::connect(bed.local).await.unwrap();
    let rejected = || {
        metric(
            &bed.server_metrics,
            "carriers_rejected_total{reason=\"authentication\"}",
        )
    };
    eventually(|| rejected() >= 1.0).await;
    let reached = timeout(Duration::from_millis(300), bed.service.accept()).await;
    assert!(reached.is_err());
}
