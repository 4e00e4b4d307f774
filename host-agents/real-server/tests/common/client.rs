// SPDX-License-Identifier: Apache-2.0
//! An unmodified client: noq with crate `h3`.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use frontage_quic::h3::{Connection, Opener};
use frontage_testkit::{Impairment, impaired};
use h3::client::SendRequest;
use http::Request;
use noq::crypto::{self, rustls::QuicClientConfig};
use noq::{
    ClientConfig, Endpoint, EndpointConfig, PathError, PathStatus, Runtime as _, TokioRuntime,
    TransportConfig,
};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::{Testbed, wait_until};

pub struct Client {
    endpoint: Endpoint,
    pub quic: noq::Connection,
    requests: SendRequest<Opener, Bytes>,
}

/// Maximum time for a response.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_secs(120);

/// Status and body of a response, or its error.
pub type Response = Result<(u16, Vec<u8>), String>;

impl Client {
    /// Connect with `paths` paths, all with the same addresses.
    pub async fn connect(testbed: &Testbed, paths: u32) -> Self {
        let endpoint = Endpoint::client("0.0.0.0:0".parse().unwrap()).unwrap();
        Self::connect_from(endpoint, testbed, testbed.address(), paths).await
    }

    /// Connect through a socket with loss and reordering.
    pub async fn connect_impaired(testbed: &Testbed, paths: u32, impairment: Impairment) -> Self {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        let socket = TokioRuntime.wrap_udp_socket(socket).unwrap();
        let socket = impaired(socket, impairment);
        let config = EndpointConfig::default();
        let runtime = Arc::new(TokioRuntime);
        let endpoint = Endpoint::new_with_abstract_socket(config, None, socket, runtime);
        Self::connect_from(endpoint.unwrap(), testbed, testbed.address(), paths).await
    }

    /// Connect from `endpoint` to the balancer at `address`.
    pub async fn connect_from(
        endpoint: Endpoint,
        testbed: &Testbed,
        address: SocketAddr,
        paths: u32,
    ) -> Self {
        let session = Arc::new(QuicClientConfig::try_from(tls(testbed)).unwrap());
        let transport = TransportConfig::default();
        Self::connect_with(endpoint, session, transport, address, paths).await
    }

    /// Connect with this cryptography and transport.
    pub async fn connect_with(
        endpoint: Endpoint,
        session: Arc<dyn crypto::ClientConfig>,
        mut transport: TransportConfig,
        address: SocketAddr,
        paths: u32,
    ) -> Self {
        let mut config = ClientConfig::new(session);
        if paths > 1 {
            transport.max_concurrent_multipath_paths(paths);
        }
        config.transport_config(Arc::new(transport));
        let connecting = endpoint.connect_with(config, address, "lb.test");
        let quic = connecting.unwrap().await.unwrap();
        for _ in 1..paths {
            open_path(&quic, address).await;
        }
        let built = h3::client::new(Connection::new(quic.clone())).await;
        let (mut driver, requests) = built.unwrap();
        tokio::spawn(async move { driver.wait_idle().await });
        Self {
            endpoint,
            quic,
            requests,
        }
    }

    /// Request `name`. Several requests may be active at a time.
    pub fn get(&self, name: &str) -> tokio::task::JoinHandle<Response> {
        self.send(Request::get(format!("https://lb.test/{name}")), Vec::new())
    }

    /// Request `name` with this value of `Priority`.
    pub fn get_with_priority(
        &self,
        name: &str,
        priority: &str,
    ) -> tokio::task::JoinHandle<Response> {
        let request = Request::get(format!("https://lb.test/{name}"));
        self.send(request.header("priority", priority), Vec::new())
    }

    /// Send `body` to `name`.
    pub fn post(&self, name: &str, body: Vec<u8>) -> tokio::task::JoinHandle<Response> {
        let request = Request::post(format!("https://lb.test/{name}"));
        self.send(request.header("content-length", body.len()), body)
    }

