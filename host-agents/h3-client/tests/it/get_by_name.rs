// SPDX-License-Identifier: Apache-2.0
//! `frontage-get`.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};

use artemis::{Cache, Name};
use serde_json::Value;

use crate::testbed::{HttpServer, SIZE, lines};

const FRONTAGE_GET: &str = env!("CARGO_BIN_EXE_frontage-get");

pub fn report(server: &HttpServer, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = server.run(FRONTAGE_GET, &[arguments, &["--json"]].concat());
    (output.status.code(), lines(&output).remove(0))
}

/// Returns the URL of the object by name: `localhost`, whose Service Address is `::1` in the instance `::1/128+0`.
fn url(server: &HttpServer) -> String {
    format!("https://localhost:{}/{SIZE}", server.port)
}

pub fn seconds(report: &Value, step: &str) -> f64 {
    report["seconds"][step].as_f64().unwrap()
}

#[test]
fn report_shows_the_time_of_each_step() {
    let server = HttpServer::new();
    let saved = server.folder.join("saved");
    let arguments = [
        &url(&server),
        "--artemis",
        "::1/128+0",
        "--ca",
        "cert.pem",
        "--output",
        "saved",
    ];
    let output = server.run(FRONTAGE_GET, &arguments);
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{table}");
    assert_eq!(fs::read(saved).unwrap().len(), SIZE);
    let lines: Vec<&str> = table.lines().collect();
    assert!(
        lines[1].starts_with("name ") && lines[1].ends_with("(Service Address)"),
        "{table}"
    );
    assert!(
        lines[4].starts_with("total ") && lines[4].ends_with("1000000 bytes"),
        "{table}"
    );
    // This server has no preferred address.
    assert_eq!(lines.len(), 5, "{table}");
    let (code, report) = report(
        &server,
        &[&url(&server), "--artemis", "::1/128+0", "--insecure"],
    );
    assert_eq!(
        (code, &report["found"], &report["status"]),
        (Some(0), &"artemis".into(), &200.into())
    );
    let steps = ["name", "connect", "first_byte", "total"].map(|step| seconds(&report, step));
    assert!(steps.is_sorted() && steps[0] > 0., "{report}");
    assert_eq!(
        (&report["preferred"], &report["service_ttl"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn errors_name_their_cause() {
    let server = HttpServer::new();
    let (code, not_found) = report(&server, &[&server.url("nothing"), "--insecure"]);
    assert_eq!(
        (code, &not_found["status"], &not_found["found"]),
        (Some(1), &404.into(), &"literal".into())
    );
    // The certificate is for other names.
    let other = url(&server).replace("localhost", "films.example");
    let (code, failed) = report(
        &server,
        &[&other, "--artemis", "::1/128+0", "--ca", "cert.pem"],
    );
    let error = failed["error"].as_str().unwrap();
    assert!(code == Some(1) && error.contains("certificate"), "{error}");
    for (arguments, expected) in [
        (
            &["https://x/", "--artemis", "::1/128+1"][..],
            "more than 128 bits: write prefix/length+bits",
        ),
        (&["https://x/", "--cache", "file"], "--artemis"),
        (&["http://x/"], "invalid URL \"http://x/\": use https://"),
        (
            &[
                "https://x/",
                "--quicksocks",
                "x:1",
                "--artemis",
                "::1/128+0",
            ],
            "'--quicksocks <HOST:PORT>' cannot be used with '--artemis <PREFIX+BITS>'",
        ),
        (
            &[
                "https://x/",
                "--quicksocks",
                "x:1",
                "--resolver",
                "[::1]:53",
            ],
            "'--quicksocks <HOST:PORT>' cannot be used with '--resolver <ADDR:PORT>'",
        ),
        (&["https://x/", "--quicksocks", "::1"], "must be HOST:PORT"),
        (
            &["https://[::1]/", "--quicksocks", "x:1"],
            "host ::1 is an address: use https://name:port/path",
        ),
        (
            &["https://x/", "--quicksocks-user", "ada:engine"],
            "--quicksocks <HOST:PORT>",
        ),
        (
            &[
                "https://x/",
                "--quicksocks",
                "x:1",
                "--quicksocks-user",
                "ada",
            ],
            "must be NAME:PASSWORD",
        ),
    ] {
        let output = server.run(FRONTAGE_GET, arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(2) && error.contains(expected),
            "{error}"
        );
    }
}

/// Creates a cache with the address `unicast` for `localhost` at the port of `server`.
fn create_cache(server: &HttpServer, unicast: SocketAddr) -> PathBuf {
    let path = server.folder.join("cache");
    let cache = Cache::shared(&path);
    cache.put(&localhost(), server.port, unicast, 60).unwrap();
    path
}

fn localhost() -> Name {
    Name::new("localhost").unwrap()
}

fn report_with_cache(server: &HttpServer, cache: &Path) -> (Option<i32>, Value) {
    let cache = cache.to_str().unwrap();
    report(
        server,
        &[
            &url(server),
            "--artemis",
            "::1/128+0",
            "--insecure",
            "--cache",
            cache,
        ],
    )
}

#[test]
fn cached_address_is_tried_first() {
    let (server, replica) = (HttpServer::new(), HttpServer::new());
    let unicast: SocketAddr = format!("[::1]:{}", replica.port).parse().unwrap();
    let path = create_cache(&server, unicast);
    let (code, hit) = report_with_cache(&server, &path);
    let at = Value::from(unicast.to_string());
    assert_eq!(
        (code, &hit["connected"], &hit["cached"]),
        (Some(0), &at, &at)
    );
    assert_eq!(hit["invalidated"], Value::Null);
    let kept = Cache::shared(&path).get(&localhost(), server.port).unwrap();
    assert_eq!(kept, Some(unicast));
}

#[test]
fn silent_cached_address_is_invalidated() {
    let server = HttpServer::new();
    // A socket that never answers.
    let silent = UdpSocket::bind("[::1]:0").unwrap();
    let path = create_cache(&server, silent.local_addr().unwrap());
    let (code, report) = report_with_cache(&server, &path);
    let service = Value::from(format!("[::1]:{}", server.port));
    assert_eq!((code, &report["connected"]), (Some(0), &service));
    assert_eq!(report["invalidated"], "no answer yet");
    assert_eq!(
        Cache::shared(&path).get(&localhost(), server.port).unwrap(),
        None
    );
}

#[test]
fn refusing_cached_address_is_invalidated() {
    let server = HttpServer::new();
    let (send, receive) = std::sync::mpsc::channel();
    let folder = server.folder.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let pem = |name: &str| folder.join(name);
            let tls =
                frontage_cclb7_quic::tls::load(&pem("cert.pem"), &pem("key.pem"), None).unwrap();
            let crypto = noq::crypto::rustls::QuicServerConfig::try_from(tls).unwrap();
            let config = noq::ServerConfig::with_crypto(std::sync::Arc::new(crypto));
            let endpoint = noq::Endpoint::server(config, "[::1]:0".parse().unwrap()).unwrap();
            send.send(endpoint.local_addr().unwrap()).unwrap();
            while let Some(incoming) = endpoint.accept().await {
                incoming.refuse();
            }
        });
    });
    let path = create_cache(&server, receive.recv().unwrap());
    let (code, report) = report_with_cache(&server, &path);
    assert_eq!((code, &report["status"]), (Some(0), &200.into()));
    let reason = report["invalidated"].as_str().unwrap();
    assert!(reason.contains("refused"), "{reason}");
    assert_eq!(
        Cache::shared(&path).get(&localhost(), server.port).unwrap(),
        None
    );
}

