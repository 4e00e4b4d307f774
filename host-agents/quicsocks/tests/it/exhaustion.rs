// SPDX-License-Identifier: Apache-2.0
//! The proxy program when the system is out of sockets.

use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command};
use std::time::Duration;

use frontage_quicsocks_client::socks::{Destination, encode_header};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::raw_client::{RawClient, capture_initial};
use crate::testbed::TEST_TIMEOUT;

const PROGRAM: &str = env!("CARGO_BIN_EXE_frontage-quicsocks");
/// Limit of open files for the program, including its own and the runtime's.
const MAX_FILES: usize = 48;
/// More flows, each with a socket, than the limit allows.
const FLOWS: u8 = 200;
const NO_SOCKET: &str = "frontage_quicsocks_flows_ended_total{reason=\"no_socket\"}";

struct ChildGuard(Child);

impl Drop for ChildGuard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns an address whose port was free a moment ago.
fn free_address() -> SocketAddr {
    let listener = std::net::TcpListener::bind("[::1]:0").unwrap();
    listener.local_addr().unwrap()
}

/// Returns the metrics page, or `None` if the program does not answer.
async fn fetch_metrics(metrics: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect(metrics).await.ok()?;
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.ok()?;
    let mut page = String::new();
    stream.read_to_string(&mut page).await.ok()?;
    Some(page)
}

/// Waits until the metrics page contains `line`.
async fn wait_for_metric(metrics: SocketAddr, line: &str) {
    let mut last = None;
    let found = async {
        loop {
            last = fetch_metrics(metrics).await;
            if last.as_ref().is_some_and(|page| page.contains(line)) {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let found = timeout(TEST_TIMEOUT, found).await;
    found.unwrap_or_else(|_| panic!("timed out waiting for {line:?}, last page: {last:?}"));
}

#[tokio::test]
async fn flow_without_socket_is_counted_and_proxy_recovers() {
    let (proxy, metrics) = (free_address(), free_address());
    let folder = std::env::temp_dir().join(format!("quicsocks-exhausted-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let config = folder.join("proxy.toml");
    let text = format!(
        "listen = ['{proxy}']\nresolvers = ['127.0.0.1:9']\nmetrics = '{metrics}'\nallow = ['127.0.0.0/8']\n"
    );
    std::fs::write(&config, text).unwrap();
    let limited = format!("ulimit -n {MAX_FILES} && exec \"$0\" \"$1\"");
    let program = Command::new("sh")
        .args(["-c", &limited, PROGRAM])
        .arg(&config)
        .spawn();
    let _running = ChildGuard(program.unwrap());
    wait_for_metric(metrics, "frontage_quicsocks_flows 0\n").await;
    std::fs::remove_dir_all(&folder).unwrap();

    // This server never answers, so the flows stay open.
    let server = UdpSocket::bind("0.0.0.0:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let client = RawClient::new(proxy).await;
    let first = capture_initial().await;
    let head = |host| encode_header(&Destination::Address(([127, 0, 0, host], port).into()));
    for host in 1..=FLOWS {
        client.send(&head(host), &first).await;
    }
    // The program has no socket for the metrics request either, until flows are released.
    let mut next = (1..=FLOWS).cycle();
    let counted = async {
        loop {
            client.send(&head(next.next().unwrap()), &[]).await;
            let page = timeout(Duration::from_millis(100), fetch_metrics(metrics)).await;
            if let Ok(Some(page)) = page
                && !page.contains(&format!("{NO_SOCKET} 0\n"))
            {
                assert!(page.contains(NO_SOCKET), "{page}");
                return;
            }
        }
    };
    timeout(TEST_TIMEOUT, counted)
        .await
        .expect("the proxy counts flows without a socket");
    drop(client);
    wait_for_metric(metrics, "frontage_quicsocks_flows 0\n").await;
    // The proxy serves new flows again.
    let client = RawClient::new(proxy).await;
    client.send(&head(1), &first).await;
    wait_for_metric(metrics, "frontage_quicsocks_flows 1\n").await;
}
