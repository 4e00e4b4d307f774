//! The program when the system gives it no more sockets.

use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command};
use std::time::Duration;

use frontage_quicsocks::socks::{Destination, header};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::lab::PATIENCE;
use crate::raw::{Raw, initial};

const PROGRAM: &str = env!("CARGO_BIN_EXE_frontage-quicsocks");
/// Files that the program may open, its own and the runtime's among them.
const FILES: usize = 48;
/// More flows than that, each of which takes a socket.
const FLOWS: u8 = 200;
const NO_SOCKET: &str = "frontage_quicsocks_flows_ended_total{reason=\"no_socket\"}";

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Free a moment ago.
fn free() -> SocketAddr {
    let free = std::net::TcpListener::bind("[::1]:0").unwrap();
    free.local_addr().unwrap()
}

/// What the program counts; nothing if it does not answer.
async fn page(metrics: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect(metrics).await.ok()?;
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.ok()?;
    let mut page = String::new();
    stream.read_to_string(&mut page).await.ok()?;
    Some(page)
}

/// Waits until the program counts `line`.
async fn counts(metrics: SocketAddr, line: &str) {
    let mut last = None;
    let counted = async {
        loop {
            last = page(metrics).await;
            if last.as_ref().is_some_and(|page| page.contains(line)) {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let counted = timeout(PATIENCE, counted).await;
    counted.unwrap_or_else(|_| panic!("waited for {line}, but it says {last:?}"));
}

#[tokio::test]
async fn a_flow_without_a_socket_has_its_name() {
    let (proxy, metrics) = (free(), free());
    let folder = std::env::temp_dir().join(format!("quicsocks-exhausted-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let config = folder.join("proxy.toml");
    let text = format!(
        "listen = ['{proxy}']\nresolvers = ['127.0.0.1:9']\nmetrics = '{metrics}'\nallow = ['127.0.0.0/8']\n"
    );
    std::fs::write(&config, text).unwrap();
    let limited = format!("ulimit -n {FILES} && exec \"$0\" \"$1\"");
    let program = Command::new("sh")
        .args(["-c", &limited, PROGRAM])
        .arg(&config)
        .spawn();
    let _running = Running(program.unwrap());
    counts(metrics, "frontage_quicsocks_flows 0\n").await;
    std::fs::remove_dir_all(&folder).unwrap();

    // Nothing comes back from it, so that flows stay.
    let server = UdpSocket::bind("0.0.0.0:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let client = Raw::new(proxy).await;
    let first = initial().await;
    let head = |host| header(&Destination::Address(([127, 0, 0, host], port).into()));
    for host in 1..=FLOWS {
        client.send(&head(host), &first).await;
    }
    // It has no socket for this question either, until flows are given up.
    let mut next = (1..=FLOWS).cycle();
    let counted = async {
        loop {
            client.send(&head(next.next().unwrap()), &[]).await;
            let page = timeout(Duration::from_millis(100), page(metrics)).await;
            if let Ok(Some(page)) = page
                && !page.contains(&format!("{NO_SOCKET} 0\n"))
            {
                assert!(page.contains(NO_SOCKET), "{page}");
                return;
            }
        }
    };
    timeout(PATIENCE, counted).await.expect("it is counted");
    drop(client);
    counts(metrics, "frontage_quicsocks_flows 0\n").await;
    // And serves again.
    let client = Raw::new(proxy).await;
    client.send(&head(1), &first).await;
    counts(metrics, "frontage_quicsocks_flows 1\n").await;
}
