// SPDX-License-Identifier: Apache-2.0
//! Downloads whose first packets are lost.

use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use crate::testbed::{HttpServer, SIZE, lines, object, sha256};

/// Time in which the server sends its first flight. Both sides repeat lost packets later.
const FIRST_FLIGHT: Duration = Duration::from_millis(100);

/// The sender of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    Client,
    Server,
}

/// Forward datagrams between a client of `socket` and the `server`, until none arrives for the read timeout of `socket`. Lose those
/// that the server sends before the end of [`FIRST_FLIGHT`]. Return the sender of the first datagram after that time.
fn forward_all_but_first_flight(socket: &UdpSocket, server: SocketAddr) -> Option<Sender> {
    let (mut buffer, mut client, mut next) = (vec![0; 1 << 16], server, None);
    let mut begin = None;
    while let Ok((length, from)) = socket.recv_from(&mut buffer) {
        let is_first_flight = begin.get_or_insert_with(Instant::now).elapsed() < FIRST_FLIGHT;
        let (sender, to) = if from == server {
            (Sender::Server, client)
        } else {
            client = from;
            (Sender::Client, server)
        };
        if !is_first_flight {
            next = next.or(Some(sender));
        }
        if !is_first_flight || sender == Sender::Client {
            socket.send_to(&buffer[..length], to).unwrap();
        }
    }
    next
}

#[test]
fn server_repeats_lost_first_flight_before_the_client_does() {
    let server = HttpServer::new();
    let address = SocketAddr::new("::1".parse().unwrap(), server.port);
    let relay = UdpSocket::bind("[::1]:0").unwrap();
    relay
        .set_read_timeout(Some(Duration::from_secs(3)))
        .unwrap();
    let url = format!(
        "https://[::1]:{}/{SIZE}",
        relay.local_addr().unwrap().port()
    );
    let forwarding = thread::spawn(move || forward_all_but_first_flight(&relay, address));
    let output = server.run_client(&["get", &url, "--ca", "cert.pem"]);
    assert!(output.status.success());
    assert_eq!(lines(&output)[0]["sha256"], sha256(&object(SIZE)));
    // The client sends its first datagram again after one second (RFC 9002, section 6.2.2).
    assert_eq!(forwarding.join().unwrap(), Some(Sender::Server));
}
