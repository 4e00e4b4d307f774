// SPDX-License-Identifier: Apache-2.0
//! A replica of Artemis: late binding, invalidation, heartbeats, and invalid datagrams at the tunnel.

mod common;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use common::clients::Client;
use common::edge_switch::{self, CLIENT, COOKIE_PREFIX, SERVER_PREFIX};
use common::gateway::{self, GATEWAY, SERVICE};
use common::real_server::RealServer;
use common::{HEARTBEATS, PORT, SID, Testbed, host};
use frontage_h3_client::by_name::{Fetch, Lookup, Report, Route};
use frontage_h3_client::client::{self, Client as Http3, Options, Target, Url};
use frontage_h3_client::{Trust, block_on};
use frontage_testkit::{privileged, wait_for};
use frontage_tunnel::{Error, Flow};
use serde_json::Value;

const LENGTH: usize = 2_000_000;

fn object() -> Vec<u8> {
    (0..LENGTH).map(|i| (i * 31 % 251) as u8).collect()
}

fn options() -> Options {
    Options {
        trust: Trust::none(),
        follow: true,
        migrate_early: true,
        early_data: false,
        moves: false,
        paths: 1,
    }
}

/// Run `frontage-get --artemis 2001:db8:5a::/48+0 --cache cache` in the client's namespace.
fn get(testbed: &Testbed, path: &str) -> Report {
    let fetch = Fetch {
        url: format!("https://frontage.test/{path}"),
        route: Route::Lookup(Lookup::Artemis("2001:db8:5a::/48+0".parse().unwrap())),
        cache: Some(cache(testbed)),
        output: Some(testbed.folder.join("got")),
        options: options(),
    };
    testbed.client.run(|| block_on(fetch.run())).unwrap()
}

fn cache(testbed: &Testbed) -> PathBuf {
    testbed.folder.join("cache")
}

fn service() -> Option<SocketAddr> {
    Some((SERVICE, PORT).into())
}

#[test]
fn client_binds_late_and_returns_to_unicast_address() {
    if !privileged() {
        return;
    }
    let testbed = Testbed::replica("late", &[("object", &object())]);
    let report = get(&testbed, "object");
    assert!(
        report.is_success() && std::fs::read(testbed.folder.join("got")).unwrap() == object(),
        "{report}"
    );
    assert_eq!(
        (report.connected, report.service_ttl),
        (service(), Some(60))
    );
    let unicast = report.preferred.unwrap();
    assert!(
        matches!(unicast, SocketAddr::V6(v6) if v6.ip().to_bits() >> 64 == COOKIE_PREFIX.into())
    );
    // The socket may migrate before the connecting task is notified, so the order of both times is arbitrary.
    assert!(report.seconds.migrated.is_some(), "{report}");
    let log = testbed.edge_switch.log();
    assert!(
        log.to_cookie > log.tunnelled[0] && log.to_vip == 0,
        "{:?}",
        log.tunnelled
    );
    assert_eq!(testbed.metric("late_bound_clients_total"), 1);
    wait_for("every datagram to be counted", || {
        testbed.metric("tunnel_received_total") == testbed.edge_switch.log().tunnelled[0] as u64
    });
    // The next connection does not use the tunnel.
    let report = get(&testbed, "object");
    assert!(report.is_success(), "{report}");
    assert_eq!(
        (report.connected, report.cached),
        (Some(unicast), Some(unicast))
    );
    assert_eq!(testbed.edge_switch.log().tunnelled, log.tunnelled);
}

#[test]
fn unmodified_clients_bind_late() {
    for client in [Client::Ngtcp2, Client::Aioquic] {
        if !privileged() || !client.is_installed() {
            continue;
        }
        let testbed = Testbed::replica("unmodified", &[("object", &object())]);
        assert!(client.get(&testbed, &host(SERVICE.into()), "object", &[]).0 == object());
        assert_eq!(testbed.metric("late_bound_clients_total"), 1);
        let log = testbed.edge_switch.log();
        assert!(log.to_cookie > log.tunnelled[0], "{:?}", log.tunnelled);
    }
}

/// Request `/handed/object` from the server at `address` on a connection with two paths, until `is_done` returns true, or
/// `count` times. The client does not follow the preferred address.
fn request(testbed: &Testbed, address: Ipv6Addr, count: usize, is_done: impl Fn() -> bool + Sync) {
    let stay = Options {
        follow: false,
        migrate_early: false,
        paths: 2,
        ..options()
    };
    let requests = async {
        let target = Target::new(&format!("https://[{address}]:{PORT}/handed/object")).await?;
        let session = Http3::new(&stay, None)?.connect(&target).await;
        let session = session?;
        for _ in 0..count {
            let response = session.get(&target.uri).await;
            let mut response = response?;
            let mut body = Vec::new();
            while let Ok(Some(part)) = response.chunk().await {
                body.extend_from_slice(&part);
            }
            assert!(body == object());
            if is_done() {
                break;
            }
        }
        session.close().await;
        Ok(())
    };
    testbed.client.run(|| block_on(requests)).unwrap();
}

