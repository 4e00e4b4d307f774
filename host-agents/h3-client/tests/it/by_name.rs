//! `frontage-get`.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};

use artemis::{Cache, Name};
use serde_json::Value;

use crate::world::{SIZE, World, lines};

const FRONTAGE_GET: &str = env!("CARGO_BIN_EXE_frontage-get");

pub fn report(world: &World, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = world.run(FRONTAGE_GET, &[arguments, &["--json"]].concat());
    (output.status.code(), lines(&output).remove(0))
}

/// That of a name, rather than of an address: `localhost`, which is a Service Address of the instance `::1/128+0`.
fn url(world: &World) -> String {
    format!("https://localhost:{}/{SIZE}", world.port)
}

pub fn seconds(report: &Value, step: &str) -> f64 {
    report["seconds"][step].as_f64().unwrap()
}

#[test]
fn a_table_tells_where_the_time_went() {
    let world = World::new();
    let saved = world.folder.join("saved");
    let arguments = [
        &url(&world),
        "--artemis",
        "::1/128+0",
        "--ca",
        "cert.pem",
        "--output",
        "saved",
    ];
    let output = world.run(FRONTAGE_GET, &arguments);
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
    // This server prefers no address.
    assert_eq!(lines.len(), 5, "{table}");
    let (code, report) = report(
        &world,
        &[&url(&world), "--artemis", "::1/128+0", "--insecure"],
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
fn what_fails_is_told() {
    let world = World::new();
    let (code, not_found) = report(&world, &[&world.url("nothing"), "--insecure"]);
    assert_eq!(
        (code, &not_found["status"], &not_found["found"]),
        (Some(1), &404.into(), &"literal".into())
    );
    // The certificate is for nobody's name.
    let other = url(&world).replace("localhost", "films.example");
    let (code, failed) = report(
        &world,
        &[&other, "--artemis", "::1/128+0", "--ca", "cert.pem"],
    );
    let error = failed["error"].as_str().unwrap();
    assert!(code == Some(1) && error.contains("certificate"), "{error}");
    for (arguments, expected) in [
        (
            &["https://x/", "--artemis", "::1/128+1"][..],
            "has more than 128 bits; write prefix/length+bits",
        ),
        (&["https://x/", "--cache", "file"], "--artemis"),
        (&["http://x/"], "is no URL; write https://"),
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
        (&["https://x/", "--quicksocks", "::1"], "write host:port"),
        (
            &["https://[::1]/", "--quicksocks", "x:1"],
            "::1 is an address; write https://name:port/path",
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
            "write NAME:PASSWORD",
        ),
    ] {
        let output = world.run(FRONTAGE_GET, arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(2) && error.contains(expected),
            "{error}"
        );
    }
}

/// A cache in which `localhost` at the port of `world` is at `unicast`.
fn cached(world: &World, unicast: SocketAddr) -> PathBuf {
    let path = world.folder.join("cache");
    let cache = Cache::shared(&path);
    cache.put(&localhost(), world.port, unicast, 60).unwrap();
    path
}

fn localhost() -> Name {
    Name::new("localhost").unwrap()
}

fn with_cache(world: &World, cache: &Path) -> (Option<i32>, Value) {
    let cache = cache.to_str().unwrap();
    report(
        world,
        &[
            &url(world),
            "--artemis",
            "::1/128+0",
            "--insecure",
            "--cache",
            cache,
        ],
    )
}

#[test]
fn what_the_cache_knows_comes_first() {
    let (world, replica) = (World::new(), World::new());
    let unicast: SocketAddr = format!("[::1]:{}", replica.port).parse().unwrap();
    let path = cached(&world, unicast);
    let (code, hit) = with_cache(&world, &path);
    let at = Value::from(unicast.to_string());
    assert_eq!(
        (code, &hit["connected"], &hit["cached"]),
        (Some(0), &at, &at)
    );
    assert_eq!(hit["invalidated"], Value::Null);
    let kept = Cache::shared(&path).get(&localhost(), world.port).unwrap();
    assert_eq!(kept, Some(unicast));
}

#[test]
fn what_does_not_answer_is_forgotten() {
    let world = World::new();
    // Somebody is there, and says nothing.
    let silent = UdpSocket::bind("[::1]:0").unwrap();
    let path = cached(&world, silent.local_addr().unwrap());
    let (code, report) = with_cache(&world, &path);
    let service = Value::from(format!("[::1]:{}", world.port));
    assert_eq!((code, &report["connected"]), (Some(0), &service));
    assert_eq!(report["invalidated"], "no answer yet");
    assert_eq!(
        Cache::shared(&path).get(&localhost(), world.port).unwrap(),
        None
    );
}

#[test]
fn what_refuses_is_forgotten() {
    let world = World::new();
    let (send, receive) = std::sync::mpsc::channel();
    let folder = world.folder.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let pem = |name: &str| folder.join(name);
            let tls = frontage_cclb7_quic::tls::load(&pem("cert.pem"), &pem("key.pem")).unwrap();
            let crypto = noq::crypto::rustls::QuicServerConfig::try_from(tls).unwrap();
            let config = noq::ServerConfig::with_crypto(std::sync::Arc::new(crypto));
            let endpoint = noq::Endpoint::server(config, "[::1]:0".parse().unwrap()).unwrap();
            send.send(endpoint.local_addr().unwrap()).unwrap();
            while let Some(incoming) = endpoint.accept().await {
                incoming.refuse();
            }
        });
    });
    let path = cached(&world, receive.recv().unwrap());
    let (code, report) = with_cache(&world, &path);
    assert_eq!((code, &report["status"]), (Some(0), &200.into()));
    let reason = report["invalidated"].as_str().unwrap();
    assert!(reason.contains("refused"), "{reason}");
    assert_eq!(
        Cache::shared(&path).get(&localhost(), world.port).unwrap(),
        None
    );
}

/// Answers `[::1]` to one AAAA query, and nothing to one for A; a name server whose zone has one record (RFC 1035, section 4.1).
fn name_server(socket: &UdpSocket) {
    for _ in 0..2 {
        let mut query = [0; 512];
        let (n, client) = socket.recv_from(&mut query).unwrap();
        // Behind the header comes the name, and behind that type and class.
        let end = 12 + query[12..].iter().position(|octet| *octet == 0).unwrap() + 5;
        assert!(n >= end);
        let is_aaaa = query[end - 3] == 28;
        let mut answer = query[..end].to_vec();
        // A response, authoritative, recursion available; a question, so many answers.
        answer[2..12].copy_from_slice(&[0x85, 0x80, 0, 1, 0, u8::from(is_aaaa), 0, 0, 0, 0]);
        if is_aaaa {
            answer.extend([0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 60, 0, 16]);
            answer.extend(std::net::Ipv6Addr::LOCALHOST.octets());
        }
        socket.send_to(&answer, client).unwrap();
    }
}

#[test]
fn a_name_server_may_be_asked() {
    let world = World::new();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = socket.local_addr().unwrap().to_string();
    let answering = std::thread::spawn(move || name_server(&socket));
    let elsewhere = url(&world).replace("localhost", "films.example");
    let (code, report) = report(&world, &[&elsewhere, "--resolver", &server, "--insecure"]);
    assert_eq!(
        (code, &report["found"], &report["status"]),
        (Some(0), &"dns".into(), &200.into())
    );
    assert_eq!(report["service"], format!("[::1]:{}", world.port));
    answering.join().unwrap();
}
