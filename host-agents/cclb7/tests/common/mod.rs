//! Two network namespaces and a veth pair between them: a server with the agent, and an unmodified client whose
//! ingress stands in for the edge switch.

#![allow(dead_code, reason = "each test file uses its share")]

pub mod lab;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use aya::Ebpf;
use aya::programs::tc::{
    NlOptions, SchedClassifier, TcAttachOptions, TcAttachType, qdisc_add_clsact,
};
use frontage_cclb7::agent::{self, Attachment, Sizes};
use frontage_cclb7::state::State;
use frontage_cclb7::system;

pub const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub const SERVER_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const CLIENT_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
const PATIENCE: Duration = Duration::from_secs(20);
static MASK: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/mask.bpf.o"));
static WORLDS: AtomicU32 = AtomicU32::new(0);

/// Whether eBPF can be tested here; says so if not.
pub fn privileged() -> bool {
    let root = system::require_root();
    if let Err(error) = &root {
        eprintln!("skipped: {error}");
    }
    root.is_ok()
}

pub struct World {
    name: String,
    children: Vec<Child>,
}

impl World {
    /// Makes the namespaces; with `offloads`, packets pass unsegmented and with checksums to be computed.
    pub fn new(offloads: bool) -> Self {
        let name = format!(
            "agents-{}-{}",
            std::process::id(),
            WORLDS.fetch_add(1, Ordering::Relaxed)
        );
        let world = Self {
            name,
            children: Vec::new(),
        };
        let (s, c) = (world.server(), world.client());
        sh(&format!("ip netns add {s} && ip netns add {c}"));
        sh(&format!(
            "ip -n {s} link add veth0 type veth peer name veth0 netns {c}"
        ));
        for (namespace, address, v6) in [(&s, SERVER, SERVER_V6), (&c, CLIENT, CLIENT_V6)] {
            sh(&format!(
                "ip -n {namespace} addr add {address}/24 dev veth0"
            ));
            sh(&format!(
                "ip -n {namespace} addr add {v6}/64 dev veth0 nodad"
            ));
            sh(&format!(
                "ip -n {namespace} link set lo up && ip -n {namespace} link set veth0 up"
            ));
            if !offloads {
                sh(&format!(
                    "ip netns exec {namespace} ethtool -K veth0 tx off tso off gso off gro off >/dev/null"
                ));
            }
        }
        // The client's kernel acknowledges no more than a little ahead of what the client takes.
        sh(&format!(
            "ip netns exec {c} sysctl -qw net.ipv4.tcp_rmem='4096 131072 262144'"
        ));
        world.in_client(|| {
            let mut ebpf = Ebpf::load(MASK).expect("the mask loads");
            let mask: &mut SchedClassifier =
                agent::program(&mut ebpf, "mask").expect("it is a classifier");
            mask.load().expect("the verifier takes it");
            qdisc_add_clsact("veth0").expect("clsact");
            let options = TcAttachOptions::Netlink(NlOptions::default());
            let id = mask
                .attach_with_options("veth0", TcAttachType::Ingress, options)
                .expect("it attaches");
            std::mem::forget(mask.take_link(id).expect("just attached"));
        });
        world
    }

    pub fn server(&self) -> String {
        format!("{}-s", self.name)
    }

    pub fn client(&self) -> String {
        format!("{}-c", self.name)
    }

    pub fn pin_dir(&self) -> PathBuf {
        Path::new("/sys/fs/bpf").join(&self.name)
    }

    /// Attaches the agent to the server's side of the link.
    pub fn attach(&self, ports: &[u16]) -> agent::Attached {
        let wanted = Attachment {
            interface: "veth0".into(),
            ports: ports.to_vec(),
            bandwidth: 1_000_000_000,
            look_ahead: 1_000_000,
            sizes: Sizes {
                flows: 4096,
                handshakes: 4096,
            },
            pin_dir: self.pin_dir(),
        };
        self.in_server(|| agent::attach(&wanted).expect("the agent attaches"))
    }

    pub fn state(&self) -> State {
        State::open(&self.pin_dir()).expect("the agent is attached")
    }

    /// (N_AF, N_FF) of `port`.
    pub fn loads(&self, port: u16) -> (u64, u64) {
        let servers = self.state().servers().expect("readable");
        let server = servers
            .iter()
            .find(|(p, _)| *p == port)
            .expect("attached to that port")
            .1;
        (server.n_af, server.n_ff)
    }

    pub fn packets(&self, reason: &str) -> u64 {
        let packets = self.state().packets().expect("readable");
        packets
            .iter()
            .find(|(name, _)| *name == reason)
            .expect("a known reason")
            .1
    }

    /// Runs `work` on a thread inside the server's namespace.
    pub fn in_server<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        in_netns(&self.server(), work)
    }

    /// Runs `work` on a thread inside the client's namespace.
    pub fn in_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        in_netns(&self.client(), work)
    }

    /// Starts a server process, and waits until it listens on `port`.
    pub fn serve(&mut self, port: u16, command: &[&str]) {
        let child = Command::new("ip")
            .args(["netns", "exec", &self.server()])
            .args(command)
            .stdin(Stdio::null())
            .spawn()
            .expect("ip netns exec");
        self.children.push(child);
        let address = SocketAddr::new(IpAddr::V4(SERVER), port);
        wait_for("the server to listen", || {
            self.in_server(|| std::net::TcpStream::connect_timeout(&address, PATIENCE).is_ok())
        });
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for child in &mut self.children {
            // Not SIGKILL: nginx's master has to end its workers.
            // SAFETY: a process that we started and have not waited for, so the number is still its own.
            unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
            let _ = child.wait();
        }
        let pin_dir = self.pin_dir();
        if pin_dir.exists() {
            let _ = in_netns(&self.server(), || agent::detach(&pin_dir));
        }
        sh(&format!(
            "ip netns del {} ; ip netns del {}",
            self.server(),
            self.client()
        ));
    }
}

pub fn in_netns<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            system::enter_netns(name).expect("the namespace exists");
            work()
        });
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

pub fn sh(command: &str) -> String {
    let output = Command::new("sh")
        .args(["-c", command])
        .output()
        .expect("sh");
    assert!(
        output.status.success(),
        "{command}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
