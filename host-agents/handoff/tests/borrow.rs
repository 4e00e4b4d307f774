//! A noq client that knows of nothing, a balancer that lends a path of its connection, and a real server that sends on it.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use frontage_handoff::borrow::keys::Suite;
use frontage_handoff::borrow::{Borrowed, Borrower, Transport};
use frontage_handoff::grant::{Grant, Keys};
use frontage_quic::parameters;
use frontage_quic::session::{Handshake, Observer, Packet};
use frontage_quic::socket::Socket;
use noq::congestion::CubicConfig;
use noq::crypto::rustls::QuicClientConfig;
use noq::udp::{RecvMeta, Transmit};
use noq::{
    AsyncUdpSocket, Endpoint, EndpointConfig, PathError, PathId, PathStatus, Runtime as _,
    TokioRuntime, TransportConfig, UdpSender, VarInt,
};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::sync::mpsc;
use tokio::time::sleep;

use balancer::{Cut, News};

mod balancer;

const PATH: u32 = 1;
const LENGTH: usize = 10 << 20;

struct Nobody;

impl Observer for Nobody {
    fn sent(&self, _: &Packet<'_>) {}

    fn received(&self, _: &Packet<'_>) {}
}

/// Remembers the numbers and the streams of what left.
#[derive(Default)]
struct Sent(std::sync::Mutex<Vec<(u64, u32)>>);

impl Observer for Sent {
    fn sent(&self, packet: &Packet<'_>) {
        let sent = (packet.number, packet.generation);
        self.0.lock().unwrap().push(sent);
    }

    fn received(&self, _: &Packet<'_>) {}
}

/// A socket of the real server's that loses some of what it sends.
#[derive(Debug)]
struct Lossy {
    socket: Box<dyn AsyncUdpSocket>,
    /// Of a hundred packets.
    lost: u32,
    seed: u64,
}

impl AsyncUdpSocket for Lossy {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(LossySender {
            inner: self.socket.create_sender(),
            lost: self.lost,
            random: SmallRng::seed_from_u64(self.seed),
            left: Vec::new(),
            again: false,
        })
    }

    fn poll_recv(
        &mut self,
        _: &mut Context<'_>,
        _: &mut [IoSliceMut<'_>],
        _: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        panic!("a real server hears nothing from outside");
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }
}

#[derive(Debug)]
struct LossySender {
    inner: Pin<Box<dyn UdpSender>>,
    lost: u32,
    random: SmallRng,
    left: Vec<u8>,
    again: bool,
}

impl UdpSender for LossySender {
    fn poll_send(
        mut self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let size = transmit.segment_size.unwrap_or(transmit.contents.len());
        if !std::mem::replace(&mut this.again, true) {
            this.left.clear();
            for segment in transmit.contents.chunks(size) {
                if this.random.random_range(0..100) >= this.lost {
                    this.left.extend(segment);
                }
            }
        }
        if !this.left.is_empty() {
            let transmit = Transmit {
                contents: &this.left,
                segment_size: Some(size).filter(|size| *size < this.left.len()),
                ..transmit.clone()
            };
            ready!(this.inner.as_mut().poll_send(&transmit, cx))?;
        }
        this.again = false;
        Poll::Ready(Ok(()))
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.inner.max_transmit_segments()
    }
}

fn multipath() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.max_concurrent_multipath_paths(4);
    transport.max_concurrent_bidi_streams(VarInt::from_u32(1000));
    Arc::new(transport)
}

/// All of them.
struct Scene {
    client: noq::Connection,
    balancer: noq::Connection,
    borrower: Borrower,
    cut: Arc<Cut>,
    news: mpsc::UnboundedReceiver<News>,
    /// Those of the balancer and of the client, which end with them.
    _endpoints: [Endpoint; 2],
}

impl Scene {
    async fn new(lost: u32) -> Self {
        let socket = UdpSocket::bind("[::1]:0").unwrap();
        let also = socket.try_clone().unwrap();
        let borrower = Borrower::new(Box::new(Lossy {
            socket: TokioRuntime.wrap_udp_socket(also).unwrap(),
            lost,
            seed: 7,
        }));
        let made = rcgen::generate_simple_self_signed(vec!["frontage.test".into()]).unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![made.cert.der().clone()],
                PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()).into(),
            )
            .unwrap();
        let (cut, news) = Cut::new(PATH);
        let session = balancer::Config {
            inner: frontage_quic::session::Config::server(tls, Vec::new(), || Arc::new(Nobody))
                .unwrap(),
            cut: cut.clone(),
        };
        let mut config = noq::ServerConfig::with_crypto(Arc::new(session));
        config.transport_config(multipath());
        let server = Endpoint::new_with_abstract_socket(
            EndpointConfig::default(),
            Some(config),
            Box::new(Socket::over(
                TokioRuntime.wrap_udp_socket(socket).unwrap(),
                None,
            )),
            Arc::new(TokioRuntime),
        )
        .unwrap();

        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut config = noq::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
        config.transport_config(multipath());
        let client = Endpoint::client("[::1]:0".parse().unwrap()).unwrap();
        let address = server.local_addr().unwrap();
        let connecting = client
            .connect_with(config, address, "frontage.test")
            .unwrap();
        let accepting = async { server.accept().await.expect("a client").await };
        let (there, here) = tokio::join!(connecting, accepting);
        Self {
            client: there.unwrap(),
            balancer: here.unwrap(),
            borrower: borrower.unwrap(),
            cut,
            news,
            _endpoints: [server, client],
        }
    }

