// SPDX-License-Identifier: Apache-2.0
//! Streams in both directions arrive whole while carriers break.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use crate::bed::{Bed, LIMIT, Settings, eventually, metric};

/// Bytes in each direction.
const SIZE: usize = 20_000_000;
/// Moves during a transfer.
const MAX_MOVES: u32 = 200;

fn stream(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(SIZE).collect()
}

/// Send a stream in each direction, and check that both arrive whole.
async fn exchange((program, service): (TcpStream, TcpStream)) {
    let one = tokio::spawn(converse(program, 1, 2));
    let other = tokio::spawn(converse(service, 2, 1));
    one.await.unwrap();
    other.await.unwrap();
}

async fn converse(stream_: TcpStream, sent: u64, expected: u64) {
    let (mut reader, mut writer) = stream_.into_split();
    let sending = tokio::spawn(async move {
        writer.write_all(&stream(sent)).await.unwrap();
        writer.shutdown().await.unwrap();
    });
    let mut received = Vec::new();
    reader.read_to_end(&mut received).await.unwrap();
    assert!(received == stream(expected), "{} bytes", received.len());
    sending.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_arrive_whole_while_both_ends_move() {
    let bed = Bed::start(Settings::default()).await;
    let transfer = tokio::spawn(exchange(bed.connect().await));
    let mut moves = 0;
    let resumptions = || metric(&bed.client_metrics, "resumptions_total");
    while !transfer.is_finished() && moves < MAX_MOVES {
        let before = resumptions();
        moves += 1;
        bed.move_server(1 + (moves % 9) as u8);
        if moves % 3 == 0 {
            bed.move_client().await;
        }
        // On a busy machine, no carrier would transmit anything if the next move came before it.
        let resumed = async {
            while resumptions() == before {
                sleep(Duration::from_millis(1)).await;
            }
        };
        let _ = timeout(Duration::from_secs(1), resumed).await;
        sleep(Duration::from_millis(25)).await;
    }
    timeout(LIMIT, transfer).await.unwrap().unwrap();
    assert!(
        moves > 3 && resumptions() >= 3.0,
        "{moves} moves, {} resumptions",
        resumptions()
    );
    let finished = || {
        metric(
            &bed.client_metrics,
            "sessions_ended_total{result=\"finished\"}",
        )
    };
    eventually(|| finished() == 1.0).await;
}

/// Relay connections to `server`, each until it has transmitted some bytes.
async fn cutting_relay(server: std::net::SocketAddr) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        // Cuts fall into handshakes, into lengths and into records.
        for cut in (1..).map(|n: u64| n * n * 7 % 300_001) {
            let (near, _) = listener.accept().await.unwrap();
            let far = TcpStream::connect(server).await.unwrap();
            tokio::spawn(relay(near, far, cut));
        }
    });
    port
}

async fn relay(mut near: TcpStream, mut far: TcpStream, cut: u64) {
    let (near_reader, mut near_writer) = near.split();
    let (far_reader, mut far_writer) = far.split();
    let (mut up, mut down) = (near_reader.take(cut), far_reader.take(3 * cut));
    tokio::select! {
        _ = tokio::io::copy(&mut up, &mut far_writer) => {}
        _ = tokio::io::copy(&mut down, &mut near_writer) => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_arrive_whole_whatever_byte_carriers_break_at() {
    let bed = Bed::start(Settings::default()).await;
    let port = cutting_relay(bed.carriers).await;
    bed.target.send_modify(|target| target.port = port);
    timeout(LIMIT, async { exchange(bed.connect().await).await })
        .await
        .unwrap();
    assert!(metric(&bed.server_metrics, "resumptions_total") > 20.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn halves_close_separately_and_idle_connections_survive_moves() {
    let bed = Bed::start(Settings::default()).await;
    let (mut program, mut service) = bed.connect().await;
    program.write_all(b"question").await.unwrap();
    program.shutdown().await.unwrap();
    let mut question = String::new();
    service.read_to_string(&mut question).await.unwrap();
    assert_eq!(question, "question");
    for host in 2..5 {
        bed.move_server(host);
        sleep(Duration::from_millis(50)).await;
    }
    service.write_all(b"answer").await.unwrap();
    drop(service);
    let mut answer = String::new();
    timeout(LIMIT, program.read_to_string(&mut answer))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(answer, "answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_connections_move_together() {
    let bed = Bed::start(Settings::default()).await;
    let mut echoes = Vec::new();
    for number in 0..8u8 {
        let (mut program, mut service) = bed.connect().await;
        tokio::spawn(async move {
            let (mut reader, mut writer) = service.split();
            let _ = tokio::io::copy(&mut reader, &mut writer).await;
        });
        echoes.push(tokio::spawn(async move {
            for round in 0..50 {
                let sent = [number, round];
                program.write_all(&sent).await.unwrap();
                let mut received = [0; 2];
                program.read_exact(&mut received).await.unwrap();
                assert_eq!(received, sent);
                sleep(Duration::from_millis(4)).await;
            }
        }));
    }
    for host in 2..12 {
        bed.move_server(host);
        sleep(Duration::from_millis(20)).await;
    }
    for echo in echoes {
        timeout(LIMIT, echo).await.unwrap().unwrap();
    }
}