#[test]
fn requests_in_tunnel_of_another_address_than_the_vip_are_not_delegated() {
    if !privileged() {
        return;
    }
    let testbed = Testbed::replica_with_real_server("handed", &[], None);
    let real_server = RealServer::start(&testbed, object());
    request(&testbed, SERVICE, 20, || false);
    assert_eq!(
        (
            real_server.grants(),
            testbed.metric("handoff_local_total{reason=\"unavailable\"}")
        ),
        (0, 20),
        "real servers are not tunnel endpoints"
    );
    // At the VIP, requests are delegated once the server knows that the client's second path uses the VIP.
    request(&testbed, edge_switch::VIP, 1000, || {
        real_server.grants() > 0
    });
    assert!(real_server.grants() > 0);
}

#[test]
fn requests_in_tunnel_of_the_vip_are_delegated() {
    if !privileged() {
        return;
    }
    let testbed = Testbed::replica_with_real_server("handed-in-tunnel", &[], Some(SERVICE));
    let real_server = RealServer::start(&testbed, object());
    request(&testbed, SERVICE, 1, || false);
    let unavailable = testbed.metric("handoff_local_total{reason=\"unavailable\"}");
    assert_eq!((real_server.grants(), unavailable), (1, 0));
    let vip = frontage_quic::socket::join_address(SERVER_PREFIX, 0);
    assert_eq!(
        real_server.addresses(),
        [vip],
        "packets answer the VIP, so the switch shows the service address"
    );
}

/// A minimal dispatcher that records the requests of replicas as `METHOD path` and body.
#[derive(Clone, Default)]
struct Dispatcher(Arc<Mutex<Vec<(String, Value)>>>);

impl Dispatcher {
    fn start(testbed: &Testbed) -> Self {
        let dispatcher = Self::default();
        let listener = testbed
            .server
            .run(|| TcpListener::bind(("127.0.0.1", HEARTBEATS)).unwrap());
        let recorder = dispatcher.clone();
        thread::spawn(move || {
            listener
                .incoming()
                .for_each(|stream| recorder.respond(stream.unwrap()))
        });
        dispatcher
    }

