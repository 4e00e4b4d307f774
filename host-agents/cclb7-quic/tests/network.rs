// SPDX-License-Identifier: Apache-2.0
//! Third-party clients, the server, and a stand-in for the switch between them.

mod common;

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use common::clients::Client;
use common::hop::{Down, Seen, VIP};
use common::{SERVER_V4, Testbed, host, key, write_keys};
use frontage_testkit::{privileged, wait_for};

const LENGTH: usize = 5_000_000;
/// Time in µs to send 5 MB at 1 Gbit/s.
const WHOLE_US: u64 = 40_000;

fn object(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 31 % 251) as u8).collect()
}

fn at_vip() -> String {
    host(VIP.into())
}

/// Check that every packet carried loads and RPT from the start of the response until it was sent.
fn check_signals(seen: &Seen) {
    assert_eq!(seen.without_cookie, 0);
    let rpt = seen.down.iter().map(|down| down.signals.rpt_us);
    let most = rpt.max().unwrap();
    assert!(
        most <= WHOLE_US && most > WHOLE_US * 88 / 100,
        "RPT of up to {most} us"
    );
    let (first, last) = (
        seen.down.first().unwrap().signals,
        seen.down.last().unwrap().signals,
    );
    assert_eq!(
        (first.rpt_us, first.n_af, first.n_ff),
        (0, 0, 0),
        "handshake"
    );
    assert!(last.rpt_us < WHOLE_US / 4 && last.n_ff == 0, "{last:?}");
    let loads: Vec<_> = seen
        .down
        .iter()
        .map(|down| (down.signals.n_af, down.signals.n_ff))
        .collect();
    assert!(loads.contains(&(1, 1)) && loads.contains(&(1, 0)));
    assert!(loads.iter().all(|(n_af, n_ff)| n_ff <= n_af && *n_af <= 1));
}

#[test]
fn following_clients_migrate_to_preferred_address() {
    for client in [Client::Ngtcp2, Client::Aioquic] {
        if !privileged() || !client.is_here() {
            continue;
        }
        let object = object(LENGTH);
        let testbed = Testbed::new("follow", &[("object", &object)]);
        assert!(client.get(&testbed, &at_vip(), "object", &[]).0 == object);
        let seen = testbed.hop.seen();
        check_signals(&seen);
        assert_eq!(seen.unasked, 0);
        assert!(
            seen.to_cookie > seen.to_vip,
            "{} packets to the VIP",
            seen.to_vip
        );
        // The handshake was at the VIP, and most of the response at the cookie's address.
        assert!(!seen.down[0].at_cookie);
        assert!(
            seen.down
                .iter()
                .rev()
                .take(seen.down.len() / 2)
                .all(|down| down.at_cookie)
        );
        assert_eq!(testbed.metric("moved_clients_total"), 1);
        wait_for("every datagram to be counted", || {
            testbed.metric("datagrams_total{at=\"cookie\"}") == testbed.hop.seen().to_cookie as u64
        });
        wait_for("loads to fall", || {
            testbed.metric("active_flows") == 0 && testbed.metric("future_flows") == 0
        });
    }
}

