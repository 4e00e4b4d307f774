// SPDX-License-Identifier: Apache-2.0
//! A client, a minimal balancer that delegates a path, and a delegate that sends from the balancer's address.

use std::net::UdpSocket;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use frontage_handoff::delegate::keys::Suite;
use frontage_handoff::delegate::{Delegate, DelegatedConnection, Transport};
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

use balancer::{Interception, Update};

mod balancer;

const PATH: u32 = 1;
/// The suite that rustls negotiates with itself.
const SUITE: u16 = 0x1302;

/// Packet numbers and key generations of all sent packets.
#[derive(Default)]
pub struct SentPackets(pub Mutex<Vec<(u64, u32)>>);

impl Observer for SentPackets {
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

/// Client, balancer and delegate.
pub struct DelegateTestbed {
    pub client: noq::Connection,
    pub balancer: noq::Connection,
    pub delegate: Delegate,
    interception: Arc<Interception>,
    relay: Arc<Mutex<Relay>>,
    /// The balancer's sending halves, which stay idle.
    idle_halves: Vec<noq::SendStream>,
    /// Endpoints of the balancer and the client.
    endpoints: [Endpoint; 2],
}

/// Forwards updates to the real server.
struct Relay {
    keys: Keys,
    to: Option<Arc<DelegatedConnection>>,
}

/// A request of the client.
pub struct Request {
    pub stream: u64,
    pub response: noq::RecvStream,
}

impl DelegateTestbed {
    /// Create the testbed, with `loss_percent` of the packets lost between real server and client.
    pub async fn new(loss_percent: u32) -> Self {
        let socket = UdpSocket::bind("[::1]:0").unwrap();
        let duplicate = socket.try_clone().unwrap();
        let duplicate = TokioRuntime.wrap_udp_socket(duplicate).unwrap();
        let delegate = Delegate::new(lossy(duplicate, loss_percent, 7));

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
        let (interception, updates) = Interception::new(PATH);
        let session = balancer::Config {
            inner: Config::server(tls, Vec::new(), || Arc::new(())).unwrap(),
            interception: interception.clone(),
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
        let (client_side, server_side) = tokio::join!(connecting, accepting);
        let balancer = server_side.unwrap();
        let keys = Keys {
            generation: 0,
            secret: handshake(&balancer).secrets.unwrap().server.into(),
        };
        let relay = Arc::new(Mutex::new(Relay { keys, to: None }));
        tokio::spawn(Relay::run(relay.clone(), updates));
        Self {
            client: client_side.unwrap(),
            balancer,
            delegate: delegate.unwrap(),
            interception,
            relay,
            idle_halves: Vec::new(),
            endpoints: [server, client],
        }
    }

    /// The client opens a path, and the balancer grants it.
    pub async fn grant(&self) -> Grant {
        let to = self.client.path(PathId::ZERO).unwrap().remote_address();
        let to = to.unwrap();
        let path = loop {
            match self.client.open_path(to, PathStatus::Available).await {
                // The balancer's connection ids for the path have not arrived yet.
                Err(PathError::RemoteCidsExhausted) => sleep(Duration::from_millis(1)).await,
                opened => break opened.unwrap(),
            }
        };
        assert_eq!(path.id(), PathId::from(PATH));
        let handshake = handshake(&self.balancer);
        let mut client_parameters = Vec::new();
        parameters::write(&handshake.peer, &mut client_parameters);
        let rtt = self.balancer.path(PathId::ZERO).unwrap().stats().rtt;
        // noq takes this lock while it sends, so noq must not be called while the lock is held.
        let mut state = self.interception.state.lock().unwrap();
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

    /// Open the delegation at the real server, and forward updates from now on.
    pub async fn delegate<O: Observer>(
        &self,
        grant: &Grant,
        observer: Arc<O>,
    ) -> Arc<DelegatedConnection> {
        let opened = self.delegate.open(grant, &transport(), observer).await;
        let delegated = Arc::new(opened.unwrap());
        self.interception.state.lock().unwrap().next = grant.first;
        let mut relay = self.relay.lock().unwrap();
        delegated.set_keys(&relay.keys).unwrap();
        relay.to = Some(delegated.clone());
        delegated
    }

    /// Send a request on a new stream, and forward it to the real server.
    pub async fn request(&mut self, request: &[u8], delegated: &DelegatedConnection) -> Request {
        let (mut sending, response) = self.client.open_bi().await.unwrap();
        sending.write_all(request).await.unwrap();
        sending.finish().unwrap();
        loop {
            let accepted = self.accept().await;
            // Streams without data come before it.
            if accepted.id() == sending.id() {
                let stream = forward_request(accepted, delegated).await;
                return Request { stream, response };
            }
        }
    }

    /// Accept the client's next stream at the balancer.
    pub async fn accept(&mut self) -> noq::RecvStream {
        let (idle, request) = self.balancer.accept_bi().await.unwrap();
        self.idle_halves.push(idle);
        request
    }
}

/// Forward a request to the real server.
pub async fn forward_request(
    mut receiving: noq::RecvStream,
    delegated: &DelegatedConnection,
) -> u64 {
    let stream = u64::from(receiving.id());
    let request = receiving.read_to_end(1 << 16).await.unwrap();
    delegated.request(stream, None, &request).unwrap();
    stream
}

fn handshake(connection: &noq::Connection) -> Handshake<()> {
    *connection.handshake_data().unwrap().downcast().unwrap()
}

impl Relay {
    /// Forward updates until the connection ends.
    async fn run(relay: Arc<Mutex<Self>>, mut updates: mpsc::UnboundedReceiver<Update>) {
        let suite = Suite::of(SUITE).unwrap();
        while let Some(update) = updates.recv().await {
            let relay = &mut *relay.lock().unwrap();
            match update {
                Update::Feedback(frames) => {
                    let to = relay.to.iter();
                    to.for_each(|delegated| delegated.on_feedback(&frames).unwrap());
                }
                Update::Keys(generation) => {
                    while relay.keys.generation < generation {
                        relay.keys = suite.update(&relay.keys).unwrap();
                    }
                    let to = relay.to.iter();
                    to.for_each(|delegated| delegated.set_keys(&relay.keys).unwrap());
                }
            }
        }
    }
}

pub fn pattern(length: usize) -> Bytes {
    (0..length).map(|i| (i % 251) as u8).collect()
}
