// SPDX-License-Identifier: Apache-2.0
//! Third-party clients, the server, and a simulated edge switch between them.

mod common;

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use common::clients::Client;
use common::edge_switch::{DownstreamPacket, PacketLog, VIP};
use common::{SERVER_V4, Testbed, host, key, write_keys};
use frontage_testkit::{privileged, wait_for};

const LENGTH: usize = 5_000_000;
/// Time in µs to send 5 MB at 1 Gbit/s.
const TRANSMISSION_US: u64 = 40_000;

fn object(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 31 % 251) as u8).collect()
}

fn vip_host() -> String {
    host(VIP.into())
}

/// Check that every packet carried loads and RPT, from the start to the end of the response.
fn check_signals(log: &PacketLog) {
    assert_eq!(log.without_cookie, 0);
    let rpt = log.down.iter().map(|packet| packet.signals.rpt_us);
    let max = rpt.max().unwrap();
    assert!(
        max <= TRANSMISSION_US && max > TRANSMISSION_US * 88 / 100,
        "maximum RPT: {max} us"
    );
    let (first, last) = (
        log.down.first().unwrap().signals,
        log.down.last().unwrap().signals,
    );
    assert_eq!(
        (first.rpt_us, first.n_af, first.n_ff),
        (0, 0, 0),
        "handshake"
    );
    assert!(
        last.rpt_us < TRANSMISSION_US / 4 && last.n_ff == 0,
        "{last:?}"
    );
    let loads: Vec<_> = log
        .down
        .iter()
        .map(|packet| (packet.signals.n_af, packet.signals.n_ff))
        .collect();
    assert!(loads.contains(&(1, 1)) && loads.contains(&(1, 0)));
    assert!(loads.iter().all(|(n_af, n_ff)| n_ff <= n_af && *n_af <= 1));
}

#[test]
fn following_clients_migrate_to_preferred_address() {
    for client in [Client::Ngtcp2, Client::Aioquic] {
        if !privileged() || !client.is_installed() {
            continue;
        }
        let object = object(LENGTH);
        let testbed = Testbed::new("follow", &[("object", &object)]);
        assert!(client.get(&testbed, &vip_host(), "object", &[]).0 == object);
        let log = testbed.edge_switch.log();
        check_signals(&log);
        assert_eq!(log.unsolicited, 0);
        assert!(
            log.to_cookie > log.to_vip,
            "{} packets to the VIP",
            log.to_vip
        );
        // The handshake used the VIP, and most of the response the cookie address.
        assert!(!log.down[0].at_cookie);
        assert!(
            log.down
                .iter()
                .rev()
                .take(log.down.len() / 2)
                .all(|packet| packet.at_cookie)
        );
        assert_eq!(testbed.metric("moved_clients_total"), 1);
        wait_for("every datagram to be counted", || {
            testbed.metric("datagrams_total{at=\"cookie\"}")
                == testbed.edge_switch.log().to_cookie as u64
        });
        wait_for("loads to fall", || {
            testbed.metric("active_flows") == 0 && testbed.metric("future_flows") == 0
        });
    }
}

#[test]
fn other_clients_get_responses_from_vip() {
    if !privileged() || !Client::Curl.is_installed() {
        return;
    }
    let object = object(LENGTH);
    let testbed = Testbed::new("stay", &[("object", &object)]);
    assert!(Client::Curl.get(&testbed, &vip_host(), "object", &[]).0 == object);
    let log = testbed.edge_switch.log();
    check_signals(&log);
    assert_eq!(
        (log.to_cookie, testbed.metric("moved_clients_total")),
        (0, 0)
    );
    assert!(log.down.iter().all(|down| !down.at_cookie));
    // There are no cookies over IPv4.
    assert!(
        Client::Curl
            .get(&testbed, &host(SERVER_V4.into()), "object", &[])
            .0
            == object
    );
    assert!(testbed.metric("datagrams_total{at=\"plain\"}") > 0);
    assert_eq!(
        testbed
            .access_log()
            .lines()
            .filter(|line| line.contains("\"whole\":true"))
            .count(),
        2
    );
}