#[test]
fn other_clients_get_responses_from_vip() {
    if !privileged() || !Client::Curl.is_here() {
        return;
    }
    let object = object(LENGTH);
    let testbed = Testbed::new("stay", &[("object", &object)]);
    assert!(Client::Curl.get(&testbed, &at_vip(), "object", &[]).0 == object);
    let seen = testbed.hop.seen();
    check_signals(&seen);
    assert_eq!(
        (seen.to_cookie, testbed.metric("moved_clients_total")),
        (0, 0)
    );
    assert!(seen.down.iter().all(|down| !down.at_cookie));
    // IPv4 knows no cookies.
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
    if !privileged() || !Client::Ngtcp2.is_here() {
        return;
    }
    let testbed = Testbed::new("roam", &[]);
    let (go, told) = mpsc::channel();
    let asked = origin(&testbed, move |body| {
        // It sends nothing from its new port before it hears something.
        while told.recv_timeout(Duration::from_millis(1)) == Err(RecvTimeoutError::Timeout) {
            body.send(b"again");
        }
        body.send(&object(LENGTH / 2));
    });
    thread::scope(|scope| {
        // Falls with what fails here, and then the others end.
        let go = go;
        // It tries once, so long after its handshake is confirmed; in vain while it asks whether the preferred address is there.
        let get = || Client::Ngtcp2.get(&testbed, &at_vip(), "origin", &["--change-local-addr=1s"]);
        let client = scope.spawn(get);
        wait_for("another port", || ports(&testbed.hop.seen()).len() == 2);
        go.send(()).unwrap();
        let (body, _) = client.join().unwrap();
        let (before, rest) = body.split_at(body.len() - LENGTH / 2);
        assert!(before.chunks(5).all(|piece| piece == b"again") && rest == object(LENGTH / 2));
    });
    asked.join().unwrap();
    let seen = testbed.hop.seen();
    check_both_ports(&seen);
    assert!(seen.down.last().unwrap().at_cookie);
    wait_for("loads to fall", || testbed.metric("active_flows") == 0);
}

/// Return the client's ports in order.
fn ports(seen: &Seen) -> BTreeSet<u16> {
    seen.down.iter().map(|down| down.port).collect()
}

/// Check that the client's last port differs from the first, and that packets to it carried RPT.
fn check_both_ports(seen: &Seen) {
    assert_eq!((seen.without_cookie, seen.unasked), (0, 0));
    assert_eq!(ports(seen).len(), 2);
    let there = seen
        .down
        .iter()
        .filter(|down| down.port != seen.down[0].port);
    let (known, unknown): (Vec<&Down>, Vec<&Down>) =
        there.partition(|down| down.signals.rpt_us > 0);
    assert!(
        known.len() > unknown.len(),
        "{} and {} packets",
        known.len(),
        unknown.len()
    );
    assert!(known.last().unwrap().signals.rpt_us < WHOLE_US);
}

/// A NAT restarts while the client is silent, and the client is not notified (RFC 9000, section 9.3.1).
#[test]
fn signals_follow_client_after_nat_restart() {
    for (client, moves) in [(Client::Aioquic, true), (Client::Curl, false)] {
        if !privileged() || !client.is_here() {
            continue;
        }
        let object = object(LENGTH);
        let testbed = Testbed::new("nat", &[("object", &object)]);
        let saved = client.saved(&testbed, "object");
        thread::scope(|scope| {
            let rebind = scope.spawn(|| {
                wait_for("the first response", || saved.exists());
                testbed.hop.rebind();
                std::fs::remove_file(&saved).unwrap();
            });
            assert!(client.get(&testbed, &at_vip(), "object", &["again: yes"]).0 == object);
            rebind.join().unwrap();
        });
        let seen = testbed.hop.seen();
        check_both_ports(&seen);
        assert_eq!(seen.down.last().unwrap().at_cookie, moves);
        assert_eq!(testbed.metric("connections_total"), 1);
        assert_eq!(testbed.metric("moved_clients_total"), u64::from(moves));
    }
}

#[test]
fn new_key_applies_to_new_clients_only() {
    if !privileged() || !Client::Ngtcp2.is_here() {
        return;
    }
    let object = object(LENGTH);
    let testbed = Testbed::new("rotate", &[("object", &object)]);
    assert!(Client::Ngtcp2.get(&testbed, &at_vip(), "object", &[]).0 == object);
    let before = testbed.hop.seen().to_cookie;
    testbed.rotate();
    assert!(Client::Ngtcp2.get(&testbed, &at_vip(), "object", &[]).0 == object);
    let seen = testbed.hop.seen();
    assert!(seen.to_cookie > before);
    assert_eq!(
        (
            seen.without_cookie,
            seen.unasked,
            testbed.metric("moved_clients_total")
        ),
        (0, 0, 2)
    );
    // A file that is wrong changes nothing.
    write_keys(&testbed.folder, &[key(1), key(3)]);
    testbed.signal(libc::SIGHUP);
    assert!(Client::Ngtcp2.get(&testbed, &at_vip(), "object", &[]).0 == object);
    assert_eq!(testbed.metric("key_id"), 2);
}

