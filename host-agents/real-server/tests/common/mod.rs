// SPDX-License-Identifier: Apache-2.0
//! Testbed: client, balancer and real servers in separate namespaces on one network.

pub mod ca;
pub mod client;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use frontage_cclb7_quic::{config, server};
use frontage_testkit::{Namespace, sh, wait_for};
use tokio::sync::oneshot;

use ca::Ca;

pub const BALANCER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
pub const PORT: u16 = 443;
const METRICS: u16 = 9153;
pub const LINK: u16 = 4500;
const ORIGIN: u16 = 8080;

pub struct Testbed {
    pub client: Namespace,
    pub servers: Vec<Namespace>,
    pub processes: Vec<u32>,
    pub balancer: Namespace,
    pub folder: PathBuf,
    shutdown: Mutex<Option<oneshot::Sender<()>>>,
    balancer_thread: Option<thread::JoinHandle<()>>,
}

impl Testbed {
    /// Start a balancer and `servers` real servers, which serve `files` by name. `handoff` is added to the balancer's
    /// section `[handoff]`. Requests are delegated even where proxying would be faster.
    pub fn new(
        name: &str,
        servers: usize,
        policy: &str,
        handoff: &str,
        files: &[(String, Vec<u8>)],
    ) -> Self {
        Self::with_server_config(name, servers, policy, handoff, "", files)
    }

    /// Like [`Self::new`], with a real server of each weight.
    pub fn with_weights(
        name: &str,
        weights: &[u32],
        policy: &str,
        handoff: &str,
        files: &[(String, Vec<u8>)],
    ) -> Self {
        Self::start(name, weights, policy, handoff, "", files)
    }

    /// Like [`Self::new`], with `server` added to the real servers' configurations.
    pub fn with_server_config(
        name: &str,
        servers: usize,
        policy: &str,
        handoff: &str,
        server: &str,
        files: &[(String, Vec<u8>)],
    ) -> Self {
        Self::start(name, &vec![1; servers], policy, handoff, server, files)
    }

    fn start(
        name: &str,
        weights: &[u32],
        policy: &str,
        handoff: &str,
        server: &str,
        files: &[(String, Vec<u8>)],
    ) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let folder = folder.join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join("files")).unwrap();
        for (name, content) in files {
            fs::write(folder.join("files").join(name), content).unwrap();
        }
        let ca = Ca::new(&folder);
        let client = Namespace::new("c");
        let bridge = client.name();
        sh(&format!(
            "ip -n {bridge} link add br0 type bridge && ip -n {bridge} link set br0 up && ip -n {bridge} addr add 10.0.0.1/24 dev br0"
        ));
        let host = |role: &str, last: usize| {
            let host = Namespace::new(role);
            sh(&format!(
                "ip -n {0} link add eth0 type veth peer name p{last} netns {bridge} && ip -n {0} addr add 10.0.0.{last}/24 dev eth0 && \
                 ip -n {0} link set eth0 up && ip -n {bridge} link set p{last} master br0 up",
                host.name()
            ));
            host
        };
        let balancer = host("lb", 2);
        ca.issue("lb.test");
        let (mut hosts, mut processes, mut list) = (Vec::new(), Vec::new(), Vec::new());
        for (i, weight) in weights.iter().enumerate() {
            let (name, last) = (format!("rs{i}.test"), 3 + i);
            ca.issue(&name);
            let config = folder.join(format!("{name}.toml"));
            let text = format!(
                "listen = '10.0.0.{last}:{LINK}'\ncertificate = '{name}.pem'\nprivate_key = '{name}.key'\nca = 'ca.pem'\n\
                 balancers = ['lb.test']\norigin = '10.0.0.{last}:{ORIGIN}'\nmetrics = '127.0.0.1:{METRICS}'\n\
                 access_log = '{name}.log'\ndrain_seconds = 60\n{server}\n[[route]]\npath = '/'\ndirectory = 'files'\n"
            );
            fs::write(&config, text).unwrap();
            let mut host = host("rs", last);
            processes.push(start_server(&mut host, &config));
            hosts.push(host);
            list.push(format!(
                "{{ name = '{name}', address = '10.0.0.{last}:{LINK}', origin = 'http://10.0.0.{last}:{ORIGIN}', weight = {weight} }}"
            ));
        }
        let text = format!(
            "listen = ['0.0.0.0:{PORT}']\ncertificate = 'lb.test.pem'\nprivate_key = 'lb.test.key'\nmetrics = '127.0.0.1:{METRICS}'\n\
             access_log = 'lb.log'\ndrain_seconds = 60\n[handoff]\ncertificate = 'lb.test.pem'\nprivate_key = 'lb.test.key'\nca = 'ca.pem'\n\
             servers = [{}]\nsingle_path = 'delegate'\n{handoff}\n[[route]]\npath = '/'\nreal_servers = {{ policy = '{policy}' }}\n",
            list.join(", ")
        );
        let path = folder.join("lb.toml");
        fs::write(&path, text).unwrap();
        let (shutdown, shutdown_requested) = oneshot::channel::<()>();
        // The balancer runs in this process, so it is always of the same build as the test.
        let balancer_thread = balancer.run(|| {
            let path = path.clone();
            thread::spawn(move || {
                let runtime = tokio::runtime::Runtime::new().unwrap();
                runtime.block_on(async {
                    let config = config::load(&path).unwrap();
                    let server = server::Server::start(config).await.unwrap();
                    server.run(async { _ = shutdown_requested.await }).await;
                });
            })
        });
        let testbed = Self {
            client,
            servers: hosts,
            processes,
            balancer,
            folder,
            shutdown: Mutex::new(Some(shutdown)),
            balancer_thread: Some(balancer_thread),
        };
        for i in 0..weights.len() {
            let label = format!("real_server_up{{server=\"rs{i}.test\"}}");
            wait_for("the link of a real server", || {
                testbed.balancer_metric(&label) == 1
            });
        }
        testbed
    }

    /// Start a real server again that was killed. Returns its process.
    pub fn start_server(&self, host: &mut Namespace, server: usize) -> u32 {
        start_server(host, &self.folder.join(format!("rs{server}.test.toml")))
    }

    /// Return a metric of the balancer, or the sum over its labels; 0 if it is missing.
    pub fn balancer_metric(&self, name: &str) -> u64 {
        metric(&self.balancer, &format!("frontage_cclb7_quic_{name}"))
    }

    /// Return a metric of a real server.
    pub fn server_metric(&self, server: usize, name: &str) -> u64 {
        metric(
            &self.servers[server],
            &format!("frontage_real_server_{name}"),
        )
    }

    /// Return the number of complete responses of a real server, as counted by the balancer.
    pub fn completed_responses(&self, server: usize) -> u64 {
        self.metric_for(server, "answers_total")
    }

    /// Return the balancer's metric for a real server.
    pub fn metric_for(&self, server: usize, name: &str) -> u64 {
        self.balancer_metric(&format!("real_server_{name}{{server=\"rs{server}.test\"}}"))
    }

    /// Shut the balancer down.
    pub fn shut_down(&self) {
        drop(self.shutdown.lock().unwrap().take());
    }

    /// Return the balancer's address for clients.
    pub fn address(&self) -> SocketAddr {
        (BALANCER, PORT).into()
    }
}

