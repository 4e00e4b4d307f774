//! The program itself, in a network namespace: tunnels in and out, HTTP, and a site that falls out.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

use frontage_first_flight::packet::Invariants;
use frontage_testkit::{Namespace, TEST_TIMEOUT, privileged, wait_for};
use frontage_tunnel::{Encapsulation, decode};
use serde_json::{Value, json};

use crate::world::flight;

const PROGRAM: &str = env!("CARGO_BIN_EXE_frontage-dispatcher");
const CONTROL: &str = "127.0.0.2:8080";
const CONFIG: &str = "control = '127.0.0.2:8080'\nthreads = 2\n[tunnel]\nlisten = '127.0.0.2:4789'\npeers = ['127.0.0.1']\n";

/// The status of a request and the answer's body; nothing if nobody listens yet.
fn ask(namespace: &Namespace, method: &str, path: &str, body: &Value) -> Option<(u16, String)> {
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
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        Some((
            head.split(' ').nth(1).unwrap().parse().unwrap(),
            body.to_owned(),
        ))
    })
}

struct Program {
    namespace: Namespace,
    _folder: Folder,
}

struct Folder(std::path::PathBuf);

impl Drop for Folder {
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
            ask(&namespace, "GET", "/table", &Value::Null).is_some()
        });
        Self {
            namespace,
            _folder: Folder(folder),
        }
    }

    fn ask(&self, method: &str, path: &str, body: Value) -> (u16, String) {
        ask(&self.namespace, method, path, &body).expect("it listens")
    }

    fn socket(&self, address: &str) -> UdpSocket {
        let socket = self
            .namespace
            .run(|| UdpSocket::bind((address, 4789)).unwrap());
        socket.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        socket
    }

    fn beat(&self, ttl: f64) {
        let beat = json!({
            "services": ["films.example"], "address": "127.0.0.3", "load": 0.4, "weight": 1, "accepting": true,
            "ttl": ttl, "rtts": [{"prefix": "198.51.100.0/24", "rtt_us": 12345, "count": 3}],
        });
        assert_eq!(self.ask("PUT", "/replicas/17", beat), (204, String::new()));
    }
}

fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut buffer = [0; 2048];
    let n = socket.recv(&mut buffer).expect("a packet comes");
    buffer[..n].to_vec()
}

#[test]
fn tunnels_and_heartbeats() {
    if !privileged() {
        return;
    }
    let program = Program::start();
    let table = json!({
        "version": 7, "site": 1, "sites": [{"id": 1, "vtep": "127.0.0.1"}, {"id": 2, "vtep": "127.0.0.4"}],
        "services": [{"name": "films.example", "id": 3, "deployment": 7, "redundancy": 1, "alpn": ["h3"], "policy": "latency"}],
        "clients": [], "mapping": [{"deployment": 7, "sites": [1, 2], "regions": [0]}],
    });
    assert_eq!(program.ask("GET", "/table", Value::Null).0, 404);
    assert_eq!(program.ask("PUT", "/table", table).0, 200);
    program.beat(600.0);

    let [switch, replica, other] =
        ["127.0.0.1", "127.0.0.3", "127.0.0.4"].map(|address| program.socket(address));
    let send = |packet: &[u8]| switch.send_to(packet, "127.0.0.2:4789").unwrap();
    let packet = flight(1, "films.example");
    send(&packet);
    assert_eq!(receive(&replica), packet);
    let unknown = flight(2, "other.example");
    send(&unknown);
    let answer = receive(&switch);
    let asked = decode(Encapsulation::Vxlan, &unknown).unwrap().inner;
    let told = decode(Encapsulation::Vxlan, &answer).unwrap().inner;
    assert_eq!(told.flow, asked.flow.reversed());
    assert_eq!(Invariants::parse(told.payload).unwrap().version, 1);

    // A stranger's tunnel.
    let stranger = program.socket("127.0.0.9");
    stranger
        .send_to(&flight(3, "films.example"), "127.0.0.2:4789")
        .unwrap();
    // The site falls out: its last replica sends no more heartbeats.
    program.beat(0.2);
    wait_for("the replica's end", || {
        program.ask("GET", "/replicas", Value::Null) == (200, "[]".into())
    });
    let packet = flight(4, "films.example");
    send(&packet);
    assert_eq!(receive(&other), packet);
    // And returns.
    program.beat(600.0);
    let packet = flight(5, "films.example");
    send(&packet);
    assert_eq!(receive(&replica), packet);
    replica
        .set_read_timeout(Some(Duration::from_millis(1)))
        .unwrap();
    assert!(
        replica.recv(&mut [0; 2048]).is_err(),
        "the stranger's packet was forwarded"
    );

    let stale = json!({"from": 6, "version": 8});
    assert_eq!(program.ask("PATCH", "/table", stale).0, 409);
    let elsewhere = json!({"from": 7, "version": 8, "mapping": [{"deployment": 7, "sites": [2, 1], "regions": [0]}]});
    assert_eq!(program.ask("PATCH", "/table", elsewhere).0, 200);
    let packet = flight(6, "films.example");
    send(&packet);
    assert_eq!(receive(&other), packet);
    assert_eq!(
        program.ask("PUT", "/replicas/17", json!({"load": 2})).0,
        422
    );

    let (status, taken) = program.ask("GET", "/measurements", Value::Null);
    let expected = json!([{"prefix": "198.51.100.0/24", "rtt_us": 12345, "count": 9, "site": 1}]);
    assert_eq!(
        (status, serde_json::from_str(&taken).unwrap()),
        (200, expected)
    );
    let probed = program.ask("POST", "/probe", json!({"addresses": ["127.0.0.5", "::1"]}));
    assert_eq!(
        (probed.0, serde_json::from_str(&probed.1).unwrap()),
        (200, json!({"sent": 2, "answered": 2}))
    );
    let (_, taken) = program.ask("GET", "/measurements", Value::Null);
    assert!(
        taken.contains("127.0.0.5/32") && taken.contains("::1/128"),
        "{taken}"
    );

    let (_, page) = program.ask("GET", "/metrics", Value::Null);
    for line in [
        "datagrams_total{outcome=\"forwarded\",reason=\"\"} 4",
        "datagrams_total{outcome=\"refused\",reason=\"unknown_name\"} 1",
        "datagrams_total{outcome=\"dropped\",reason=\"peer\"} 1",
        "sent_packets_total 5",
        "replicas 1",
    ] {
        assert!(
            page.contains(&format!("frontage_dispatcher_{line}\n")),
            "{line} is not in\n{page}"
        );
    }
    assert_eq!(program.ask("DELETE", "/replicas/17", Value::Null).0, 204);
    assert_eq!(program.ask("DELETE", "/replicas/17", Value::Null).0, 404);
}