/// The body of a response, in chunks.
struct Body(TcpStream);

impl Body {
    fn send(&mut self, piece: &[u8]) {
        write!(self.0, "{:x}\r\n", piece.len()).unwrap();
        self.0.write_all(piece).unwrap();
        self.0.write_all(b"\r\n").unwrap();
    }
}

/// Start an origin that responds to one request with what `answer` sends. Returns the request.
fn origin(
    testbed: &Testbed,
    answer: impl FnOnce(&mut Body) + Send + 'static,
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
        answer(&mut body);
        body.0.write_all(b"0\r\n\r\n").unwrap();
        String::from_utf8_lossy(&request[..n]).into_owned()
    })
}

#[test]
fn active_responses_complete_before_shutdown() {
    if !privileged() || !Client::Curl.is_here() {
        return;
    }
    let testbed = Testbed::new("drain", &[]);
    let (go, told) = mpsc::channel();
    let asked = origin(&testbed, move |body| {
        for _ in 0..2 {
            body.send(&object(LENGTH / 2));
            told.recv().unwrap();
        }
    });
    thread::scope(|scope| {
        let client = scope.spawn(|| Client::Curl.get(&testbed, &at_vip(), "origin/a?b=c", &[]));
        // Half of it is sent, so as much again is thought to follow.
        wait_for("the first half", || {
            testbed
                .hop
                .seen()
                .down
                .last()
                .is_some_and(|down| down.signals.rpt_us > WHOLE_US * 2 / 5)
        });
        assert_eq!(
            (
                testbed.metric("active_flows"),
                testbed.metric("future_flows")
            ),
            (1, 1)
        );
        testbed.signal(libc::SIGTERM);
        go.send(()).unwrap();
        go.send(()).unwrap();
        let (body, answer) = client.join().unwrap();
        assert!(body == [object(LENGTH / 2), object(LENGTH / 2)].concat());
        assert!(
            answer.contains("\"x-end\": \"2\"") && !answer.contains("x-hop"),
            "{answer}"
        );
    });
    let asked = asked.join().unwrap();
    assert!(
        asked.starts_with("GET /origin/a?b=c HTTP/1.1\r\n"),
        "{asked}"
    );
    assert!(
        asked.contains("x-forwarded-for: 2001:db8:a::2\r\n")
            && asked.contains("x-forwarded-proto: https\r\n")
    );
    wait_for("the server to end", || !testbed.is_up());
}

#[test]
fn files_follow_http_semantics() {
    if !privileged() || !Client::Curl.is_here() {
        return;
    }
    let object = object(100_000);
    let testbed = Testbed::new("files", &[("page.html", &object)]);
    std::fs::write(testbed.folder.join("secret"), "not for you").unwrap();
    let get = |name: &str, fields: &[&str]| {
        let (body, answer) = Client::Curl.get(&testbed, &at_vip(), name, fields);
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        (answer["status"].as_u64().unwrap(), body, answer)
    };
    let (status, body, whole) = get("page.html", &[]);
    assert_eq!(
        (status, &whole["content-type"], &whole["content-length"]),
        (200, &"text/html".into(), &"100000".into())
    );
    assert!(body == object);
    let tag = whole["etag"].as_str().unwrap();
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
                whole["last-modified"].as_str().unwrap()
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
        "nothing",
    ] {
        let (status, body, _) = get(name, &[]);
        assert!(matches!(status, 400 | 404), "{name}: {status}");
        assert!(body.is_empty());
    }
    // No server listens there.
    assert_eq!(get("origin", &[]).0, 502);
}
