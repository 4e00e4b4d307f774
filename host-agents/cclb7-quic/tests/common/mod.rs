// SPDX-License-Identifier: Apache-2.0
//! Testbed: server and clients in separate namespaces, with a simulated edge switch between them.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod clients;
pub mod edge_switch;
pub mod gateway;
pub mod real_server;
mod tun;

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use frontage_cookie::{Secret, ipv6};
use frontage_testkit::{Namespace, sh, wait_for};

use edge_switch::{CLIENT, COOKIE_PREFIX, EdgeSwitch, SERVER_PREFIX};

pub const SID: u16 = 0x0123;
pub const PORT: u16 = 443;
pub const SERVER_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const METRICS: u16 = 9153;
/// Destination of a replica's heartbeats.
pub const HEARTBEATS: u16 = 8081;
/// Site of the replica.
pub const SITE: u8 = 2;
const SECRET: [u8; 16] = [0x5c; 16];

pub struct Testbed {
    pub server: Namespace,
    pub client: Namespace,
    pub edge_switch: EdgeSwitch,
    pub folder: PathBuf,
    pub process: u32,
    /// Interfaces towards the client and the server.
    pub interfaces: [File; 2],
}

/// Return the key with this id. Each id has a different secret.
pub fn key(id: u32) -> (u32, [u8; 16]) {
    let mut secret = SECRET;
    secret[0] = id as u8;
    (id, secret)
}

impl Testbed {
    /// Start a testbed whose server serves `files` by name and proxies `/origin` to its own port 8080.
    pub fn new(name: &str, files: &[(&str, &[u8])]) -> Self {
        Self::with_sections(name, files, "")
    }

    /// Add a real server for `/handed`, with a certificate for it: see [`real_server::RealServer`].
    pub fn with_real_server(name: &str, files: &[(&str, &[u8])]) -> Self {
        Self::with_sections(name, files, real_server::HANDOFF)
    }

    /// Add an Artemis replica, which sends heartbeats to its own port 8081.
    pub fn replica(name: &str, files: &[(&str, &[u8])]) -> Self {
        Self::with_sections(name, files, &Self::artemis(None))
    }

    /// Add an Artemis replica and a real server, which also responds in the tunnel of the Service Address `vip`.
    pub fn replica_with_real_server(
        name: &str,
        files: &[(&str, &[u8])],
        vip: Option<Ipv6Addr>,
    ) -> Self {
        let sections = format!("{}{}", real_server::HANDOFF, Self::artemis(vip));
        Self::with_sections(name, files, &sections)
    }

    fn artemis(vip: Option<Ipv6Addr>) -> String {
        let vip = vip.map_or_else(String::new, |vip| format!("vip = '{vip}'\n"));
        format!(
            "[artemis]\n{vip}services = ['frontage.test']\nservice_ttl = 60\nsite = {SITE}\ncapacity = 1\noverload = 1.0\n\
             dispatchers = ['http://127.0.0.1:{HEARTBEATS}']\n\
             tunnel = {{ listen = '[{0}]:4789', gateway = '{1}', peers = ['{1}'] }}\n",
            gateway::REPLICA,
            gateway::GATEWAY,
        )
    }

