// SPDX-License-Identifier: Apache-2.0
//! A real server that rejects and records all requests, and its origin.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use frontage_handoff::link::{serve, tls::Files};
use frontage_handoff::message::{RejectReason, ToBalancer, ToServer};
use frontage_testkit::{sh, wait_for};
use noq::Endpoint;

use super::Testbed;

const LINK: &str = "127.0.0.1:4500";
const ORIGIN: &str = "127.0.0.1:8080";

/// Sections of the balancer's configuration that delegate `/handed` to the real server.
pub const HANDOFF: &str = "\
[[route]]
path = '/handed'
real_servers = { policy = 'round-robin' }
[handoff]
certificate = 'lb.test.pem'
private_key = 'lb.test.key'
ca = 'ca.pem'
servers = [{ name = 'rs.test', address = '127.0.0.1:4500', origin = 'http://127.0.0.1:8080' }]
";

/// Create a CA and its certificates for balancer and real server in `folder`.
pub fn issue(folder: &Path) {
    let key = "-x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
    let mut script = format!("cd {} && ", folder.display());
    script += &format!("openssl req {key} -subj /CN=ca -keyout ca.key -out ca.pem 2>&1");
    for name in ["lb.test", "rs.test"] {
        script += &format!(
            " && openssl req {key} -subj /CN={name} -keyout {name}.key -out {name}.pem -CA ca.pem -CAkey ca.key \
             -addext subjectAltName=DNS:{name} -addext basicConstraints=critical,CA:FALSE 2>&1"
        );
    }
    sh(&script);
}

/// A real server that rejects all requests and records grants. It ends with the test process.
pub struct RealServer {
    /// The balancer's address in each grant.
    grants: Arc<Mutex<Vec<IpAddr>>>,
}

impl RealServer {
    /// Start it in the namespace of the testbed's server. Its origin responds to all requests with `body`.
    pub fn start(testbed: &Testbed, body: Vec<u8>) -> Self {
        let grants = Arc::<Mutex<Vec<IpAddr>>>::default();
        let files = Files {
            certificate: testbed.folder.join("rs.test.pem"),
            private_key: testbed.folder.join("rs.test.key"),
            ca: testbed.folder.join("ca.pem"),
        };
        let recorder = grants.clone();
        testbed.server.run(|| {
            let origin = TcpListener::bind(ORIGIN).unwrap();
            thread::spawn(move || {
                origin
                    .incoming()
                    .for_each(|stream| respond(stream.unwrap(), &body))
            });
            thread::spawn(move || listen(&files, &recorder));
        });
        wait_for("the link", || {
            testbed.metric("real_server_up{server=\"rs.test\"}") == 1
        });
        Self { grants }
    }

    /// Return the number of grants.
    pub fn grants(&self) -> usize {
        self.addresses().len()
    }

    /// Return the balancer's address in each grant.
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.grants.lock().unwrap().clone()
    }
}

fn listen(files: &Files, grants: &Arc<Mutex<Vec<IpAddr>>>) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let endpoint = Endpoint::server(files.server().unwrap(), LINK.parse().unwrap()).unwrap();
        let grants = grants.clone();
        let session =
            move |outbox: frontage_handoff::link::Outbox<ToBalancer>,
                  mut inbox: frontage_handoff::link::Inbox<ToServer>| {
                let grants = grants.clone();
                async move {
                    while let Ok(Some(message)) = inbox.next().await {
                        match message {
                            ToServer::Open { grant, .. } => {
                                grants.lock().unwrap().push(grant.server.ip());
                            }
                            ToServer::Request { stream, .. } => {
                                let reason = RejectReason::Busy;
                                outbox.send(&ToBalancer::Rejected { stream, reason });
                            }
                            _ => {}
                        }
                    }
                }
            };
        serve(endpoint, vec!["lb.test".into()], Arc::default(), session).await;
    });
}

fn respond(stream: std::net::TcpStream, body: &[u8]) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line).unwrap() > 2 {
        line.clear();
    }
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let mut stream = reader.into_inner();
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
}
