// SPDX-License-Identifier: Apache-2.0
//! Servers that move clients during their connections, and hand them over to each other, under load.

use std::cell::{Cell, RefCell};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use frontage_h3_client::client::{Client, Options, Roaming, Session, Target};
use frontage_h3_client::{Error, Trust, block_on};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{sleep, timeout};

use crate::testbed::{HttpServer, SIZE};

const CONNECTIONS: usize = 10;
/// Far longer than any step takes.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A server with moves, which every address of the loopback interface reaches.
struct MovingServer {
    http: HttpServer,
    metrics: SocketAddr,
}

impl MovingServer {
    fn new() -> Self {
        let free_port = TcpListener::bind("127.0.0.1:0").unwrap();
        let metrics = free_port.local_addr().unwrap();
        drop(free_port);
        let moves = format!(
            "metrics = '{metrics}'\n[moves]\norder = 'order.toml'\nper_second = 1000\nmin_interval_seconds = 0"
        );
        let http = HttpServer::listening("0.0.0.0:0", &moves);
        Self { http, metrics }
    }

    fn address(&self, last: u8) -> SocketAddr {
        ([127, 0, 0, last], self.http.port).into()
    }

    async fn target(&self) -> Target {
        let url = format!("https://{}/{SIZE}", self.address(1));
        Target::new(&url).await.unwrap()
    }

    async fn order(&self, what: &str, address: SocketAddr) {
        let text = format!("{what} = ['{address}']\n");
        fs::write(self.http.folder.join("order.toml"), text).unwrap();
        self.http.reload().await;
    }

    /// Return a metric of the server.
    fn metric(&self, name: &str) -> u64 {
        let mut stream = TcpStream::connect(self.metrics).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let mut lines = text.lines();
        let found = lines.find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        found.unwrap_or_else(|| panic!("no metric {name}"))
    }

    fn moves(&self, kind: &str, outcome: &str) -> u64 {
        let labels = format!("{{kind=\"{kind}\",outcome=\"{outcome}\"}}");
        self.metric(&format!("frontage_cclb7_quic_moves_total{labels}"))
    }

    /// Return how many requests the server has answered.
    fn answers(&self) -> usize {
        let log = fs::read_to_string(self.http.folder.join("log")).unwrap();
        log.lines().count()
    }
}

fn client(moves: bool) -> Client {
    let options = Options {
        trust: Trust::none(),
        follow: false,
        migrate_early: false,
        early_data: false,
        moves,
        paths: 1,
    };
    Client::new(&options, None).unwrap()
}

async fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let holds = async {
        while !condition() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(TIME_LIMIT, holds)
        .await
        .unwrap_or_else(|_| panic!("{what}"));
}

async fn download(session: &Session, target: &Target) -> Result<usize, Error> {
    let mut response = session.get(&target.uri).await?;
    let mut bytes = 0;
    while let Some(chunk) = response.chunk().await? {
        bytes += chunk.len();
    }
    Ok(bytes)
}

/// Connections that download again and again until the load ends.
struct Load {
    ends: Rc<Cell<bool>>,
    downloads: Rc<Cell<usize>>,
    failures: Rc<RefCell<Vec<String>>>,
    workers: Vec<JoinHandle<()>>,
}

impl Load {
    fn start(client: &Client, target: &Target) -> Self {
        let mut load = Self {
            ends: Rc::default(),
            downloads: Rc::default(),
            failures: Rc::default(),
            workers: Vec::new(),
        };
        for _ in 0..CONNECTIONS {
            let (client, target) = (client.clone(), target.clone());
            let (ends, downloads, failures) = (
                load.ends.clone(),
                load.downloads.clone(),
                load.failures.clone(),
            );
            load.workers.push(spawn_local(async move {
                let connection = Roaming::connect(&client, &target).await.unwrap();
                while !ends.get() {
                    match download(&*connection.session().await, &target).await {
                        Ok(SIZE) => downloads.set(downloads.get() + 1),
                        other => failures.borrow_mut().push(format!("{other:?}")),
                    }
                }
                connection.close().await;
            }));
        }
        load
    }

    /// Wait until there were `more` further downloads.
    async fn progress(&self, more: usize) {
        let goal = self.downloads.get() + more;
        wait_until("the downloads make progress", || {
            self.downloads.get() >= goal
        })
        .await;
    }