    fn with_sections(name: &str, files: &[(&str, &[u8])], sections: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join("files")).unwrap();
        for (name, content) in files {
            fs::write(folder.join("files").join(name), content).unwrap();
        }
        sh(&format!(
            "cd {} && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem \
             -out cert.pem -days 2 -subj /CN=frontage.test -addext subjectAltName=DNS:frontage.test 2>&1",
            folder.display()
        ));
        real_server::issue(&folder);
        let (mut server, client) = (Namespace::new("s"), Namespace::new("c"));
        let at_server = tun::open(
            &server,
            &[
                &format!("{SERVER_V4}/24"),
                &format!("{}/64", gateway::REPLICA),
            ],
        );
        let at_client = tun::open(&client, &[&format!("{CLIENT}/64"), "192.0.2.2/24"]);
        server.sh(&format!(
            "ip -6 route add local {}/64 dev lo",
            edge_switch::DIP
        ));
        let (id, secret) = key(1);
        let edge_switch = EdgeSwitch::new(ipv6::Key::new(id, &Secret::new(&secret).unwrap()), SID);
        edge_switch.start(&at_client, &at_server);
        write_keys(&folder, &[key(1)]);
        let prefix = |bits: u64| frontage_quic::socket::join_address(bits, 0);
        let config = format!(
            "listen = ['[::]:{PORT}', '0.0.0.0:{PORT}']\ncertificate = 'cert.pem'\nprivate_key = 'key.pem'\n\
             metrics = '127.0.0.1:{METRICS}'\naccess_log = '{0}/access.log'\ndrain_seconds = 10\n\
             [cookie]\nsid = {SID}\nserver_prefix = '{1}/64'\ncookie_prefix = '{2}/64'\nport = {PORT}\nkeys = 'keys.toml'\n\
             [[route]]\npath = '/'\ndirectory = 'files'\n\
             [[route]]\npath = '/origin'\norigin = 'http://127.0.0.1:8080'\n{sections}",
            folder.display(),
            prefix(SERVER_PREFIX),
            prefix(COOKIE_PREFIX),
        );
        let path = folder.join("agent.toml");
        fs::write(&path, config).unwrap();
        let process = server.spawn(&[
            env!("CARGO_BIN_EXE_frontage-cclb7-quic"),
            path.to_str().unwrap(),
        ]);
        let testbed = Self {
            server,
            client,
            edge_switch,
            folder,
            process,
            interfaces: [at_client, at_server],
        };
        wait_for("the server to listen", || testbed.is_up());
        testbed
    }

    /// Return whether the server is running: its metrics endpoint starts last and ends with it.
    pub fn is_up(&self) -> bool {
        self.server
            .run(|| TcpStream::connect(("127.0.0.1", METRICS)).is_ok())
    }

    /// Install key 2, first at the edge switch, then at the server, which also reloads its certificate.
    pub fn rotate(&self) {
        let (id, secret) = key(2);
        self.edge_switch
            .add(ipv6::Key::new(id, &Secret::new(&secret).unwrap()));
        write_keys(&self.folder, &[key(1), key(2)]);
        self.signal(libc::SIGHUP);
        wait_for("the keys to be read", || self.metric("key_id") == 2);
    }

    /// Send `signal` to the server.
    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: the namespace started this process and has not waited for it.
        unsafe { libc::kill(self.process as i32, signal) };
    }

    /// Return a metric of the server, with its labels; 0 if it is missing.
    pub fn metric(&self, name: &str) -> u64 {
        let page = self.server.run(|| {
            let mut stream =
                TcpStream::connect(("127.0.0.1", METRICS)).expect("the server is running");
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            let mut page = String::new();
            stream.read_to_string(&mut page).unwrap();
            page
        });
        let name = format!("frontage_cclb7_quic_{name} ");
        page.lines()
            .find_map(|line| line.strip_prefix(&name)?.parse().ok())
            .unwrap_or(0)
    }

    /// Run a client program in its namespace and the testbed's folder.
    pub fn client(&self, command: &[&str]) -> Output {
        let mut child = Command::new("ip");
        child
            .args(["netns", "exec", self.client.name(), "timeout", "60"])
            .args(command)
            .current_dir(&self.folder);
        child.output().expect("ip netns exec")
    }

    pub fn access_log(&self) -> String {
        fs::read_to_string(self.folder.join("access.log")).unwrap()
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Write the key file, with the newest key last.
pub fn write_keys(folder: &Path, keys: &[(u32, [u8; 16])]) {
    let text = keys.iter().map(|(id, secret)| {
        let hex: String = secret.iter().map(|octet| format!("{octet:02x}")).collect();
        format!("[[keys]]\nid = {id}\nsecret = '{hex}'\n")
    });
    fs::write(folder.join("keys.toml"), text.collect::<String>()).unwrap();
}

/// Format an address for a URL.
pub fn host(address: IpAddr) -> String {
    match address {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("[{v6}]"),
    }
}
