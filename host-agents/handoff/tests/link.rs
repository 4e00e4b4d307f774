// SPDX-License-Identifier: Apache-2.0
//! Links between two endpoints on the loopback interface: authentication, message order, and reconnection.

use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use frontage_handoff::link::tls::Files;
use frontage_handoff::link::{Link, serve};
use frontage_handoff::message::{ToBalancer, ToServer};
use noq::{Endpoint, VarInt};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

const TEST_TIMEOUT: std::time::Duration = frontage_testkit::TEST_TIMEOUT;

/// A CA that stores its certificates in a temporary folder.
struct Ca {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Ca {
    fn new(test: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let folder = folder.join(format!("link-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(folder.join("ca.pem"), certificate.pem()).unwrap();
        let issuer = Issuer::new(params, key);
        Self { folder, issuer }
    }

    fn files(&self, name: &str) -> Files {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let file = |end: &str| self.folder.join(format!("{name}.{end}"));
        std::fs::write(file("pem"), certificate.pem()).unwrap();
        std::fs::write(file("key"), key.serialize_pem()).unwrap();
        Files {
            certificate: file("pem"),
            private_key: file("key"),
            ca: self.folder.join("ca.pem"),
        }
    }
}

impl Drop for Ca {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

struct Server {
    endpoint: Endpoint,
    address: SocketAddr,
    rejected: Arc<AtomicU64>,
    messages: UnboundedReceiver<ToServer>,
}

/// Start a real server that accepts balancer `lb`, accepts each request, and returns all messages.
fn server(files: &Files, at: SocketAddr) -> Server {
    let endpoint = Endpoint::server(files.server().unwrap(), at).unwrap();
    let (sender, messages) = unbounded_channel();
    let rejected = Arc::<AtomicU64>::default();
    let handle = move |outbox: frontage_handoff::link::Outbox<ToBalancer>,
                       mut inbox: frontage_handoff::link::Inbox<ToServer>| {
        let sender = sender.clone();
        async move {
            while let Ok(Some(message)) = inbox.next().await {
                if let ToServer::Request { stream, .. } = message {
                    outbox.send(&ToBalancer::Accepted { stream });
                }
                let _ = sender.send(message);
            }
        }
    };
    let balancers = vec!["lb".to_owned()];
    tokio::spawn(serve(endpoint.clone(), balancers, rejected.clone(), handle));
    Server {
        address: endpoint.local_addr().unwrap(),
        endpoint,
        rejected,
        messages,
    }
}

fn any_port() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn dial(files: &Files, name: &str, address: SocketAddr) -> Link {
    let endpoint = Endpoint::client(any_port()).unwrap();
    Link::dial(endpoint, files.client().unwrap(), name, address)
}

async fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(TEST_TIMEOUT, wait).await;
    waited.unwrap_or_else(|_| panic!("timed out waiting for {what}"));
}

fn request(stream: u64, length: usize) -> ToServer {
    ToServer::Request {
        stream,
        max_stream_data: None,
        http3: Bytes::from(vec![7; length]),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_arrive_in_order_and_feedback_is_merged() {
    let ca = Ca::new("order");
    let mut server = server(&ca.files("rs"), any_port());
    let link = dial(&ca.files("lb"), "rs", server.address);
    wait_until("the link", || link.is_up()).await;
    let (outbox, mut inbox) = link.open().await.unwrap();
    let frames = |first: u8| Bytes::from(vec![first; 1000]);
    assert!(outbox.send(&request(0, 100_000)));
    for i in 0..200 {
        assert!(outbox.feedback(&frames(i)));
    }
    assert!(outbox.send(&request(4, 0)));
    drop(outbox);
    for stream in [0, 4] {
        let response = inbox.next().await.unwrap();
        assert_eq!(response, Some(ToBalancer::Accepted { stream }));
    }
    assert_eq!(inbox.next().await.unwrap(), None);
    assert_eq!(server.messages.recv().await, Some(request(0, 100_000)));
    let (mut all, mut messages) = (Vec::new(), 0);
    while all.len() < 200_000 {
        match server.messages.recv().await {
            Some(ToServer::Feedback(frames)) => all.extend_from_slice(&frames),
            other => panic!("{other:?}"),
        }
        messages += 1;
    }
    let expected: Vec<u8> = (0..200).flat_map(frames).collect();
    assert!(all == expected && messages < 200);
    assert_eq!(server.messages.recv().await, Some(request(4, 0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_known_balancers_with_certificate_of_the_ca_are_accepted() {
    let (ca, other) = (Ca::new("ours"), Ca::new("theirs"));
    let server = server(&ca.files("rs"), any_port());
    // A certificate of another CA, and one of the right CA for an unknown balancer.
    let forged = Files {
        ca: ca.folder.join("ca.pem"),
        ..other.files("lb")
    };
    let rejected = [
        dial(&forged, "rs", server.address),
        dial(&ca.files("rs2"), "rs", server.address),
    ];
    wait_until("two rejected peers", || server.rejected.load(Relaxed) >= 2).await;
    for link in &rejected {
        if let Some((outbox, mut inbox)) = link.open().await {
            outbox.send(&request(0, 0));
            assert!(inbox.next().await.is_err());
        }
    }
    // The real server's certificate is for another name.
    let misnamed = dial(&ca.files("lb"), "rs3", server.address);
    wait_until("a failed attempt", || {
        misnamed.counters().failed.load(Relaxed) > 0
    })
    .await;
    assert!(!misnamed.is_up());
    let link = dial(&ca.files("lb"), "rs", server.address);
    wait_until("the link", || link.is_up()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_server_is_dialled_again() {
    let ca = Ca::new("again");
    let first = server(&ca.files("rs"), any_port());
    let link = dial(&ca.files("lb"), "rs", first.address);
    wait_until("the link", || link.is_up()).await;
    let (_outbox, mut inbox) = link.open().await.unwrap();
    first.endpoint.close(VarInt::from_u32(0), b"");
    assert!(inbox.next().await.is_err());
    wait_until("the end of the link", || !link.is_up()).await;
    assert!(link.open().await.is_none());
    first.endpoint.wait_idle().await;
    let at = first.address;
    drop(first);
    wait_until("the port", || UdpSocket::bind(at).is_ok()).await;
    let _second = server(&ca.files("rs"), at);
    wait_until("the link again", || link.is_up()).await;
    assert_eq!(link.counters().connected.load(Relaxed), 2);
}