/// The client's own address changes during a response (RFC 9000, section 9).
#[test]
fn signals_follow_client_to_new_port() {
    if !privileged() || !Client::Ngtcp2.is_installed() {
        return;
    }
    let testbed = Testbed::new("roam", &[]);
    let (finish, finished) = mpsc::channel();
    let request = origin(&testbed, move |body| {
        // The client sends from its new port only after it has received a packet.
        while finished.recv_timeout(Duration::from_millis(1)) == Err(RecvTimeoutError::Timeout) {
            body.send(b"again");
        }
        body.send(&object(LENGTH / 2));
    });
    thread::scope(|scope| {
        // If this scope panics, the sender is dropped, which ends the origin.
        let finish = finish;
        // The client changes its port once, at this time after its handshake is confirmed. The change fails while the client
        // validates the preferred address.
        let get =
            || Client::Ngtcp2.get(&testbed, &vip_host(), "origin", &["--change-local-addr=1s"]);
        let client = scope.spawn(get);
        wait_for("a second port", || {
            ports(&testbed.edge_switch.log()).len() == 2
        });
        finish.send(()).unwrap();
        let (body, _) = client.join().unwrap();
        let (before, rest) = body.split_at(body.len() - LENGTH / 2);
        assert!(before.chunks(5).all(|chunk| chunk == b"again") && rest == object(LENGTH / 2));
    });
    request.join().unwrap();
    let log = testbed.edge_switch.log();
    check_both_ports(&log);
    assert!(log.down.last().unwrap().at_cookie);
    wait_for("loads to fall", || testbed.metric("active_flows") == 0);
}

/// Return the client's ports, sorted.
fn ports(log: &PacketLog) -> BTreeSet<u16> {
    log.down.iter().map(|packet| packet.port).collect()
}

/// Check that the client's last port differs from the first, and that packets to it carried RPT.
fn check_both_ports(log: &PacketLog) {
    assert_eq!((log.without_cookie, log.unsolicited), (0, 0));
    assert_eq!(ports(log).len(), 2);
    let to_new_port = log
        .down
        .iter()
        .filter(|packet| packet.port != log.down[0].port);
    let (with_rpt, without_rpt): (Vec<&DownstreamPacket>, Vec<&DownstreamPacket>) =
        to_new_port.partition(|packet| packet.signals.rpt_us > 0);
    assert!(
        with_rpt.len() > without_rpt.len(),
        "{} packets with RPT, {} without",
        with_rpt.len(),
        without_rpt.len()
    );
    assert!(with_rpt.last().unwrap().signals.rpt_us < TRANSMISSION_US);
}

/// A NAT restarts while the client is silent, and the client is not notified (RFC 9000, section 9.3.1).
#[test]
fn signals_follow_client_after_nat_restart() {
    for (client, follows) in [(Client::Aioquic, true), (Client::Curl, false)] {
        if !privileged() || !client.is_installed() {
            continue;
        }
        let object = object(LENGTH);
        let testbed = Testbed::new("nat", &[("object", &object)]);
        let output = client.output_file(&testbed, "object");
        thread::scope(|scope| {
            let rebind = scope.spawn(|| {
                wait_for("the first response", || output.exists());
                testbed.edge_switch.rebind();
                std::fs::remove_file(&output).unwrap();
            });
            assert!(
                client
                    .get(&testbed, &vip_host(), "object", &["again: yes"])
                    .0
                    == object
            );
            rebind.join().unwrap();
        });
        let log = testbed.edge_switch.log();
        check_both_ports(&log);
        assert_eq!(log.down.last().unwrap().at_cookie, follows);
        assert_eq!(testbed.metric("connections_total"), 1);
        assert_eq!(testbed.metric("moved_clients_total"), u64::from(follows));
    }
}

#[test]
fn new_key_applies_to_new_clients_only() {
    if !privileged() || !Client::Ngtcp2.is_installed() {
        return;
    }
    let object = object(LENGTH);
    let testbed = Testbed::new("rotate", &[("object", &object)]);
    assert!(Client::Ngtcp2.get(&testbed, &vip_host(), "object", &[]).0 == object);
    let before = testbed.edge_switch.log().to_cookie;
    testbed.rotate();
    assert!(Client::Ngtcp2.get(&testbed, &vip_host(), "object", &[]).0 == object);
    let log = testbed.edge_switch.log();
    assert!(log.to_cookie > before);
    assert_eq!(
        (
            log.without_cookie,
            log.unsolicited,
            testbed.metric("moved_clients_total")
        ),
        (0, 0, 2)
    );
    // The server keeps its keys if the new file is invalid.
    write_keys(&testbed.folder, &[key(1), key(3)]);
    testbed.signal(libc::SIGHUP);
    assert!(Client::Ngtcp2.get(&testbed, &vip_host(), "object", &[]).0 == object);
    assert_eq!(testbed.metric("key_id"), 2);
}

/// The chunked body of a response.
struct Body(TcpStream);

impl Body {
    fn send(&mut self, chunk: &[u8]) {
        write!(self.0, "{:x}\r\n", chunk.len()).unwrap();
        self.0.write_all(chunk).unwrap();
        self.0.write_all(b"\r\n").unwrap();
    }
}

/// Start an origin that responds to one request with the body that `respond` sends. The thread returns the request.
fn origin(
    testbed: &Testbed,
    respond: impl FnOnce(&mut Body) + Send + 'static,
) -> thread::JoinHandle<String> {
    let listener = testbed
        .server
        .run(|| TcpListener::bind("127.0.0.1:8080").unwrap());
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = vec![0; 4096];
        let n = stream.read(&mut request).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: x-hop\r\nX-Hop: 1\r\nX-End: 2\r\n\r\n").unwrap();
        let mut body = Body(stream);
        respond(&mut body);
        body.0.write_all(b"0\r\n\r\n").unwrap();
        String::from_utf8_lossy(&request[..n]).into_owned()
    })
}

