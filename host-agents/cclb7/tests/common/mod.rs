// SPDX-License-Identifier: Apache-2.0
//! Two network namespaces that a veth pair or two TUN devices connect: a server with the agent, and an unmodified client. A program on
//! the client's ingress takes the place of the edge switch.

#![allow(dead_code, reason = "each test file uses its share")]

pub mod lab;
pub mod tun;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use aya::Ebpf;
use aya::programs::tc::{
    NlOptions, SchedClassifier, TcAttachOptions, TcAttachType, qdisc_add_clsact,
};
use frontage_cclb7::agent::{self, Attachment, Sizes};
use frontage_cclb7::state::State;
pub use frontage_testkit::{Namespace, privileged, sh, wait_for};
use tun::Tun;

pub const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub const SERVER_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const CLIENT_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
/// The device of each side.
const LINK: &str = "link0";
static MASK: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/mask.bpf.o"));

pub struct Testbed {
    server: Namespace,
    client: Namespace,
}

impl Testbed {
    /// Create the namespaces. With `offloads`, packets pass unsegmented and without checksums.
    pub fn new(offloads: bool) -> Self {
        Self::over(|testbed| {
            let (s, c) = (testbed.server(), testbed.client());
            sh(&format!(
                "ip -n {s} link add {LINK} type veth peer name {LINK} netns {c}"
            ));
            if !offloads {
                for namespace in [s, c] {
                    sh(&format!(
                        "ip netns exec {namespace} ethtool -K {LINK} tx off tso off gso off gro off >/dev/null"
                    ));
                }
            }
        })
    }

    /// Create the namespaces with devices without Ethernet headers between them.
    pub fn over_tun() -> Self {
        Self::over(|testbed| {
            let server = testbed.in_server(|| Tun::create(LINK));
            Tun::connect(server, testbed.in_client(|| Tun::create(LINK)));
        })
    }

    fn over(connect: impl FnOnce(&Self)) -> Self {
        let testbed = Self {
            server: Namespace::new("s"),
            client: Namespace::new("c"),
        };
        connect(&testbed);
        let (s, c) = (testbed.server(), testbed.client());
        for (namespace, address, v6) in [(&s, SERVER, SERVER_V6), (&c, CLIENT, CLIENT_V6)] {
            sh(&format!(
                "ip -n {namespace} addr add {address}/24 dev {LINK}"
            ));
            sh(&format!(
                "ip -n {namespace} addr add {v6}/64 dev {LINK} nodad"
            ));
            sh(&format!("ip -n {namespace} link set {LINK} up"));
        }
        // A small receive buffer: the client's kernel acknowledges little more than the client has read.
        sh(&format!(
            "ip netns exec {c} sysctl -qw net.ipv4.tcp_rmem='4096 131072 262144'"
        ));
        testbed.in_client(|| {
            let mut ebpf = Ebpf::load(MASK).expect("the mask program loads");
            let mask: &mut SchedClassifier =
                agent::program(&mut ebpf, "mask").expect("the program is a classifier");
            mask.load().expect("the verifier accepts the program");
            qdisc_add_clsact(LINK).expect("clsact");
            let options = TcAttachOptions::Netlink(NlOptions::default());
            let id = mask
                .attach_with_options(LINK, TcAttachType::Ingress, options)
                .expect("the program attaches");
            std::mem::forget(mask.take_link(id).expect("the link exists"));
        });
        testbed
    }

    pub fn server(&self) -> String {
        self.server.name().to_owned()
    }

    pub fn client(&self) -> String {
        self.client.name().to_owned()
    }

    pub fn pin_dir(&self) -> PathBuf {
        Path::new("/sys/fs/bpf").join(self.server.name())
    }

    /// Attach the agent to the server's end of the link.
    pub fn attach(&self, ports: &[u16]) -> agent::Attached {
        let wanted = Attachment {
            interface: LINK.into(),
            ports: ports.to_vec(),
            bandwidth: 1_000_000_000,
            look_ahead: 1_000_000,
            syn_keys: None,
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

    /// Return N_AF and N_FF of `port`.
    pub fn loads(&self, port: u16) -> (u64, u64) {
        let servers = self.state().servers().expect("the map is readable");
        let server = servers
            .iter()
            .find(|(p, _)| *p == port)
            .expect("the agent serves the port")
            .1;
        (server.n_af, server.n_ff)
    }

    pub fn packets(&self, reason: &str) -> u64 {
        let packets = self.state().packets().expect("the map is readable");
        packets
            .iter()
            .find(|(name, _)| *name == reason)
            .expect("the reason is known")
            .1
    }

    /// Run `work` on a thread in the server's namespace.
    pub fn in_server<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.server.run(work)
    }

    /// Run `work` on a thread in the client's namespace.
    pub fn in_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.client.run(work)
    }

    /// Start a server process, and wait until it listens on `port`.
    pub fn serve(&mut self, port: u16, command: &[&str]) {
        self.server.spawn(command);
        let address = SocketAddr::new(IpAddr::V4(SERVER), port);
        wait_for("the server to listen", || {
            self.in_server(|| {
                std::net::TcpStream::connect_timeout(&address, frontage_testkit::TEST_TIMEOUT)
                    .is_ok()
            })
        });
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        let pin_dir = self.pin_dir();
        if pin_dir.exists() {
            let _ = self.in_server(|| agent::detach(&pin_dir));
        }
    }
}