    fn respond(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        let (mut head, mut length) = (String::new(), 0);
        let mut line = String::new();
        while reader.read_line(&mut line).unwrap() > 2 {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            head = if head.is_empty() { line.clone() } else { head };
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let request = head.strip_suffix(" HTTP/1.1\r\n").unwrap().to_owned();
        let body = serde_json::from_slice(&body).unwrap_or_default();
        self.0.lock().unwrap().push((request, body));
        let response = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
        reader.into_inner().write_all(response).unwrap();
    }

    fn requests(&self) -> Vec<(String, Value)> {
        self.0.lock().unwrap().clone()
    }

    /// Wait for the first request whose body satisfies `condition`, and return the body.
    fn wait(&self, what: &str, condition: impl Fn(&Value) -> bool) -> Value {
        let find = || {
            self.requests()
                .into_iter()
                .find(|(_, body)| condition(body))
        };
        wait_for(what, || find().is_some());
        find().unwrap().1
    }
}

#[test]
fn dispatchers_get_heartbeats() {
    if !privileged() {
        return;
    }
    let testbed = Testbed::replica("heart", &[("object", &object())]);
    wait_for("a missed heartbeat", || {
        testbed.metric("missed_heartbeats_total") > 0
    });
    let dispatcher = Dispatcher::start(&testbed);
    let first = dispatcher.wait("a heartbeat", |_| true);
    let expected = serde_json::json!({
        "services": ["frontage.test"], "address": gateway::REPLICA.to_string(), "load": 0.0, "weight": 1,
        "accepting": true, "ttl": 3, "rtts": [],
    });
    assert_eq!(
        (dispatcher.requests()[0].0.as_str(), &first),
        (format!("PUT /replicas/{SID}").as_str(), &expected)
    );
    // The client enters at another site, so the replica measures its RTT only after migration.
    assert!(get(&testbed, "object").is_success());
    let heartbeat = dispatcher.wait("an RTT", |body| body["rtts"][0].is_object());
    let rtt = &heartbeat["rtts"][0];
    assert_eq!(
        (&rtt["prefix"], &rtt["count"]),
        (&"2001:db8:a::/48".into(), &1.into())
    );
    assert!(rtt["rtt_us"].as_u64().unwrap() > 0);
    testbed.signal(libc::SIGTERM);
    wait_for("deregistration", || {
        dispatcher.requests().last().unwrap().0 == format!("DELETE /replicas/{SID}")
    });
}

/// Run an origin that sends half of a response, and the rest when it is signalled.
fn slow_origin(testbed: &Testbed, listening: &mpsc::Sender<()>, end: &mpsc::Receiver<()>) {
    let listener = testbed
        .server
        .run(|| TcpListener::bind("127.0.0.1:8080").unwrap());
    listening.send(()).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
        .unwrap();
    let _ = end.recv();
    stream.write_all(b"cd").unwrap();
}

#[test]
fn overloaded_replica_refuses_cached_clients() {
    if !privileged() {
        return;
    }
    let testbed = Testbed::replica("overload", &[("object", &object())]);
    let dispatcher = Dispatcher::start(&testbed);
    let unicast = get(&testbed, "object").preferred.unwrap();
    let refused = |what: &str| {
        let attempt = async || {
            let url = Url::new("https://frontage.test/object")?;
            let client = client::Client::new(&options(), None)?;
            Ok(client.connect(&url.at(unicast)).await.err())
        };
        let error = testbed
            .client
            .run(|| block_on(attempt()))
            .unwrap()
            .expect(what);
        assert!(error.to_string().contains("refused"), "{what}: {error}");
    };
    let ((listening, is_listening), (end, ended)) = (mpsc::channel(), mpsc::channel());
    thread::scope(|scope| {
        // If this scope panics, the sender is dropped, which ends the origin.
        let (origin_testbed, end) = (&testbed, end);
        scope.spawn(move || slow_origin(origin_testbed, &listening, &ended));
        is_listening.recv().unwrap();
        let slow = scope.spawn(|| get(&testbed, "origin"));
        wait_for("an active flow", || testbed.metric("active_flows") == 1);
        dispatcher.wait("a heartbeat of an overloaded replica", |body| {
            body["accepting"] == false && body["load"] == 1.0
        });
        let report = get(&testbed, "object");
        assert!(report.is_success(), "{report}");
        assert_eq!(
            (report.cached, report.connected),
            (Some(unicast), service())
        );
        assert!(
            report.invalidated.as_ref().unwrap().contains("refused"),
            "{report}"
        );
        assert_eq!(testbed.metric("refused_total"), 1);
        // A draining replica also refuses cached clients.
        testbed.signal(libc::SIGTERM);
        wait_for("deregistration", || {
            dispatcher
                .requests()
                .last()
                .unwrap()
                .0
                .starts_with("DELETE")
        });
        refused("a draining server refuses connections");
        end.send(()).unwrap();
        assert!(slow.join().unwrap().is_success());
    });
    wait_for("the server to stop", || !testbed.is_up());
}

#[test]
fn invalid_tunnel_datagrams_are_dropped_and_counted() {
    if !privileged() {
        return;
    }
    let testbed = Testbed::replica("tunnel", &[("object", &object())]);
    let client = SocketAddr::new(CLIENT.into(), 5000);
    let tunnelled = |port| {
        let flow = Flow {
            source: client,
            destination: (SERVICE, port).into(),
        };
        gateway::datagram(flow, &[0xc0; 1200])
    };
    let dropped =
        |reason: &str| testbed.metric(&format!("tunnel_dropped_total{{reason=\"{reason}\"}}"));
    let send = |peer, content: &[u8], reason: &str| {
        let before = dropped(reason);
        gateway::send(&mut &testbed.interfaces[1], peer, content);
        wait_for(reason, || dropped(reason) == before + 1);
    };
    let valid = tunnelled(PORT);
    let unknown_peer = Ipv6Addr::from_bits(GATEWAY.to_bits() + 1);
    send(unknown_peer, &valid, "unknown_peer");
    send(GATEWAY, &tunnelled(PORT + 1), "no_socket");
    send(GATEWAY, &[], Error::TunnelShort.name());
    send(GATEWAY, &valid[..100], Error::InnerShort.name());
    let changed = |at: usize, to: u8| {
        let mut content = valid.clone();
        content[at] = to;
        content
    };
    send(GATEWAY, &changed(0, 0), Error::VniAbsent.name());
    send(GATEWAY, &changed(4, 1), Error::Origin.name());
    send(
        GATEWAY,
        &changed(valid.len() - 1, 1),
        Error::UdpChecksum.name(),
    );
    assert_eq!(testbed.metric("tunnel_received_total"), 0);
    // noq drops a datagram that is not QUIC, and the replica continues.
    gateway::send(&mut &testbed.interfaces[1], GATEWAY, &valid);
    wait_for("the datagram", || {
        testbed.metric("tunnel_received_total") == 1
    });
    assert!(get(&testbed, "object").is_success());
}