#[test]
fn active_responses_complete_before_shutdown() {
    if !privileged() || !Client::Curl.is_installed() {
        return;
    }
    let testbed = Testbed::new("drain", &[]);
    let (resume, resumed) = mpsc::channel();
    let request = origin(&testbed, move |body| {
        for _ in 0..2 {
            body.send(&object(LENGTH / 2));
            resumed.recv().unwrap();
        }
    });
    thread::scope(|scope| {
        let client = scope.spawn(|| Client::Curl.get(&testbed, &vip_host(), "origin/a?b=c", &[]));
        // Half of the response is sent, so the server expects the same amount again.
        wait_for("the first half", || {
            testbed
                .edge_switch
                .log()
                .down
                .last()
                .is_some_and(|packet| packet.signals.rpt_us > TRANSMISSION_US * 2 / 5)
        });
        assert_eq!(
            (
                testbed.metric("active_flows"),
                testbed.metric("future_flows")
            ),
            (1, 1)
        );
        testbed.signal(libc::SIGTERM);
        resume.send(()).unwrap();
        resume.send(()).unwrap();
        let (body, response) = client.join().unwrap();
        assert!(body == [object(LENGTH / 2), object(LENGTH / 2)].concat());
        assert!(
            response.contains("\"x-end\": \"2\"") && !response.contains("x-hop"),
            "{response}"
        );
    });
    let request = request.join().unwrap();
    assert!(
        request.starts_with("GET /origin/a?b=c HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(
        request.contains("x-forwarded-for: 2001:db8:a::2\r\n")
            && request.contains("x-forwarded-proto: https\r\n")
    );
    wait_for("the server to stop", || !testbed.is_up());
}

#[test]
fn files_follow_http_semantics() {
    if !privileged() || !Client::Curl.is_installed() {
        return;
    }
    let object = object(100_000);
    let testbed = Testbed::new("files", &[("page.html", &object)]);
    std::fs::write(testbed.folder.join("secret"), "secret").unwrap();
    let get = |name: &str, fields: &[&str]| {
        let (body, response) = Client::Curl.get(&testbed, &vip_host(), name, fields);
        let response: serde_json::Value = serde_json::from_str(&response).unwrap();
        (response["status"].as_u64().unwrap(), body, response)
    };
    let (status, body, full) = get("page.html", &[]);
    assert_eq!(
        (status, &full["content-type"], &full["content-length"]),
        (200, &"text/html".into(), &"100000".into())
    );
    assert!(body == object);
    // From memory.
    let (status, body, again) = get("page.html", &[]);
    assert!(status == 200 && body == object && again["date"].is_string());
    for name in [
        "accept-ranges",
        "content-length",
        "content-type",
        "etag",
        "last-modified",
    ] {
        assert_eq!(again[name], full[name], "{name}");
    }
    let tag = full["etag"].as_str().unwrap();
    let (status, body, part) = get(
        "page.html",
        &["Range: bytes=10-19", &format!("If-Range: {tag}")],
    );
    assert_eq!(
        (status, &body[..], &part["content-range"]),
        (206, &object[10..20], &"bytes 10-19/100000".into())
    );
    let (status, body, head) = get("page.html", &["method: HEAD"]);
    assert_eq!(
        (status, body.len(), &head["content-length"]),
        (200, 0, &"100000".into())
    );
    for (fields, expected) in [
        (vec![format!("If-None-Match: {tag}")], 304),
        (
            vec![format!(
                "If-Modified-Since: {}",
                full["last-modified"].as_str().unwrap()
            )],
            304,
        ),
        (vec!["If-Match: \"other\"".into()], 412),
        (vec!["Range: bytes=200000-".into()], 416),
        (vec!["Range: bytes=0-1,5-6".into()], 200),
        (vec!["Range: lines=1-2".into()], 200),
        (vec!["method: POST".into(), "body: x".into()], 405),
    ] {
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        assert_eq!(get("page.html", &fields).0, expected, "{fields:?}");
    }
    for name in [
        "%2e%2e/secret",
        "..%2fsecret",
        "x/%2e%2e/%2e%2e/secret",
        "page.html/%2e%2e",
        "missing",
    ] {
        let (status, body, _) = get(name, &[]);
        assert!(matches!(status, 400 | 404), "{name}: {status}");
        assert!(body.is_empty());
    }
    std::fs::write(testbed.folder.join("files/page.html"), "new").unwrap();
    assert_eq!(get("page.html", &[]).1, b"new");
    // The origin does not listen.
    assert_eq!(get("origin", &[]).0, 502);
}
