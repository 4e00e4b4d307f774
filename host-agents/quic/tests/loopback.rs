// SPDX-License-Identifier: Apache-2.0
//! A server and a client of this crate over the loopback interface: results of the handshake, HTTP/3, the meter,
//! the meter's assumption about batches, and how often the server acknowledges packets.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use frontage_cookie::{Secret, cid, ipv6};
use frontage_quic::cid::Form;
use frontage_quic::h3::Connection;
use frontage_quic::keys::Keys;
use frontage_quic::layer::{Layer, Layered, SendLayer};
use frontage_quic::meter::{Loads, Meter};
use frontage_quic::session::{Config, Handshake, Observer, Packet};
use frontage_quic::socket::Socket;
use frontage_quic_wire::parameters::{self, Parameters};
use noq::udp::Transmit;
use noq::{
    AsyncUdpSocket, ConnectError, Endpoint, EndpointConfig, Side, TokioRuntime, TransportConfig,
    UdpSender, crypto,
};
use noq_proto::transport_parameters::TransportParameters;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::sync::oneshot;

const SID: u16 = 0x1234;
const LENGTH: usize = 3_000_000;
/// Id of the transport parameter `min_ack_delay` (draft-ietf-quic-ack-frequency).
const MIN_ACK_DELAY: u64 = 0xff04_de1b;
/// Packets that a client sends one at a time.
const PACKETS: u64 = 100;

/// Records the number of key updates before the newest received packet.
#[derive(Default)]
struct Updates(AtomicU32);

impl Observer for Updates {
    fn on_sent(&self, _: &Packet<'_>) {}

    fn on_received(&self, packet: &Packet<'_>) {
        self.0.fetch_max(packet.generation, Relaxed);
    }
}

fn key() -> ipv6::Key {
    ipv6::Key::new(1, &Secret::new(&[3; 16]).unwrap())
}

fn server<O: Observer>(
    own: &Parameters,
    observe: impl Fn() -> Arc<O> + Send + Sync + 'static,
    wrap: impl FnOnce(Socket) -> Box<dyn AsyncUdpSocket>,
) -> (Endpoint, rustls::RootCertStore) {
    let made = rcgen::generate_simple_self_signed(vec!["frontage.test".into()]).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![made.cert.der().clone()],
            PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()).into(),
        )
        .unwrap();
    tls.alpn_protocols = vec![b"h3".into()];
    let session = Config::server(tls, own.clone(), observe).unwrap();
    let session = session.with_rare_acks();
    let keys = Arc::new(Keys::new(SID, vec![key()]).unwrap());
    let endpoint = Endpoint::new_with_abstract_socket(
        Form::sealed(keys, SID).endpoint_config(),
        Some(noq::ServerConfig::with_crypto(Arc::new(session))),
        wrap(Socket::bind("[::1]:0".parse().unwrap(), None).unwrap()),
        Arc::new(TokioRuntime),
    );
    (endpoint.unwrap(), roots)
}

fn client_session(
    roots: rustls::RootCertStore,
    own: &Parameters,
) -> Config<rustls::ClientConfig, Updates> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".into()];
    Config::client(tls, own.clone(), Arc::<Updates>::default).unwrap()
}

fn client(roots: rustls::RootCertStore, own: &Parameters) -> Endpoint {
    let session = client_session(roots, own);
    let endpoint = Endpoint::new_with_abstract_socket(
        EndpointConfig::default(),
        None,
        Box::new(Socket::bind("[::1]:0".parse().unwrap(), None).unwrap()),
        Arc::new(TokioRuntime),
    )
    .unwrap();
    endpoint.set_default_client_config(noq::ClientConfig::new(Arc::new(session)));
    endpoint
}

/// A TLS client that does not announce that it supports ACK_FREQUENCY.
struct WithoutAckFrequency(Arc<dyn crypto::ClientConfig>);

impl crypto::ClientConfig for WithoutAckFrequency {
    fn start_session(
        &self,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        let (mut wire, mut fewer) = (Vec::new(), Vec::new());
        params.write(&mut wire);
        let mut all = parameters::read(&wire);
        all.retain(|(id, _)| *id != MIN_ACK_DELAY);
        parameters::write(&all, &mut fewer);
        let params = TransportParameters::read(Side::Server, &mut &fewer[..]).unwrap();
        self.0.start_session(version, server_name, &params)
    }
}

