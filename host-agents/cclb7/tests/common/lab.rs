// SPDX-License-Identifier: Apache-2.0
//! The packet programs without a network: a test passes packets in, and checks packets and maps.

use std::net::SocketAddr;
use std::os::fd::AsFd as _;

use aya::Ebpf;
use aya::maps::{Array, HashMap, MapData, PerCpuArray};
use aya::programs::SchedClassifier;
use frontage_cclb7::abi::{Config, Connection, Flow, REASONS, Server, SynKey};
use frontage_cclb7::agent::{self, Sizes};
use frontage_cclb7::bpf;
use frontage_cclb7::frame::{ACK, Segment, build, is_checksum_valid, tcp_offset, timestamps, word};

pub const V4: (&str, &str) = ("192.0.2.1:80", "198.51.100.1:40000");
pub const V6: (&str, &str) = ("[2001:db8::1]:80", "[2001:db8:1::9]:40001");
pub const PASS: i32 = -1;
pub const BASE: u32 = 0xffff_f000; // so that sequence numbers wrap early

/// The loaded programs, with one server on port 80 and one flow.
pub struct PacketLab {
    pub ebpf: Ebpf,
    pub server: SocketAddr,
    pub client: SocketAddr,
}

impl PacketLab {
    pub fn new((server, client): (&str, &str)) -> Option<Self> {
        if !super::privileged() {
            return None;
        }
        let mut ebpf = agent::load(Sizes {
            flows: 64,
            handshakes: 64,
        })
        .expect("the object has the maps");
        for name in ["cclb7_egress", "cclb7_ingress"] {
            let program: &mut SchedClassifier =
                agent::program(&mut ebpf, name).expect("the program is a classifier");
            program.load().expect("the verifier accepts the program");
        }
        let mut lab = Self {
            ebpf,
            server: server.parse().unwrap(),
            client: client.parse().unwrap(),
        };
        lab.configure(1_000_000, 1_000);
        lab.set_server(Server::default());
        Some(lab)
    }

    pub fn configure(&mut self, look_ahead: u64, unit_bytes: u64) {
        let mut config: Array<_, Config> = self.ebpf.map_mut("config").unwrap().try_into().unwrap();
        config
            .set(
                0,
                Config {
                    look_ahead,
                    unit_bytes,
                    is_ethernet: 1,
                    ..Config::default()
                },
                0,
            )
            .unwrap();
    }

    pub fn servers(&mut self) -> HashMap<&mut MapData, u16, Server> {
        self.ebpf.map_mut("servers").unwrap().try_into().unwrap()
    }

    pub fn flows(&mut self) -> HashMap<&mut MapData, Connection, Flow> {
        self.ebpf.map_mut("flows").unwrap().try_into().unwrap()
    }

    /// Use this key for SYN cookies of an epoch, and none for the other epoch.
    pub fn set_syn_key(&mut self, epoch: u32, words: [u32; 2]) {
        let mut keys: Array<_, SynKey> = self.ebpf.map_mut("syn_keys").unwrap().try_into().unwrap();
        keys.set(epoch, SynKey { words, valid: 1 }, 0).unwrap();
        keys.set(1 - epoch, SynKey::default(), 0).unwrap();
    }

    /// Return the number of packets with this outcome.
    pub fn packets(&mut self, reason: &str) -> u64 {
        let packets: PerCpuArray<_, u64> =
            self.ebpf.map_mut("packets").unwrap().try_into().unwrap();
        let index = REASONS.iter().position(|name| *name == reason).unwrap();
        packets.get(&(index as u32), 0).unwrap().iter().sum()
    }

    pub fn set_server(&mut self, server: Server) {
        let port = self.server.port();
        self.servers().insert(port, server, 0).unwrap();
    }

    pub fn loads(&mut self) -> (u64, u64) {
        let port = self.server.port();
        let server = self.servers().get(&port, 0).unwrap();
        (server.n_af, server.n_ff)
    }

    pub fn connection(&self) -> Connection {
        Connection::new(
            (self.server.ip(), self.server.port()),
            (self.client.ip(), self.client.port()),
        )
    }

    pub fn set_flow(&mut self, flow: Flow) {
        let connection = self.connection();
        self.flows().insert(connection, flow, 0).unwrap();
    }

    pub fn flow(&mut self) -> Flow {
        let connection = self.connection();
        self.flows().get(&connection, 0).unwrap()
    }

    /// Set the current time, in the flow's timestamps.
    pub fn set_clock(&mut self, ms: u32) {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the call fills the structure.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
        let monotonic = time.tv_sec as u64 * 1_000 + time.tv_nsec as u64 / 1_000_000;
        let mut flow = self.flow();
        flow.clock_offset = ms.wrapping_sub(monotonic as u32);
        self.set_flow(flow);
    }

    pub fn data(&self, offset: u64, payload: usize, ts: u32) -> Segment {
        Segment {
            source: self.server,
            destination: self.client,
            seq: BASE.wrapping_add(offset as u32),
            ack: 1,
            flags: ACK,
            options: timestamps(ts, 1),
            payload,
        }
    }

    pub fn acknowledgement(&self, offset: u64, tsecr: u32) -> Segment {
        Segment {
            source: self.client,
            destination: self.server,
            seq: 1,
            ack: BASE.wrapping_add(offset as u32),
            flags: ACK,
            options: timestamps(1, tsecr),
            payload: 0,
        }
    }

    pub fn run(&mut self, program: &str, packet: &[u8]) -> Vec<u8> {
        let (verdict, packet) = self.outcome(program, packet);
        assert_eq!(verdict, PASS);
        packet
    }

    /// Return the verdict, which is also not to pass the packet on, and the packet.
    pub fn outcome(&mut self, program: &str, packet: &[u8]) -> (i32, Vec<u8>) {
        let program: &mut SchedClassifier = agent::program(&mut self.ebpf, program).unwrap();
        let outcome = bpf::test_run(program.fd().unwrap().as_fd(), packet, 1).unwrap();
        (outcome.verdict, outcome.packet)
    }

    pub fn egress(&mut self, segment: &Segment) -> Vec<u8> {
        self.run("cclb7_egress", &build(segment))
    }

    pub fn ingress(&mut self, segment: &Segment) -> Vec<u8> {
        self.run("cclb7_ingress", &build(segment))
    }

    /// Return the TSval that leaves.
    pub fn tsval(&mut self, segment: &Segment) -> u32 {
        let packet = self.egress(segment);
        word(&packet, tcp_offset(&packet) + 24)
    }

    /// Return the TSecr that reaches the kernel.
    pub fn tsecr(&mut self, segment: &Segment) -> u32 {
        let packet = self.ingress(segment);
        assert!(is_checksum_valid(&packet));
        word(&packet, tcp_offset(&packet) + 28)
    }
}

/// Return a new flow with cookies.
pub fn flow() -> Flow {
    let mut flow: Flow = bytemuck::Zeroable::zeroed();
    flow.base = BASE;
    flow.retransmissions_lost = BASE;
    flow.gap = 1;
    flow.cookies = 1;
    flow.port = 80;
    flow.rtt_min = 1000;
    flow
}
