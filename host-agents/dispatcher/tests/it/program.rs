// SPDX-License-Identifier: Apache-2.0
//! The program in a network namespace: tunnels, HTTP, and the failure of a site.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

use frontage_first_flight::packet::Invariants;
use frontage_testkit::{Namespace, TEST_TIMEOUT, privileged, wait_for};
use frontage_tunnel::{Encapsulation, decode};
use serde_json::{Value, json};

use crate::testbed::flight;

const PROGRAM: &str = env!("CARGO_BIN_EXE_frontage-dispatcher");
const CONTROL: &str = "127.0.0.2:8080";
const CONFIG: &str = "control = '127.0.0.2:8080'\nthreads = 2\n[tunnel]\nlisten = '127.0.0.2:4789'\npeers = ['127.0.0.1']\n";

/// Sends a request; returns the status and body of the response, or `None` if the program does not listen yet.
fn request(namespace: &Namespace, method: &str, path: &str, body: &Value) -> Option<(u16, String)> {
    namespace.run(|| {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let mut stream = match TcpStream::connect(CONTROL) {
            Ok(stream) => stream,
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return None,
            Err(error) => panic!("{error}"),
        };
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: dispatcher\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        Some((
            head.split(' ').nth(1).unwrap().parse().unwrap(),
            body.to_owned(),
        ))
    })
}

struct Program {
    namespace: Namespace,
    _folder: TempFolder,
}

struct TempFolder(std::path::PathBuf);

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Program {
    fn start() -> Self {
        let folder = std::env::temp_dir().join(format!("dispatcher-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let config = folder.join("dispatcher.toml");
        std::fs::write(&config, CONFIG).unwrap();
        let mut namespace = Namespace::new("dispatcher");
        namespace.spawn(&[PROGRAM, config.to_str().unwrap()]);
        wait_for("the program", || {
            request(&namespace, "GET", "/table", &Value::Null).is_some()
        });
        Self {
            namespace,
            _folder: TempFolder(folder),
        }
    }

    fn request(&self, method: &str, path: &str, body: Value) -> (u16, String) {
        request(&self.namespace, method, path, &body).expect("the program listens")
    }

    fn socket(&self, address: &str) -> UdpSocket {
        let socket = self
            .namespace
            .run(|| UdpSocket::bind((address, 4789)).unwrap());
        socket.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        socket
    }

    fn heartbeat(&self, ttl: f64) {
        let heartbeat = json!({
            "services": ["films.example"], "address": "127.0.0.3", "load": 0.4, "weight": 1, "accepting": true,
            "ttl": ttl, "rtts": [{"prefix": "198.51.100.0/24", "rtt_us": 12345, "count": 3}],
        });
        assert_eq!(
            self.request("PUT", "/replicas/17", heartbeat),
            (204, String::new())
        );
    }
}

fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut buffer = [0; 2048];
    let n = socket.recv(&mut buffer).expect("a packet arrives");
    buffer[..n].to_vec()
}

#[test]
fn program_forwards_flights_and_follows_heartbeats() {
    if !privileged() {
        return;
    }
    let program = Program::start();
    let table = json!({
        "version": 7, "site": 1, "sites": [{"id": 1, "vtep": "127.0.0.1"}, {"id": 2, "vtep": "127.0.0.4"}],
        "services": [{"name": "films.example", "id": 3, "deployment": 7, "redundancy": 1, "alpn": ["h3"], "policy": "latency"}],
        "clients": [], "mapping": [{"deployment": 7, "sites": [1, 2], "regions": [0]}],
    });
    assert_eq!(program.request("GET", "/table", Value::Null).0, 404);
    assert_eq!(program.request("PUT", "/table", table).0, 200);
    program.heartbeat(600.0);

    let [switch, replica, other] =
        ["127.0.0.1", "127.0.0.3", "127.0.0.4"].map(|address| program.socket(address));
    let send = |packet: &[u8]| switch.send_to(packet, "127.0.0.2:4789").unwrap();
    let packet = flight(1, "films.example");
    send(&packet);
    assert_eq!(receive(&replica), packet);
    let unknown = flight(2, "other.example");
    send(&unknown);
    let answer = receive(&switch);
    let request = decode(Encapsulation::Vxlan, &unknown).unwrap().inner;
    let response = decode(Encapsulation::Vxlan, &answer).unwrap().inner;
    assert_eq!(response.flow, request.flow.reversed());
    assert_eq!(Invariants::parse(response.payload).unwrap().version, 1);

    // A tunnel packet from an unknown peer.
    let unknown_peer = program.socket("127.0.0.9");
    unknown_peer
        .send_to(&flight(3, "films.example"), "127.0.0.2:4789")
        .unwrap();
    // The site fails: its last replica stops sending heartbeats.
    program.heartbeat(0.2);
    wait_for("the replica to expire", || {
        program.request("GET", "/replicas", Value::Null) == (200, "[]".into())
    });
    let packet = flight(4, "films.example");
    send(&packet);
    assert_eq!(receive(&other), packet);
    // The replica returns.
    program.heartbeat(600.0);
    let packet = flight(5, "films.example");
    send(&packet);
    assert_eq!(receive(&replica), packet);
    replica
        .set_read_timeout(Some(Duration::from_millis(1)))
        .unwrap();
    assert!(
        replica.recv(&mut [0; 2048]).is_err(),
        "the packet of the unknown peer was forwarded"
    );

    let stale = json!({"from": 6, "version": 8});
    assert_eq!(program.request("PATCH", "/table", stale).0, 409);
    let remapped = json!({"from": 7, "version": 8, "mapping": [{"deployment": 7, "sites": [2, 1], "regions": [0]}]});
    assert_eq!(program.request("PATCH", "/table", remapped).0, 200);
    let packet = flight(6, "films.example");
    send(&packet);
    assert_eq!(receive(&other), packet);
    assert_eq!(
        program.request("PUT", "/replicas/17", json!({"load": 2})).0,
        422
    );

    let (status, taken) = program.request("GET", "/measurements", Value::Null);
    let expected = json!([{"prefix": "198.51.100.0/24", "rtt_us": 12345, "count": 9, "site": 1}]);
    assert_eq!(
        (status, serde_json::from_str(&taken).unwrap()),
        (200, expected)
    );
    let probed = program.request("POST", "/probe", json!({"addresses": ["127.0.0.5", "::1"]}));
    assert_eq!(
        (probed.0, serde_json::from_str(&probed.1).unwrap()),
        (200, json!({"sent": 2, "answered": 2}))
    );
    let (_, taken) = program.request("GET", "/measurements", Value::Null);
    assert!(
        taken.contains("127.0.0.5/32") && taken.contains("::1/128"),
        "{taken}"
    );

    let (_, page) = program.request("GET", "/metrics", Value::Null);
    for line in [
        "datagrams_total{outcome=\"forwarded\",reason=\"\"} 4",
        "datagrams_total{outcome=\"refused\",reason=\"unknown_name\"} 1",
        "datagrams_total{outcome=\"dropped\",reason=\"unknown_peer\"} 1",
        "sent_packets_total 5",
        "replicas 1",
    ] {
        assert!(
            page.contains(&format!("frontage_dispatcher_{line}\n")),
            "missing {line:?} in\n{page}"
        );
    }
    assert_eq!(
        program.request("DELETE", "/replicas/17", Value::Null).0,
        204
    );
    assert_eq!(
        program.request("DELETE", "/replicas/17", Value::Null).0,
        404
    );
}