fn handshake<O: Observer>(connection: &noq::Connection) -> Handshake<O> {
    *connection
        .handshake_data()
        .expect("the handshake has results")
        .downcast()
        .expect("the session is this crate's")
}

fn pattern(length: usize) -> Bytes {
    (0..length).map(|i| (i % 251) as u8).collect()
}

/// Serve one request, and return when `done`.
async fn serve(connection: noq::Connection, meter: Arc<Meter>, done: oneshot::Receiver<()>) {
    let mut h3 = h3::server::Connection::<_, Bytes>::new(Connection::new(connection))
        .await
        .unwrap();
    let resolver = h3.accept().await.unwrap().expect("a request");
    let (request, mut stream) = resolver.resolve_request().await.unwrap();
    assert_eq!(request.uri().path(), "/three/megabytes");
    meter.begin(stream.id().into_inner(), Some(LENGTH as u64));
    stream.send_response(http::Response::new(())).await.unwrap();
    stream.send_data(pattern(LENGTH)).await.unwrap();
    // Completes once the client has acknowledged everything.
    stream.finish().await.unwrap();
    let _ = done.await;
}

#[tokio::test]
async fn response_is_delivered_and_measured() {
    let loads = Arc::new(Loads::new(1_000_000));
    let ours: Parameters = vec![(0x3f7a, Bytes::from_static(b"of the server"))];
    let theirs: Parameters = vec![(0x3f7b, Bytes::from_static(b"of the client"))];
    let counted = loads.clone();
    let meter = move || Arc::new(Meter::new(counted.clone(), Arc::default()));
    let (server, roots) = server(&ours, meter, |socket| Box::new(socket));
    let client = client(roots, &theirs);
    let address: SocketAddr = server.local_addr().unwrap();

    let connecting = client.connect(address, "frontage.test").unwrap();
    let accepting = async { server.accept().await.expect("a client").await };
    let (there, here) = tokio::join!(connecting, accepting);
    let (there, here) = (there.unwrap(), here.unwrap());

    let (at_server, at_client) = (handshake::<Meter>(&here), handshake::<Updates>(&there));
    assert_eq!(at_server.protocol.as_deref(), Some(&b"h3"[..]));
    assert_eq!(at_server.server_name.as_deref(), Some("frontage.test"));
    assert!(at_server.peer.contains(&theirs[0]) && at_client.peer.contains(&ours[0]));
    assert!(at_server.secrets.is_some() && at_server.secrets == at_client.secrets);
    // initial_source_connection_id (RFC 9000, section 18.2) is the id that the server chose.
    let chosen = &at_client
        .peer
        .iter()
        .find(|(id, _)| *id == 0x0f)
        .expect("the parameter is mandatory")
        .1;
    assert_eq!(cid::open([&key()], chosen), Some(SID));

    let client_side = there.clone();
    let (leave, done) = oneshot::channel();
    let task = tokio::spawn(serve(here, at_server.observer, done));
    let (mut driver, mut requests) = h3::client::new(Connection::new(there)).await.unwrap();
    let driver = tokio::spawn(async move { driver.wait_idle().await });
    let request = http::Request::get("https://frontage.test/three/megabytes")
        .body(())
        .unwrap();
    let mut stream = requests.send_request(request).await.unwrap();
    stream.finish().await.unwrap();
    assert_eq!(stream.recv_response().await.unwrap().status(), 200);
    assert_eq!((loads.n_af(), loads.n_ff()), (1, 1));
    client_side.force_key_update();
    let mut received = Vec::new();
    while let Some(mut part) = stream.recv_data().await.unwrap() {
        received.extend(part.copy_to_bytes(part.remaining()));
    }
    assert_eq!(received, pattern(LENGTH));
    // The response is completely sent.
    assert_eq!((loads.n_af(), loads.n_ff()), (0, 0));
    assert_eq!(at_client.observer.0.load(Relaxed), 1);
    leave.send(()).unwrap();
    task.await.unwrap();
    drop(requests);
    driver.await.unwrap();
}

thread_local! {
    /// Packets made on this thread since the last batch was sent.
    static MADE: Cell<u32> = const { Cell::new(0) };
}

struct Made;

impl Observer for Made {
    fn on_sent(&self, _: &Packet<'_>) {
        MADE.set(MADE.get() + 1);
    }

    fn on_received(&self, _: &Packet<'_>) {}
}

/// Checks that a batch is what was made since the previous one.
#[derive(Clone, Debug)]
struct BatchCheck {
    /// Number of batches with 1-RTT packets only, and number of those with more than one packet.
    batches: Arc<[AtomicU32; 2]>,
}

impl Layer for BatchCheck {
    type Sender = Self;

