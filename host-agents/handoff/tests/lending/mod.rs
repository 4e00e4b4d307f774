//! A client that is noq's and nothing else, and a server with a lender, over the loopback interface.

use std::collections::HashSet;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use frontage_handoff::grant::Grant;
use frontage_handoff::lend::{Events, Lender};
use frontage_quic::session::{
    Config, Handshake, Incoming, Negotiated, Nonce, Observer, Outgoing, Packet,
};
use frontage_quic::socket::Socket;
use frontage_quic_wire::parameters::Parameters;
use frontage_testkit::Nat;
use noq::crypto::rustls::QuicClientConfig;
use noq::{
    Endpoint, EndpointConfig, OpenPath, PathStatus, Runtime as _, TokioRuntime, TransportConfig,
};
use rustls::pki_types::PrivatePkcs8KeyDer;

pub mod real_server;

/// A lender that remembers the nonces, by generation of keys.
pub struct Remembering {
    pub lender: Lender<()>,
    pub nonces: Mutex<HashSet<(u32, Nonce)>>,
}

impl Remembering {
    /// This nonce is used, for the first time.
    pub fn remember(&self, generation: u32, nonce: Nonce) {
        let mut nonces = self.nonces.lock().unwrap();
        assert!(nonces.insert((generation, nonce)), "{nonce:?} again");
    }
}

impl Observer for Remembering {
    fn on_sent(&self, packet: &Packet<'_>) {
        self.lender.on_sent(packet);
    }

    fn on_received(&self, packet: &Packet<'_>) {
        self.lender.on_received(packet);
    }

    fn on_handshake_complete(&self, agreed: &Negotiated<'_>) {
        self.lender.on_handshake_complete(agreed);
    }

    fn on_peer_parameters(&self, peer: &mut Parameters) -> bool {
        self.lender.on_peer_parameters(peer)
    }

    fn seal(&self, outgoing: &mut Outgoing<'_>) -> Nonce {
        let nonce = self.lender.seal(outgoing);
        self.remember(outgoing.generation, nonce);
        nonce
    }

    fn on_opened(&self, incoming: &mut Incoming<'_>) {
        self.lender.on_opened(incoming);
    }

    fn sealed_remotely(&self, generation: u32) -> u64 {
        self.lender.sealed_remotely(generation)
    }
}

/// A connection, seen from both ends.
pub struct World {
    /// The server's, of which a real server may send as well.
    pub socket: UdpSocket,
    pub address: SocketAddr,
    pub client: noq::Connection,
    pub server: noq::Connection,
    pub observer: Arc<Remembering>,
    /// Before the client.
    pub nat: Nat,
    /// They end with it.
    _endpoints: [Endpoint; 2],
}

fn transport(paths: u32) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.max_concurrent_multipath_paths(paths);
    transport.receive_window(400_000u32.into());
    Arc::new(transport)
}

impl World {
    /// A client that knows `paths` paths at a time and opens all; none but the first if that is 0.
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
            Arc::new(Remembering {
                lender: Lender::new(()),
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
        let here = endpoint.unwrap();

        let mut tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.enable_early_data = true;
        let crypto = QuicClientConfig::try_from(tls).unwrap();
        let mut config = noq::ClientConfig::new(Arc::new(crypto));
        config.transport_config(transport(paths));
        let there = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        there.set_default_client_config(config);

        let address = socket.local_addr().unwrap();
        let nat = Nat::new(address, address.ip()).await;
        let connecting = there.connect(nat.address, "frontage.test").unwrap();
        let accepting = async { here.accept().await.expect("a client").await };
        let (client, server) = tokio::join!(connecting, accepting);
        let (client, server) = (client.unwrap(), server.unwrap());
        for _ in 1..paths {
            // Not before the server's connection ids for it have come.
            let opening = || client.open_path(nat.address, PathStatus::Available);
            let has_ids = |path: &OpenPath| path.path_id().is_some();
            soon(|| Some(opening()).filter(has_ids))
                .await
                .await
                .unwrap();
        }
        let handshake: Box<Handshake<Remembering>> =
            server.handshake_data().unwrap().downcast().unwrap();
        Self {
            socket,
            address,
            client,
            server,
            observer: handshake.observer,
            nat,
            _endpoints: [here, there],
        }
    }

    pub fn lender(&self) -> &Lender<()> {
        &self.observer.lender
    }

    /// The real server of `path` is to have so many bytes more; what it may send then.
    pub fn more_credit(&self, path: u32, wanted: u64) -> u64 {
        let now = self.lender().need_credit(path, 0).unwrap();
        self.lender().need_credit(path, now + wanted).unwrap()
    }

    /// Lends a path, as soon as there is one.
    pub async fn lend(&self) -> (Grant, Events) {
        soon(|| self.lender().lend_path(&self.server, self.address)).await
    }

    /// The client asks for something, and the server gets its two halves of the stream.
    pub async fn ask(&self) -> (noq::RecvStream, noq::SendStream, u64) {
        let (mut asking, answer) = self.client.open_bi().await.unwrap();
        asking.write_all(b"please").await.unwrap();
        asking.finish().unwrap();
        let (answering, mut request) = self.server.accept_bi().await.unwrap();
        assert_eq!(request.read_to_end(10).await.unwrap(), b"please");
        let id = u64::from(noq::VarInt::from(answering.id()));
        (answer, answering, id)
    }

    /// noq carries something from the server to the client on a stream of its own.
    pub async fn carry(&self, length: usize) {
        let (mut answer, mut answering, _) = self.ask().await;
        let sent = bytes(length, 1);
        let sending = async {
            answering.write_all(&sent).await.unwrap();
            answering.finish().unwrap();
        };
        let ((), received) = tokio::join!(sending, answer.read_to_end(length));
        assert!(received.unwrap() == sent);
    }
}

/// Waits until there is something.
pub async fn soon<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(20), looking);
    found.await.expect("it comes")
}

/// Some content.
pub fn bytes(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|i| ((i + seed) * 7 % 251) as u8).collect()
}