/// Start a real server on `host`. Returns its process.
fn start_server(host: &mut Namespace, config: &Path) -> u32 {
    let program = env!("CARGO_BIN_EXE_frontage-real-server");
    host.spawn(&[program, config.to_str().unwrap()])
}

/// Return `length` pseudorandom bytes, different for each seed.
pub fn content(seed: usize, length: usize) -> Vec<u8> {
    let mut state = seed as u64 + 1;
    let word = || {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).to_be_bytes()
    };
    let mut bytes: Vec<u8> = std::iter::repeat_with(word)
        .take(length.div_ceil(8))
        .flatten()
        .collect();
    bytes.truncate(length);
    bytes
}

/// Return a long and a short file, and the long one with another name. With a policy of [`two_senders`], two real servers
/// send one of the long files each.
pub fn long_and_short() -> [(String, Vec<u8>); 3] {
    let long = content(1, 60_000_000);
    [
        ("long".to_owned(), long.clone()),
        ("short".to_owned(), content(2, 100_000)),
        ("long2".to_owned(), long),
    ]
}

/// Return a policy with which two real servers send to a client with this number of paths at the same time.
pub fn two_senders(paths: u32) -> &'static str {
    match paths {
        1 => "consistent-hash",
        _ => "round-robin",
    }
}

/// Run `work` in the client's namespace.
pub fn run<T: Send>(testbed: &Testbed, work: impl AsyncFnOnce() -> T + Send) -> T {
    testbed.client.run(|| {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(work())
    })
}

/// Like [`frontage_testkit::wait_for`], while the client continues.
pub async fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(frontage_testkit::TEST_TIMEOUT, waiting).await;
    waited.unwrap_or_else(|_| panic!("timed out waiting: {what}"));
}

fn metric(host: &Namespace, name: &str) -> u64 {
    let page = host.run(|| {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", METRICS)) else {
            return String::new();
        };
        let mut page = String::new();
        let written = stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n");
        // A killed server returns no metrics.
        let _ = written.and_then(|()| stream.read_to_string(&mut page));
        page
    });
    let value = |line: &str| {
        let (sample, value) = line.rsplit_once(' ')?;
        let labels = sample.strip_prefix(name)?;
        let matches = labels.is_empty() || labels.starts_with('{');
        value.parse::<u64>().ok().filter(|_| matches)
    };
    page.lines().filter_map(value).sum()
}

impl Drop for Testbed {
    fn drop(&mut self) {
        self.shut_down();
        if let Some(thread) = self.balancer_thread.take() {
            let _ = thread.join();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}
