//! A QUIC client that knows nothing of QuicSocks (ngtcp2's), behind a plain SOCKS client that does not either.

use std::process::{Command, Stdio};

use frontage_quicsocks::outcome::FromServer;
use frontage_quicsocks::socks::{Destination, datagram, header};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::lab::{NAME, Options, PATIENCE, Resolver, proxy, server};

/// Puts headers on what comes to its port and takes them off what comes back, as any program does that has UDP use SOCKS.
async fn socksify(local: UdpSocket, relay: UdpSocket, head: Vec<u8>) {
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
                let (_, payload) = datagram(&back[..n]).unwrap();
                if let Some(client) = client {
                    local.send_to(payload, client).await.unwrap();
                }
            }
        }
    }
}

#[tokio::test]
async fn ngtcp2_takes_the_retry_that_was_answered_for_it() {
    let Some(resolver) = Resolver::start().await else {
        return;
    };
    let (proxy, server) = (
        proxy(resolver.address, Options::default()).await,
        server(true),
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
    let at = local.local_addr().unwrap().port();
    let head = header(&Destination::Name(NAME.into(), server.port));
    let between = tokio::spawn(socksify(local, relay, head));
    let client = tokio::task::spawn_blocking(move || {
        Command::new("gtlsclient")
            .args([
                "--exit-on-first-stream-close",
                "--no-preferred-addr",
                "--timeout=2s",
            ])
            .args(["::1", &at.to_string(), &format!("https://{NAME}:{at}/")])
            .stdin(Stdio::null())
            .output()
    });
    let Ok(done) = timeout(PATIENCE, client).await.expect("it ends").unwrap() else {
        eprintln!("skipped: gtlsclient is missing: apt-get install ngtcp2-client");
        return;
    };
    between.abort();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(
        proxy.metrics().from_server.get(FromServer::RetryAnswered),
        1,
        "{said}"
    );
    assert!(said.contains("QUIC handshake has completed"), "{said}");
}
