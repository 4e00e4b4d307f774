//! The auxiliary connection between two endpoints on the loopback interface: who is let in, what comes through, and what a death looks like.

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

const PATIENCE: std::time::Duration = frontage_testkit::TEST_TIMEOUT;

/// A CA, and certificates of it in a folder of their own.
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
    strangers: Arc<AtomicU64>,
    came: UnboundedReceiver<ToServer>,
}

/// A real server that takes balancer `lb`, answers each request at once, and passes on what came.
fn server(files: &Files, at: SocketAddr) -> Server {
    let endpoint = Endpoint::server(files.server().unwrap(), at).unwrap();
    let (tell, came) = unbounded_channel();
    let strangers = Arc::<AtomicU64>::default();
    let each = move |outbox: frontage_handoff::link::Outbox<ToBalancer>,
                     mut inbox: frontage_handoff::link::Inbox<ToServer>| {
        let tell = tell.clone();
        async move {
            while let Ok(Some(message)) = inbox.next().await {
                if let ToServer::Request { stream, .. } = message {
                    outbox.send(&ToBalancer::Accepted { stream });
                }
                let _ = tell.send(message);
            }
        }
    };
    let balancers = vec!["lb".to_owned()];
    tokio::spawn(serve(endpoint.clone(), balancers, strangers.clone(), each));
    Server {
        address: endpoint.local_addr().unwrap(),
        endpoint,
        strangers,
        came,
    }
}

fn anywhere() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn dial(files: &Files, name: &str, address: SocketAddr) -> Link {
    let endpoint = Endpoint::client(anywhere()).unwrap();
    Link::dial(endpoint, files.client().unwrap(), name, address)
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, wait).await;
    waited.unwrap_or_else(|_| panic!("waited in vain for {what}"));
}

fn request(stream: u64, length: usize) -> ToServer {
    ToServer::Request {
        stream,
        max_stream_data: None,
        http3: Bytes::from(vec![7; length]),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_come_in_order_and_feedback_coalesces() {
    let ca = Ca::new("order");
    let mut server = server(&ca.files("rs"), anywhere());
    let link = dial(&ca.files("lb"), "rs", server.address);
    until("the link", || link.is_up()).await;
    let (outbox, mut inbox) = link.open().await.unwrap();
    let frames = |first: u8| Bytes::from(vec![first; 1000]);
    assert!(outbox.send(&request(0, 100_000)));
    for i in 0..200 {
        assert!(outbox.feedback(&frames(i)));
    }
    assert!(outbox.send(&request(4, 0)));
    drop(outbox);
    for stream in [0, 4] {
        let answer = inbox.next().await.unwrap();
        assert_eq!(answer, Some(ToBalancer::Accepted { stream }));
    }
    assert_eq!(inbox.next().await.unwrap(), None);
    assert_eq!(server.came.recv().await, Some(request(0, 100_000)));
    let (mut all, mut messages) = (Vec::new(), 0);
    while all.len() < 200_000 {
        match server.came.recv().await {
            Some(ToServer::Feedback(frames)) => all.extend_from_slice(&frames),
            other => panic!("{other:?}"),
        }
        messages += 1;
    }
    let expected: Vec<u8> = (0..200).flat_map(frames).collect();
    assert!(all == expected && messages < 200);
    assert_eq!(server.came.recv().await, Some(request(4, 0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_balancers_of_the_ca_are_let_in() {
    let (ca, other) = (Ca::new("ours"), Ca::new("theirs"));
    let server = server(&ca.files("rs"), anywhere());
    // Of another CA; of ours, but no balancer.
    let forged = Files {
        ca: ca.folder.join("ca.pem"),
        ..other.files("lb")
    };
    let strangers = [
        dial(&forged, "rs", server.address),
        dial(&ca.files("rs2"), "rs", server.address),
    ];
    until("two strangers", || server.strangers.load(Relaxed) >= 2).await;
    for link in &strangers {
        if let Some((outbox, mut inbox)) = link.open().await {
            outbox.send(&request(0, 0));
            assert!(inbox.next().await.is_err());
        }
    }
    // A real server that the balancer did not ask for.
    let misnamed = dial(&ca.files("lb"), "rs3", server.address);
    until("a refusal", || misnamed.counts().failed.load(Relaxed) > 0).await;
    assert!(!misnamed.is_up());
    let link = dial(&ca.files("lb"), "rs", server.address);
    until("the link", || link.is_up()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_is_dialled_again() {
    let ca = Ca::new("again");
    let first = server(&ca.files("rs"), anywhere());
    let link = dial(&ca.files("lb"), "rs", first.address);
    until("the link", || link.is_up()).await;
    let (_outbox, mut inbox) = link.open().await.unwrap();
    first.endpoint.close(VarInt::from_u32(0), b"");
    assert!(inbox.next().await.is_err());
    until("its end", || !link.is_up()).await;
    assert!(link.open().await.is_none());
    first.endpoint.wait_idle().await;
    let at = first.address;
    drop(first);
    until("the port", || UdpSocket::bind(at).is_ok()).await;
    let _second = server(&ca.files("rs"), at);
    until("the link again", || link.is_up()).await;
    assert_eq!(link.counts().connected.load(Relaxed), 2);
}
