// SPDX-License-Identifier: Apache-2.0
//! An unmodified noq client, and a server with a delegator, over the loopback interface.

use std::collections::HashSet;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use frontage_handoff::delegator::{Delegator, Events};
use frontage_handoff::grant::Grant;
use frontage_quic::session::{
    Config, Handshake, Incoming, Negotiated, Nonce, Observer, Outgoing, Packet,
};
use frontage_quic::socket::Socket;
use frontage_quic_wire::parameters::Parameters;
use frontage_testkit::{Nat, TEST_TIMEOUT};
use noq::crypto::rustls::QuicClientConfig;
use noq::{
    Endpoint, EndpointConfig, OpenPath, PathStatus, Runtime as _, TokioRuntime, TransportConfig,
};
use rustls::pki_types::PrivatePkcs8KeyDer;

pub mod real_server;

/// A delegator that records nonces by key generation.
pub struct NonceRecorder {
    pub delegator: Delegator<()>,
    pub nonces: Mutex<HashSet<(u32, Nonce)>>,
}

impl NonceRecorder {
    /// Record a nonce, which must be new.
    pub fn record(&self, generation: u32, nonce: Nonce) {
        let mut nonces = self.nonces.lock().unwrap();
        assert!(nonces.insert((generation, nonce)), "{nonce:?} used twice");
    }
}

impl Observer for NonceRecorder {
    fn on_sent(&self, packet: &Packet<'_>) {
        self.delegator.on_sent(packet);
    }

    fn on_received(&self, packet: &Packet<'_>) {
        self.delegator.on_received(packet);
    }

    fn on_one_rtt_keys(&self, negotiated: &Negotiated<'_>) {
        self.delegator.on_one_rtt_keys(negotiated);
    }

    fn on_handshake_complete(&self, negotiated: &Negotiated<'_>) {
        self.delegator.on_handshake_complete(negotiated);
    }

    fn on_peer_parameters(&self, peer: &mut Parameters) -> bool {
        self.delegator.on_peer_parameters(peer)
    }

    fn seal(&self, outgoing: &mut Outgoing<'_>) -> Nonce {
        let nonce = self.delegator.seal(outgoing);
        self.record(outgoing.generation, nonce);
        nonce
    }

    fn on_opened(&self, incoming: &mut Incoming<'_>) {
        self.delegator.on_opened(incoming);
    }

    fn sealed_remotely(&self, generation: u32) -> u64 {
        self.delegator.sealed_remotely(generation)
    }
}

/// Both ends of a connection.
pub struct Testbed {
    /// The server's socket, on which real servers send as well.
    pub socket: UdpSocket,
    pub address: SocketAddr,
    pub client: noq::Connection,
    pub server: noq::Connection,
    pub observer: Arc<NonceRecorder>,
    /// NAT in front of the client.
    pub nat: Nat,
    /// Kept open for the life of the testbed.
    _endpoints: [Endpoint; 2],
}

fn transport(paths: u32) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.max_concurrent_multipath_paths(paths);
    transport.receive_window(400_000u32.into());
    Arc::new(transport)
}

impl Testbed {
    /// Connect a client that opens `paths` paths; 0 disables multipath.
    pub async fn new(paths: u32) -> Self {
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
        let observe = || {
            Arc::new(NonceRecorder {
                delegator: Delegator::new(()),
                nonces: Mutex::default(),
            })
        };
        let session = Config::server(tls, Vec::new(), observe).unwrap();
        let mut config = noq::ServerConfig::with_crypto(Arc::new(session));
        config.transport_config(transport(8));
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let wrapped = TokioRuntime.wrap_udp_socket(socket.try_clone().unwrap());
        let endpoint = Endpoint::new_with_abstract_socket(
            EndpointConfig::default(),
            Some(config),
            Box::new(Socket::over(wrapped.unwrap(), None)),
            Arc::new(TokioRuntime),
        );
        let server_endpoint = endpoint.unwrap();

        let mut tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.enable_early_data = true;
        let crypto = QuicClientConfig::try_from(tls).unwrap();
        let mut config = noq::ClientConfig::new(Arc::new(crypto));
        config.transport_config(transport(paths));
        let client_endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        client_endpoint.set_default_client_config(config);

        let address = socket.local_addr().unwrap();
        let nat = Nat::new(address, address.ip()).await;
        let connecting = client_endpoint
            .connect(nat.address, "frontage.test")
            .unwrap();
        let accepting = async { server_endpoint.accept().await.expect("a client").await };
        let (client, server) = tokio::join!(connecting, accepting);
        let (client, server) = (client.unwrap(), server.unwrap());
        for _ in 1..paths {
            // Waits for the server's connection ids for the path.
            let opening = || client.open_path(nat.address, PathStatus::Available);
            let has_ids = |path: &OpenPath| path.path_id().is_some();
            wait_for(|| Some(opening()).filter(has_ids))
                .await
                .await
                .unwrap();
        }
        let handshake: Box<Handshake<NonceRecorder>> =
            server.handshake_data().unwrap().downcast().unwrap();
        Self {
            socket,
            address,
            client,
            server,
            observer: handshake.observer,
            nat,
            _endpoints: [server_endpoint, client_endpoint],
        }
    }

    pub fn delegator(&self) -> &Delegator<()> {
        &self.observer.delegator
    }

    /// Request `wanted` more bytes of credit for the real server of `path`. Returns its credit.
    pub fn more_credit(&self, path: u32, wanted: u64) -> u64 {
        let now = self.delegator().request_credit(path, 0).unwrap();
        self.delegator().request_credit(path, now + wanted).unwrap()
    }

    /// Delegate a path as soon as there is one.
    pub async fn delegate(&self) -> (Grant, Events) {
        wait_for(|| self.delegator().delegate_path(&self.server, self.address)).await
    }

    /// Send a request. Returns the client's receiving half, the server's sending half, and the id of the stream.
    pub async fn request(&self) -> (noq::RecvStream, noq::SendStream, u64) {
        let (mut sending, response) = self.client.open_bi().await.unwrap();
        sending.write_all(b"please").await.unwrap();
        sending.finish().unwrap();
        let (server_half, mut request) = self.server.accept_bi().await.unwrap();
        assert_eq!(request.read_to_end(10).await.unwrap(), b"please");
        let id = u64::from(noq::VarInt::from(server_half.id()));
        (response, server_half, id)
    }

    /// Have noq send `length` bytes to the client on a stream that is not delegated.
    pub async fn carry(&self, length: usize) {
        let (mut response, mut server_half, _) = self.request().await;
        let sent = bytes(length, 1);
        let sending = async {
            server_half.write_all(&sent).await.unwrap();
            server_half.finish().unwrap();
        };
        let ((), received) = tokio::join!(sending, response.read_to_end(length));
        assert!(received.unwrap() == sent);
    }
}

/// Poll `look` until it returns a value.
pub async fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let found = tokio::time::timeout(TEST_TIMEOUT, looking);
    found.await.expect("timed out")
}

/// Return test content.
pub fn bytes(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|i| ((i + seed) * 7 % 251) as u8).collect()
}
