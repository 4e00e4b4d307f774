//! A client, a balancer that lends a path of the client's connection, and a borrower that sends from the balancer's address.

use std::net::UdpSocket;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use frontage_handoff::borrow::keys::Suite;
use frontage_handoff::borrow::{Borrowed, Borrower, Transport};
use frontage_handoff::grant::{Grant, Keys};
use frontage_quic::session::{Config, Handshake, Observer, Packet};
use frontage_quic::socket::Socket;
use frontage_quic_wire::parameters;
use frontage_testkit::lossy;
use noq::congestion::CubicConfig;
use noq::crypto::rustls::QuicClientConfig;
use noq::{
    Endpoint, EndpointConfig, PathError, PathId, PathStatus, Runtime as _, TokioRuntime,
    TransportConfig, VarInt,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::sync::mpsc;
use tokio::time::sleep;

use balancer::{Cut, News};

mod balancer;

const PATH: u32 = 1;
/// What two rustls agree on.
const SUITE: u16 = 0x1302;

/// Remembers the numbers and the key updates of what left.
#[derive(Default)]
pub struct Sent(pub Mutex<Vec<(u64, u32)>>);

impl Observer for Sent {
    fn on_sent(&self, packet: &Packet<'_>) {
        let sent = (packet.number, packet.generation);
        self.0.lock().unwrap().push(sent);
    }

    fn on_received(&self, _: &Packet<'_>) {}
}

pub fn transport() -> Transport {
    Transport {
        congestion: Arc::new(CubicConfig::default()),
        mtu: 1200,
    }
}

fn multipath() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.max_concurrent_multipath_paths(4);
    transport.max_concurrent_bidi_streams(VarInt::from_u32(5000));
    Arc::new(transport)
}

/// All of them.
pub struct Scene {
    pub client: noq::Connection,
    pub balancer: noq::Connection,
    pub borrower: Borrower,
    cut: Arc<Cut>,
    relay: Arc<Mutex<Relay>>,
    /// The balancer's halves of streams, on which it says nothing.
    silent: Vec<noq::SendStream>,
    /// Those of the balancer and of the client, which end with them.
    endpoints: [Endpoint; 2],
}

/// The balancer's part.
struct Relay {
    keys: Keys,
    to: Option<Arc<Borrowed>>,
}

/// A request of the client's.
pub struct Asked {
    pub stream: u64,
    pub answer: noq::RecvStream,
}

impl Scene {
    /// With so many packets of a hundred lost between the real server and the client.
    pub async fn new(lost: u32) -> Self {
        let socket = UdpSocket::bind("[::1]:0").unwrap();
        let also = socket.try_clone().unwrap();
        let also = TokioRuntime.wrap_udp_socket(also).unwrap();
        let borrower = Borrower::new(lossy(also, lost, 7));

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
            inner: Config::server(tls, Vec::new(), || Arc::new(())).unwrap(),
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
        let balancer = here.unwrap();
        let keys = Keys {
            generation: 0,
            secret: handshake(&balancer).secrets.unwrap().server.into(),
        };
        let relay = Arc::new(Mutex::new(Relay { keys, to: None }));
        tokio::spawn(Relay::tell(relay.clone(), news));
        Self {
            client: there.unwrap(),
            balancer,
            borrower: borrower.unwrap(),
            cut,
            relay,
            silent: Vec::new(),
            endpoints: [server, client],
        }
    }

    /// The client opens a path, and the balancer grants it.
    pub async fn grant(&self) -> Grant {
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
        let handshake = handshake(&self.balancer);
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
            suite: SUITE,
            header_secret: handshake.secrets.unwrap().server.into(),
            keys: self.relay.lock().unwrap().keys.clone(),
            client_parameters: client_parameters.into(),
            server: self.endpoints[0].local_addr().unwrap(),
            client: self.endpoints[1].local_addr().unwrap(),
            credit: 1 << 40,
            rtt,
        }
    }

    /// The real server gets it, and what the client says of it from now on.
    pub async fn lend<O: Observer>(&self, grant: &Grant, observer: Arc<O>) -> Arc<Borrowed> {
        let opened = self.borrower.open(grant, &transport(), observer).await;
        let borrowed = Arc::new(opened.unwrap());
        self.cut.state.lock().unwrap().next = grant.first;
        let mut relay = self.relay.lock().unwrap();
        borrowed.rekey(&relay.keys).unwrap();
        relay.to = Some(borrowed.clone());
        borrowed
    }

    /// The client asks on a new stream, and the balancer hands it on to who borrowed.
    pub async fn ask(&mut self, request: &[u8], borrowed: &Borrowed) -> Asked {
        let (mut asking, answer) = self.client.open_bi().await.unwrap();
        asking.write_all(request).await.unwrap();
        asking.finish().unwrap();
        loop {
            let asked = self.accept().await;
            // Before it are those on which nothing was said.
            if asked.id() == asking.id() {
                let stream = hand_on(asked, borrowed).await;
                return Asked { stream, answer };
            }
        }
    }

    /// The client's next stream, as the balancer sees it.
    pub async fn accept(&mut self) -> noq::RecvStream {
        let (silent, asked) = self.balancer.accept_bi().await.unwrap();
        self.silent.push(silent);
        asked
    }
}

/// A request goes on to who borrowed.
pub async fn hand_on(mut asked: noq::RecvStream, borrowed: &Borrowed) -> u64 {
    let stream = u64::from(asked.id());
    let request = asked.read_to_end(1 << 16).await.unwrap();
    borrowed.request(stream, None, &request).unwrap();
    stream
}

fn handshake(connection: &noq::Connection) -> Handshake<()> {
    *connection.handshake_data().unwrap().downcast().unwrap()
}

impl Relay {
    /// Tells the real server what the balancer hears, until the connection ends.
    async fn tell(relay: Arc<Mutex<Self>>, mut news: mpsc::UnboundedReceiver<News>) {
        let suite = Suite::of(SUITE).unwrap();
        while let Some(news) = news.recv().await {
            let relay = &mut *relay.lock().unwrap();
            match news {
                News::Feedback(frames) => {
                    let to = relay.to.iter();
                    to.for_each(|borrowed| borrowed.feedback(&frames).unwrap());
                }
                News::Updated(generation) => {
                    while relay.keys.generation < generation {
                        relay.keys = suite.update(&relay.keys).unwrap();
                    }
                    let to = relay.to.iter();
                    to.for_each(|borrowed| borrowed.rekey(&relay.keys).unwrap());
                }
            }
        }
    }
}

pub fn pattern(length: usize) -> Bytes {
    (0..length).map(|i| (i % 251) as u8).collect()
}