    /// The client opens a path, and the balancer grants it.
    async fn grant(&self) -> Grant {
        let to = self.client.path(PathId::ZERO).unwrap().remote_address();
        let to = to.unwrap();
        let path = loop {
            match self.client.open_path(to, PathStatus::Available).await {
                // The balancer's connection ids for it are under way.
                Err(PathError::RemoteCidsExhausted) => sleep(Duration::from_millis(1)).await,
                opened => break opened.unwrap(),
            }
        };
        assert_eq!(path.id(), PathId::from(PATH));
        let handshake: Handshake<Nobody> =
            *self.balancer.handshake_data().unwrap().downcast().unwrap();
        let secret = Bytes::from(handshake.secrets.unwrap().server);
        let mut client_parameters = Vec::new();
        parameters::write(&handshake.peer, &mut client_parameters);
        let rtt = self.balancer.path(PathId::ZERO).unwrap().stats().rtt;
        // Its sending waits for this lock; so nothing of noq's may be asked while it is held.
        let mut state = self.cut.state.lock().unwrap();
        state.granted = true;
        Grant {
            path: PATH,
            first: state.next,
            connection_id: state.connection_id.expect("the path was validated"),
            suite: 0x1302,
            header_secret: secret.clone(),
            keys: Keys {
                generation: 0,
                secret,
            },
            client_parameters: client_parameters.into(),
            server: self._endpoints[0].local_addr().unwrap(),
            client: self._endpoints[1].local_addr().unwrap(),
            credit: 1 << 40,
            rtt,
        }
    }
}

fn transport() -> Transport {
    Transport {
        congestion: Arc::new(CubicConfig::default()),
        mtu: 1200,
    }
}

/// Tells the real server what the balancer hears, until the connection ends.
async fn relay(mut news: mpsc::UnboundedReceiver<News>, grant: Grant, borrowed: Arc<Borrowed>) {
    let mut keys = grant.keys;
    let suite = Suite::of(grant.suite).unwrap();
    while let Some(news) = news.recv().await {
        match news {
            News::Feedback(frames) => borrowed.feedback(&frames).unwrap(),
            News::Updated(generation) => {
                while keys.generation < generation {
                    keys = suite.update(&keys).unwrap();
                }
                borrowed.rekey(&keys).unwrap();
            }
        }
    }
}

fn pattern(length: usize) -> Bytes {
    (0..length).map(|i| (i % 251) as u8).collect()
}

/// A stream of ten megabytes, with so many packets of a hundred lost on the way to the client, and key updates by both sides.
async fn ten_megabytes(lost: u32) {
    let scene = Scene::new(lost).await;
    let grant = scene.grant().await;
    let sent = Arc::<Sent>::default();
    let opened = scene
        .borrower
        .open(&grant, &transport(), sent.clone())
        .await;
    let borrowed = Arc::new(opened.unwrap());
    let relaying = tokio::spawn(relay(scene.news, grant.clone(), borrowed.clone()));

    let (mut asking, mut receiving) = scene.client.open_bi().await.unwrap();
    asking.write_all(b"ten megabytes").await.unwrap();
    asking.finish().unwrap();
    let (answering, mut asked) = scene.balancer.accept_bi().await.unwrap();
    let stream = u64::from(asked.id());
    let request = asked.read_to_end(100).await.unwrap();
    borrowed.request(stream, None, &request).unwrap();

    let server = borrowed.clone();
    let serving = async move {
        let (id, (mut send, mut recv)) = server.accept().await.unwrap();
        assert_eq!(id, stream);
        assert_eq!(recv.read_to_end(100).await.unwrap(), b"ten megabytes");
        send.write_all(&pattern(LENGTH)).await.unwrap();
        send.finish().unwrap();
        assert_eq!(send.stopped().await.unwrap(), None);
    };
    let (client, balancer) = (scene.client.clone(), scene.balancer.clone());
    let reading = async move {
        let mut received = vec![0; LENGTH / 3];
        receiving.read_exact(&mut received).await.unwrap();
        balancer.force_key_update();
        let start = received.len();
        received.resize(2 * LENGTH / 3, 0);
        receiving.read_exact(&mut received[start..]).await.unwrap();
        client.force_key_update();
        received.extend(receiving.read_to_end(LENGTH).await.unwrap());
        received
    };
    let ((), received) = tokio::join!(serving, reading);
    assert!(received == pattern(LENGTH));

    let next = borrowed.revoke();
    let sent = std::mem::take(&mut *sent.0.lock().unwrap());
    assert!(sent.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
    assert!(sent[0].0 >= grant.first);
    assert_eq!(sent.last().unwrap().0 + 1, next);
    assert!(sent.last().unwrap().1 > 0, "no key update");
    assert!(scene.client.close_reason().is_none() && scene.balancer.close_reason().is_none());
    assert_eq!(scene.borrower.counts().bad_feedback.load(Relaxed), 0);
    drop(answering);
    relaying.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_comes_whole() {
    ten_megabytes(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_packet_of_a_hundred_is_lost() {
    ten_megabytes(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_packets_of_a_hundred_are_lost() {
    ten_megabytes(5).await;
}
