//! Resolver, proxy and servers of a test.

use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use frontage_quicsocks::config::{Config, Limits, User};
use frontage_quicsocks::outcome::FromClient;
use frontage_quicsocks::proxy::Proxy;
use frontage_quicsocks::resolve::Names;
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq::{ClientConfig, Endpoint, ServerConfig};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivateKeyDer;
use tokio::time::timeout;

/// How long anything may take.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// The name that leads to the server.
pub const NAME: &str = "ok.example";

/// unbound, which knows [`NAME`], `empty.example` without an address, and refuses to speak of `refused.example`.
pub struct Resolver {
    child: Child,
    folder: PathBuf,
    pub address: SocketAddr,
}

impl Resolver {
    /// One that answers; none where unbound is not installed.
    pub async fn start() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = format!("quicsocks-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        // Free a moment ago.
        let free = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
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
            eprintln!("skipped: unbound is missing: apt-get install unbound");
            return None;
        };
        let resolver = Self {
            child,
            folder,
            address,
        };
        let known = async {
            while Names::new(&[address], 0)
                .unwrap()
                .addresses(NAME, "::1".parse().unwrap())
                .await
                .is_err()
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, known).await.expect("unbound answers");
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

/// What is special about a test's proxy.
#[derive(Default)]
pub struct Options {
    pub users: Vec<User>,
    pub limits: Limits,
    /// Nothing is forwarded to the loopback interface.
    pub closed: bool,
}

impl Options {
    /// One may use it, `ada` with the password `engine`.
    pub fn with_a_user() -> Self {
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

/// A proxy on the loopback interface.
pub async fn proxy(resolver: SocketAddr, options: Options) -> Proxy {
    let allow = if options.closed {
        Vec::new()
    } else {
        vec!["::1/128".parse().unwrap()]
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

/// Waits until the proxy has counted so many datagrams of clients with this outcome.
pub async fn counted(proxy: &Proxy, outcome: FromClient, n: u64) {
    until(
        || proxy.metrics().from_client.get(outcome) == n,
        outcome.name(),
    )
    .await;
}

/// Waits until `condition` holds.
pub async fn until(condition: impl Fn() -> bool, what: &str) {
    let holds = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let held = timeout(PATIENCE, holds).await;
    held.unwrap_or_else(|_| panic!("waited {PATIENCE:?} for {what}"));
}

/// A server that sends back what comes on a stream, and how its clients come to trust it.
pub struct Server {
    pub port: u16,
    pub config: ClientConfig,
    _endpoint: Endpoint,
}

/// Starts one; it sends every client a Retry, or none.
pub fn server(retry: bool) -> Server {
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
    let mut roots = rustls::RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let mut trust = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    trust.alpn_protocols = vec![b"h3".into()];
    let tls = QuicServerConfig::try_from(tls).unwrap();
    let config = ServerConfig::with_crypto(Arc::new(tls));
    let endpoint = Endpoint::server(config, "[::1]:0".parse().unwrap()).unwrap();
    let port = endpoint.local_addr().unwrap().port();
    let accepting = endpoint.clone();
    tokio::spawn(async move {
        while let Some(incoming) = accepting.accept().await {
            if retry && !incoming.remote_address_validated() {
                incoming.retry().unwrap();
                continue;
            }
            tokio::spawn(async move {
                let connection = incoming.await.ok()?;
                while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                    let said = receive.read_to_end(1 << 20).await.ok()?;
                    send.write_all(&said).await.ok()?;
                    send.finish().ok()?;
                }
                Some(())
            });
        }
    });
    let trust = QuicClientConfig::try_from(trust).unwrap();
    Server {
        port,
        config: ClientConfig::new(Arc::new(trust)),
        _endpoint: endpoint,
    }
}