    /// End the load, and return the failures.
    async fn end(self) -> Vec<String> {
        self.ends.set(true);
        for worker in self.workers {
            worker.await.unwrap();
        }
        self.failures.take()
    }
}

#[test]
fn busy_connections_follow_each_announced_address() {
    block_on(async {
        let server = MovingServer::new();
        let client = client(true);
        let load = Load::start(&client, &server.target().await);
        load.progress(CONNECTIONS).await;
        for (round, last) in (1..).zip([2, 3, 1]) {
            server.order("move", server.address(last)).await;
            let all = round * CONNECTIONS as u64;
            wait_until("all clients have moved", || {
                server.moves("move", "completed") == all
            })
            .await;
            load.progress(CONNECTIONS).await;
        }
        assert_eq!(load.end().await, Vec::<String>::new());
        let moves = client.moves().unwrap();
        assert_eq!(moves.completed.load(Relaxed), 3 * CONNECTIONS as u64);
        assert_eq!(moves.failed.load(Relaxed), 0);
        assert_eq!(server.moves("move", "offered"), 3 * CONNECTIONS as u64);
        assert_eq!(
            server.metric("frontage_cclb7_quic_connections_total"),
            CONNECTIONS as u64
        );
        Ok(())
    })
    .unwrap();
}

#[test]
fn client_stays_if_the_announced_address_does_not_respond() {
    block_on(async {
        let server = MovingServer::new();
        let client = client(true);
        let target = server.target().await;
        let session = client.connect(&target).await?;
        assert_eq!(download(&session, &target).await?, SIZE);
        // Nothing listens at this port.
        let silent = std::net::UdpSocket::bind("127.0.0.9:0").unwrap();
        server.order("move", silent.local_addr().unwrap()).await;
        let moves = client.moves().unwrap();
        wait_until("the client gives up", || moves.failed.load(Relaxed) == 1).await;
        assert_eq!(session.socket().server(), target.address);
        assert_eq!(download(&session, &target).await?, SIZE);
        // The client has probed the address with datagrams of the length that RFC 9000, section 8.2.1, requires.
        silent.set_read_timeout(Some(TIME_LIMIT)).unwrap();
        let mut datagram = [0; 2000];
        let (length, _) = silent.recv_from(&mut datagram).unwrap();
        assert!((1200..=1232).contains(&length), "{length}");
        wait_until("the server gives up", || {
            server.moves("move", "failed") == 1
        })
        .await;
        assert_eq!(server.moves("move", "completed"), 0);
        session.close().await;
        Ok(())
    })
    .unwrap();
}

#[test]
fn clients_are_handed_over_without_a_failed_request() {
    block_on(async {
        let [first, second] = [MovingServer::new(), MovingServer::new()];
        let client = client(true);
        let load = Load::start(&client, &first.target().await);
        load.progress(CONNECTIONS).await;
        first.order("hand_over", second.address(1)).await;
        let all = CONNECTIONS as u64;
        wait_until("all clients have left", || {
            first.moves("hand_over", "completed") == all
        })
        .await;
        let answers = first.answers();
        load.progress(2 * CONNECTIONS).await;
        assert_eq!(load.end().await, Vec::<String>::new());
        assert_eq!(first.answers(), answers, "requests go to the next server");
        assert_eq!(first.metric("frontage_cclb7_quic_open_connections"), 0);
        assert_eq!(second.metric("frontage_cclb7_quic_connections_total"), all);
        assert_eq!(client.moves().unwrap().handed_over.load(Relaxed), all);
        Ok(())
    })
    .unwrap();
}

#[test]
fn clients_without_the_extension_stay_and_finish_their_requests() {
    block_on(async {
        let server = MovingServer::new();
        let target = server.target().await;
        let session = client(false).connect(&target).await?;
        let mut response = session.get(&target.uri).await?;
        server.order("move", server.address(2)).await;
        wait_until("the order is known", || {
            server.moves("move", "unsupported") == 1
        })
        .await;
        server.order("hand_over", server.address(2)).await;
        wait_until("the client is to leave", || {
            server.moves("hand_over", "unsupported") == 1
        })
        .await;
        let mut bytes = 0;
        while let Some(chunk) = response.chunk().await? {
            bytes += chunk.len();
        }
        assert_eq!(bytes, SIZE);
        assert_eq!(session.socket().server(), target.address);
        Ok(())
    })
    .unwrap();
}