/// Runs a name server (RFC 1035, section 4.1) that answers `[::1]` to an AAAA query and no record to an A query.
fn run_name_server(socket: &UdpSocket) {
    for _ in 0..2 {
        let mut query = [0; 512];
        let (n, client) = socket.recv_from(&mut query).unwrap();
        // The question follows the header: name, type, class.
        let end = 12 + query[12..].iter().position(|octet| *octet == 0).unwrap() + 5;
        assert!(n >= end);
        let is_aaaa = query[end - 3] == 28;
        let mut answer = query[..end].to_vec();
        // Flags: response, authoritative, recursion available. Counts: one question, and the number of answers.
        answer[2..12].copy_from_slice(&[0x85, 0x80, 0, 1, 0, u8::from(is_aaaa), 0, 0, 0, 0]);
        if is_aaaa {
            answer.extend([0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 60, 0, 16]);
            answer.extend(std::net::Ipv6Addr::LOCALHOST.octets());
        }
        socket.send_to(&answer, client).unwrap();
    }
}

#[test]
fn resolver_option_queries_the_name_server() {
    let server = HttpServer::new();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let resolver = socket.local_addr().unwrap().to_string();
    let answering = std::thread::spawn(move || run_name_server(&socket));
    let other = url(&server).replace("localhost", "films.example");
    let (code, report) = report(&server, &[&other, "--resolver", &resolver, "--insecure"]);
    assert_eq!(
        (code, &report["found"], &report["status"]),
        (Some(0), &"dns".into(), &200.into())
    );
    assert_eq!(report["service"], format!("[::1]:{}", server.port));
    answering.join().unwrap();
}
