// SPDX-License-Identifier: Apache-2.0
//! An unmodified QUIC client (ngtcp2's): behind a plain SOCKS client, which does not know QuicSocks, and with the
//! `LD_PRELOAD` library.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use frontage_quicsocks::outcome::{Lookup, ServerDatagram};
use frontage_quicsocks_client::socks::{Destination, encode_header, parse_datagram};
use test_requirements::require;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::testbed::{
    NAME, Options, Resolver, TEST_TIMEOUT, start_proxy, start_server, start_slow_path,
};

/// Adds SOCKS headers to datagrams from the client and strips them from datagrams to it.
async fn run_socks_client(local: UdpSocket, relay: UdpSocket, head: Vec<u8>) {
    let (mut out, mut back) = ([0; 2048], [0; 2048]);
    let mut client = None;
    loop {
        tokio::select! {
            received = local.recv_from(&mut out) => {
                let (n, from) = received.unwrap();
                client = Some(from);
                relay.send(&[&head[..], &out[..n]].concat()).await.unwrap();
            }
            received = relay.recv(&mut back) => {
                let n = received.unwrap();
                let (_, payload) = parse_datagram(&back[..n]).unwrap();
                if let Some(client) = client {
                    local.send_to(payload, client).await.unwrap();
                }
            }
        }
    }
}

#[tokio::test]
async fn ngtcp2_accepts_retry_answered_by_proxy() {
    let Some(resolver) = Resolver::start().await else {
        return;
    };
    let (proxy, server) = (
        start_proxy(resolver.address, Options::default()).await,
        start_server(true),
    );
    let mut control = TcpStream::connect(proxy.addresses()[0]).await.unwrap();
    let request = [5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0];
    control.write_all(&request).await.unwrap();
    let mut answer = [0; 24];
    control.read_exact(&mut answer).await.unwrap();
    let relay = UdpSocket::bind("[::1]:0").await.unwrap();
    let port = u16::from_be_bytes([answer[22], answer[23]]);
    relay.connect(("::1", port)).await.unwrap();
    let local = UdpSocket::bind("[::1]:0").await.unwrap();
    let port = local.local_addr().unwrap().port();
    let head = encode_header(&Destination::Name(NAME.into(), server.port));
    let socks_client = tokio::spawn(run_socks_client(local, relay, head));
    let client = tokio::task::spawn_blocking(move || {
        Command::new("gtlsclient")
            .args([
                "--exit-on-first-stream-close",
                "--no-preferred-addr",
                "--timeout=2s",
            ])
            .args(["::1", &port.to_string(), &format!("https://{NAME}:{port}/")])
            .stdin(Stdio::null())
            .output()
    });
    let output = timeout(TEST_TIMEOUT, client)
        .await
        .expect("gtlsclient exits")
        .unwrap();
    let Ok(output) = output else {
        require(false, "gtlsclient", "apt install ngtcp2-client");
        return;
    };
    socks_client.abort();
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        proxy
            .metrics()
            .server_datagrams
            .get(ServerDatagram::RetryAnswered),
        1,
        "{log}"
    );
    assert!(log.contains("QUIC handshake has completed"), "{log}");
}

/// Runs ngtcp2's client with the `LD_PRELOAD` library and its session files in `folder`. Returns `None` where it is not
/// installed.
async fn run_preloaded(folder: &Path, proxy: &str, port: u16) -> Option<Output> {
    let library = std::env::current_exe().unwrap();
    let library = library.with_file_name("libquicsocks_preload.so");
    let mut command = Command::new("gtlsclient");
    command
        .env("LD_PRELOAD", library)
        .env("QUICSOCKS", proxy)
        .args([
            "--exit-on-first-stream-close",
            "--no-preferred-addr",
            "--timeout=2s",
        ])
        .arg(format!(
            "--session-file={}",
            folder.join("session").display()
        ))
        .arg(format!("--tp-file={}", folder.join("parameters").display()))
        .args([NAME, &port.to_string(), &format!("https://{NAME}:{port}/")])
        .stdin(Stdio::null());
    let running = tokio::task::spawn_blocking(move || command.output());
    let output = timeout(TEST_TIMEOUT, running)
        .await
        .expect("gtlsclient exits");
    let Ok(output) = output.unwrap() else {
        require(false, "gtlsclient", "apt install ngtcp2-client");
        return None;
    };
    Some(output)
}

#[tokio::test]
async fn early_data_of_preloaded_ngtcp2_arrives_despite_retry() {
    let Some(resolver) = Resolver::start().await else {
        return;
    };
    for retry in [false, true] {
        let proxy = start_proxy(resolver.address, Options::default()).await;
        let server = start_server(retry);
        // The client must read the Retry well before the answer to the proxy's Initial.
        let port = start_slow_path(server.port, Duration::from_millis(150)).await;
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("early-{retry}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let address = proxy.addresses()[0].to_string();
        for run in 0..2 {
            let before = server.early_bytes.load(Relaxed);
            let Some(output) = run_preloaded(&folder, &address, port).await else {
                return;
            };
            let log = String::from_utf8_lossy(&output.stderr);
            assert!(log.contains("QUIC handshake has completed"), "{log}");
            let has_early_data = server.early_bytes.load(Relaxed) > before;
            assert_eq!(
                has_early_data,
                run == 1,
                "retry: {retry}, run: {run}: {log}"
            );
        }
        let metrics = proxy.metrics();
        assert_eq!(metrics.lookups.get(Lookup::Resolved), 2);
        let retries = metrics.server_datagrams.get(ServerDatagram::RetryAnswered);
        assert_eq!(retries, 2 * u64::from(retry));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