    fn sender(&self) -> Self {
        self.clone()
    }
}

impl SendLayer for BatchCheck {
    fn poll_send(
        &mut self,
        below: Pin<&mut dyn UdpSender>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(below.poll_send(transmit, cx))?;
        let made = MADE.take();
        // The first bit marks a long header, which handshake packets have.
        if transmit.contents[0] & 0x80 == 0 {
            let whole = transmit.contents.len();
            let packets = whole.div_ceil(transmit.segment_size.unwrap_or(whole)) as u32;
            assert_eq!(made, packets);
            self.batches[0].fetch_add(1, Relaxed);
            self.batches[1].fetch_add(u32::from(packets > 1), Relaxed);
        }
        Poll::Ready(Ok(()))
    }
}

/// The meter relies on this: it leaves the summary of a batch on the thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batch_is_what_its_thread_made_since_the_previous_batch() {
    let batches = Arc::<[AtomicU32; 2]>::default();
    let counted = batches.clone();
    let wrap = |socket| -> Box<dyn AsyncUdpSocket> {
        let check = BatchCheck { batches: counted };
        Box::new(Layered::new(Box::new(socket), check))
    };
    let (server, roots) = server(&Vec::new(), || Arc::new(Made), wrap);
    let client = client(roots, &Vec::new());
    let connecting = client
        .connect(server.local_addr().unwrap(), "frontage.test")
        .unwrap();
    let accepting = async { server.accept().await.expect("a client").await };
    let (there, here) = tokio::join!(connecting, accepting);
    let (there, here) = (there.unwrap(), here.unwrap());
    let sending = async {
        let mut stream = here.open_uni().await.unwrap();
        stream.write_all(&pattern(LENGTH)).await.unwrap();
        stream.finish().unwrap();
    };
    let receiving = async {
        let mut stream = there.accept_uni().await.unwrap();
        stream.read_to_end(LENGTH).await.unwrap()
    };
    let ((), received) = tokio::join!(sending, receiving);
    assert!(received == pattern(LENGTH));
    let [all, several] = [0, 1].map(|i| batches[i].load(Relaxed));
    assert!(several > 0 && all >= several, "{several} of {all}");
}

/// Send [`PACKETS`] of about `length` bytes. Return the number of packets with which the server acknowledged them.
async fn count_acks(length: usize, supports_ack_frequency: bool) -> u64 {
    let (server, roots) = server(&Vec::new(), Arc::<()>::default, |socket| Box::new(socket));
    let client = client(roots.clone(), &Vec::new());
    let session: Arc<dyn crypto::ClientConfig> = Arc::new(client_session(roots, &Vec::new()));
    let session = match supports_ack_frequency {
        true => session,
        false => Arc::new(WithoutAckFrequency(session)),
    };
    let mut config = noq::ClientConfig::new(session);
    let mut transport = TransportConfig::default();
    // Packets that measure the MTU are long.
    transport.mtu_discovery_config(None);
    config.transport_config(Arc::new(transport));
    let address = server.local_addr().unwrap();
    let connecting = client
        .connect_with(config, address, "frontage.test")
        .unwrap();
    let accepting = async { server.accept().await.expect("a client").await };
    let (there, here) = tokio::join!(connecting, accepting);
    let (there, here) = (there.unwrap(), here.unwrap());
    let acks = || here.stats().frame_tx.acks;
    let before = acks();
    for _ in 0..PACKETS {
        there.send_datagram(vec![0; length].into()).unwrap();
        here.read_datagram().await.unwrap();
    }
    acks() - before
}

#[tokio::test]
async fn short_packets_are_acknowledged_rarely() {
    let acks = count_acks(50, false).await;
    // One of two packets at first, and one of ten later. A pause of the machine adds one.
    assert!(acks < PACKETS / 3, "{acks}");
}

#[tokio::test]
async fn packets_that_could_fill_smallest_window_are_acknowledged_as_usual() {
    let acks = count_acks(300, false).await;
    assert!(acks >= PACKETS * 2 / 5, "{acks}");
}

#[tokio::test]
async fn client_with_ack_frequency_is_acknowledged_as_usual() {
    let acks = count_acks(50, true).await;
    assert!(acks >= PACKETS * 2 / 5, "{acks}");
}