    fn send(
        &self,
        request: http::request::Builder,
        body: Vec<u8>,
    ) -> tokio::task::JoinHandle<Response> {
        let mut requests = self.requests.clone();
        tokio::spawn(async move {
            let request = request.body(()).unwrap();
            let reason = |error: h3::error::StreamError| error.to_string();
            let mut stream = requests.send_request(request).await.map_err(reason)?;
            if !body.is_empty() {
                stream.send_data(body.into()).await.map_err(reason)?;
            }
            stream.finish().await.map_err(reason)?;
            let head = stream.recv_response().await.map_err(reason)?;
            let mut body = Vec::new();
            while let Some(mut part) = stream.recv_data().await.map_err(reason)? {
                body.extend_from_slice(&part.copy_to_bytes(part.remaining()));
            }
            Ok((head.status().as_u16(), body))
        })
    }

    /// Request `name`, and compare the response while it arrives. Fails at the first difference.
    pub fn check(
        &self,
        name: &str,
        expected: Bytes,
    ) -> tokio::task::JoinHandle<Result<(), String>> {
        let mut requests = self.requests.clone();
        let uri = format!("https://lb.test/{name}");
        tokio::spawn(async move {
            let request = Request::get(uri).body(()).unwrap();
            let reason = |error: h3::error::StreamError| error.to_string();
            let mut stream = requests.send_request(request).await.map_err(reason)?;
            stream.finish().await.map_err(reason)?;
            let status = stream.recv_response().await.map_err(reason)?.status();
            if status != 200 {
                return Err(format!("status {status}"));
            }
            let mut at = 0;
            while let Some(mut part) = stream.recv_data().await.map_err(reason)? {
                while part.has_remaining() {
                    let length = part.chunk().len();
                    if expected.get(at..at + length) != Some(part.chunk()) {
                        return Err(format!("other bytes from offset {at}"));
                    }
                    at += length;
                    part.advance(length);
                }
            }
            let length = expected.len();
            (at == length)
                .then_some(())
                .ok_or(format!("{at} of {length} bytes"))
        })
    }

    pub async fn close(self) {
        self.quic.close(0x100_u32.into(), b"");
        let _ = tokio::time::timeout(Duration::from_secs(1), self.endpoint.wait_idle()).await;
    }
}

/// Return a TLS configuration that trusts the testbed's CA.
pub fn tls(testbed: &Testbed) -> rustls::ClientConfig {
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_file(testbed.folder.join("ca.pem")).unwrap();
    roots.add(ca).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".into()];
    tls
}

/// Open a path. Retries until the server's connection ids for it have arrived, which noq does not report.
async fn open_path(quic: &noq::Connection, server: SocketAddr) {
    let opened = async {
        loop {
            match quic.open_path(server, PathStatus::Available).await {
                Ok(_) => return,
                Err(PathError::RemoteCidsExhausted | PathError::MaxPathIdReached) => {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                Err(error) => panic!("cannot open a path: {error}"),
            }
        }
    };
    let opened = tokio::time::timeout(frontage_testkit::TEST_TIMEOUT, opened).await;
    opened.expect("the server allows further paths");
}

/// Request `long` twice, and wait until both real servers send.
pub async fn start_on_both_servers(
    testbed: &Testbed,
    client: &Client,
) -> [tokio::task::JoinHandle<Response>; 2] {
    let sent = || [0, 1].map(|i| testbed.server_metric(i, "body_bytes_total"));
    let before = sent();
    let long = [client.get("long2"), client.get("long")];
    wait_until("both servers send", || {
        sent().iter().zip(before).all(|(now, before)| *now > before)
    })
    .await;
    long
}

/// Request all `files` concurrently.
pub async fn get_all(client: &Client, files: &[(String, Vec<u8>)]) -> Vec<Response> {
    let requests: Vec<_> = files.iter().map(|(name, _)| client.get(name)).collect();
    let mut responses = Vec::new();
    for request in requests {
        let response = tokio::time::timeout(RESPONSE_TIMEOUT, request).await;
        responses.push(response.expect("a response in time").unwrap());
    }
    responses
}
