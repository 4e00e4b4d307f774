// SPDX-License-Identifier: Apache-2.0
//! A resolver, a proxy and servers for the tests.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use frontage_quicsocks::config::{Config, Limits, User};
use frontage_quicsocks::outcome::ClientDatagram;
use frontage_quicsocks::proxy::Proxy;
use frontage_quicsocks::resolve::RecursiveResolver;
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq::{ClientConfig, Endpoint, Incoming, ServerConfig, ValidationTokenConfig};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivateKeyDer;
use test_requirements::require;
use tokio::time::timeout;

/// Time limit for any step of a test.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Name whose address is the server's.
pub const NAME: &str = "ok.example";

/// An unbound server. It knows [`NAME`], `empty.example` without an address, `inside.example` with a private one, and
/// refuses queries for `refused.example`.
pub struct Resolver {
    child: Child,
    folder: PathBuf,
    pub address: SocketAddr,
}

impl Resolver {
    /// Starts unbound and waits until it answers. Returns `None` where unbound is not installed.
    pub async fn start() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = format!("quicsocks-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        let free_port = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = free_port.local_addr().unwrap();
        drop(free_port);
        let text = format!(
            "server:\n interface: 127.0.0.1@{}\n access-control: 127.0.0.0/8 allow\n chroot: \"\"\n username: \"\"\n \
             directory: \"{1}\"\n pidfile: \"{1}/pid\"\n use-syslog: no\n do-daemonize: no\n module-config: \"iterator\"\n \
             local-zone: \"example.\" static\n local-data: \"{NAME}. 60 IN AAAA ::1\"\n local-data: \"empty.example. 60 IN TXT x\"\n \
             local-data: \"inside.example. 60 IN A 10.0.0.1\"\n local-zone: \"refused.example.\" refuse\n\
             remote-control:\n control-enable: no\n",
            address.port(),
            folder.display(),
        );
        std::fs::write(folder.join("conf"), text).unwrap();
        let child = Command::new("/usr/sbin/unbound")
            .args(["-d", "-c"])
            .arg(folder.join("conf"))
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = child else {
            require(false, "unbound", "apt install unbound");
            return None;
        };
        let resolver = Self {
            child,
            folder,
            address,
        };
        let answering = async {
            while RecursiveResolver::new(&[address], 0)
                .unwrap()
                .resolve(NAME, "::1".parse().unwrap())
                .await
                .is_err()
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(TEST_TIMEOUT, answering)
            .await
            .expect("unbound answers");
        Some(resolver)
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Settings of a test's proxy.
pub struct Options {
    pub users: Vec<User>,
    pub limits: Limits,
    /// If set, the proxy may forward to the loopback address.
    pub allow_loopback: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            users: Vec::new(),
            limits: Limits::default(),
            allow_loopback: true,
        }
    }
}

impl Options {
    /// Options with one user, `ada` with the password `engine`.
    pub fn with_user() -> Self {
        let user = User {
            name: "ada".into(),
            password: "engine".into(),
        };
        Self {
            users: vec![user],
            ..Self::default()
        }
    }
}

/// Starts a proxy on the loopback interface.
pub async fn start_proxy(resolver: SocketAddr, options: Options) -> Proxy {
    let allow = if options.allow_loopback {
        vec!["::1/128".parse().unwrap()]
    } else {
        Vec::new()
    };
    let config = Config {
        listen: vec!["[::1]:0".parse().unwrap()],
        resolvers: vec![resolver],
        metrics: None,
        allow,
        users: options.users,
        limits: options.limits,
    };
    Proxy::start(config).await.unwrap()
}

/// Waits until the proxy has counted `n` client datagrams with this outcome.
pub async fn wait_for_count(proxy: &Proxy, outcome: ClientDatagram, n: u64) {
    wait_until(
        || proxy.metrics().client_datagrams.get(outcome) == n,
        outcome.name(),
    )
    .await;
}

/// Waits until `condition` holds.
pub async fn wait_until(condition: impl Fn() -> bool, what: &str) {
    let holds = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let held = timeout(TEST_TIMEOUT, holds).await;
    held.unwrap_or_else(|_| panic!("timed out after {TEST_TIMEOUT:?} waiting for {what}"));
}

/// An echo server, and the configuration with which clients trust it. Both permit 0-RTT data.
pub struct Server {
    pub port: u16,
    pub config: ClientConfig,
    /// Bytes that the server received in streams that clients opened with 0-RTT data.
    pub early_bytes: Arc<AtomicU64>,
    _endpoint: Endpoint,
}

/// Starts an echo server that sends a Retry to every client if `retry` is set.
pub fn start_server(retry: bool) -> Server {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec![NAME.into()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    tls.alpn_protocols = vec![b"h3".into()];
    tls.max_early_data_size = u32::MAX;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let mut trust = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    trust.alpn_protocols = vec![b"h3".into()];
    trust.enable_early_data = true;
    let tls = QuicServerConfig::try_from(tls).unwrap();
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    let mut tokens = ValidationTokenConfig::default();
    tokens.sent(0); // a client with a token gets no Retry
    config.validation_token_config(tokens);
    let endpoint = Endpoint::server(config, "[::1]:0".parse().unwrap()).unwrap();
    let port = endpoint.local_addr().unwrap().port();
    let early_bytes = Arc::new(AtomicU64::new(0));
    let (accepting, counter) = (endpoint.clone(), early_bytes.clone());
    tokio::spawn(async move {
        while let Some(incoming) = accepting.accept().await {
            if retry && !incoming.remote_address_validated() {
                incoming.retry().unwrap();
                continue;
            }
            tokio::spawn(echo(incoming, counter.clone()));
        }
    });
    let trust = QuicClientConfig::try_from(trust).unwrap();
    Server {
        port,
        config: ClientConfig::new(Arc::new(trust)),
        early_bytes,
        _endpoint: endpoint,
    }
}

/// Echoes all streams of a connection, and counts the bytes of those that began during the handshake.
async fn echo(incoming: Incoming, early_bytes: Arc<AtomicU64>) -> Option<()> {
    let (connection, _) = incoming.accept().ok()?.into_0rtt().ok()?;
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        let is_early = receive.is_0rtt();
        let request = receive.read_to_end(1 << 20).await.ok()?;
        if is_early {
            early_bytes.fetch_add(request.len() as u64, Ordering::Relaxed);
        }
        send.write_all(&request).await.ok()?;
        send.finish().ok()?;
    }
    Some(())
}

/// Forwards datagrams to the server at `port`, and its answers, each after `delay`. Returns the port to send to.
///
/// Servers on the loopback interface answer so fast that the order of events would depend on the scheduler.
pub async fn start_slow_path(port: u16, delay: Duration) -> u16 {
    let front = Arc::new(tokio::net::UdpSocket::bind("[::1]:0").await.unwrap());
    let slow_port = front.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut clients = HashMap::new();
        let mut datagram = [0; 2048];
        loop {
            // An ICMP error concerns an earlier datagram.
            let Ok((length, from)) = front.recv_from(&mut datagram).await else {
                continue;
            };
            if let Entry::Vacant(entry) = clients.entry(from) {
                let back = tokio::net::UdpSocket::bind("[::1]:0").await.unwrap();
                back.connect(("::1", port)).await.unwrap();
                let back = entry.insert(Arc::new(back)).clone();
                tokio::spawn(return_answers(back, front.clone(), from, delay));
            }
            let (back, copy) = (clients[&from].clone(), datagram[..length].to_vec());
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                let _ = back.send(&copy).await;
            });
        }
    });
    slow_port
}

async fn return_answers(
    back: Arc<tokio::net::UdpSocket>,
    front: Arc<tokio::net::UdpSocket>,
    to: SocketAddr,
    delay: Duration,
) {
    let mut datagram = [0; 2048];
    loop {
        let Ok(length) = back.recv(&mut datagram).await else {
            continue;
        };
        let (front, copy) = (front.clone(), datagram[..length].to_vec());
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            let _ = front.send_to(&copy, to).await;
        });
    }
}

/// Opens a stream, sends `text` and waits for its echo.
pub async fn exchange(quic: &noq::Connection, text: &[u8]) {
    let (mut send, mut receive) = quic.open_bi().await.unwrap();
    send.write_all(text).await.unwrap();
    send.finish().unwrap();
    assert_eq!(receive.read_to_end(1 << 20).await.unwrap(), text);
}
