// SPDX-License-Identifier: Apache-2.0
//! First flights of installed third-party clients, captured live.

use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::{Said, read, said};
use test_requirements::require;

const TEST_TIMEOUT: Duration = Duration::from_secs(60);
const PYTHON: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../build/quic-clients/bin/python"
);

/// A client process, which is killed when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Run the client `program`, with the port in the place of `{}`. Return the content of its first flight and the
/// number of datagrams, or `None` if the program is not installed.
fn first_flight(program: &str, fix: &str, arguments: &[&str]) -> Option<(Said, usize)> {
    if !require(Path::new(program).exists(), program, fix) {
        return None;
    }
    let socket = UdpSocket::bind("[::]:0").unwrap();
    socket.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let port = socket.local_addr().unwrap().port().to_string();
    let arguments = arguments
        .iter()
        .map(|argument| argument.replace("{}", &port));
    let client = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _running = Running(client.unwrap());
    let (mut flight, mut buffer) = (Vec::new(), [0; 65_536]);
    loop {
        let n = socket
            .recv(&mut buffer)
            .expect("the client sends a datagram");
        flight.push(buffer[..n].to_vec());
        if let Some(said) = read(&flight).unwrap() {
            return Some((said, flight.len()));
        }
    }
}

/// Debian's GnuTLS build ignores `--sni`, so the server name is the host's. It does not know the final number of
/// version 2.
#[test]
fn first_flight_of_ngtcp2_is_read() {
    let arguments = ["--quiet", "localhost", "{}", "https://films.example/"];
    let read = first_flight(
        "/usr/bin/gtlsclient",
        "apt install ngtcp2-client",
        &arguments,
    );
    if let Some(((name, alpn, _), datagrams)) = read {
        assert_eq!(name.as_deref(), Some(&b"localhost"[..]));
        assert_eq!((alpn[0].as_slice(), datagrams), (&b"h3"[..], 1));
    }
}

#[test]
fn first_flights_of_aioquic_in_both_versions_are_read() {
    const CLIENT: &str = "
import asyncio, sys
from aioquic.asyncio import connect
from aioquic.quic.configuration import QuicConfiguration
async def main(port, version):
    here = QuicConfiguration(alpn_protocols=['h3'], server_name='films.example', original_version=version, supported_versions=[version])
    async with connect('127.0.0.1', port, configuration=here):
        pass
asyncio.run(main(int(sys.argv[1]), int(sys.argv[2], 16)))
";
    for version in ["1", "6b3343cf"] {
        let read = first_flight(
            PYTHON,
            "make build/stamps/quic-clients",
            &["-c", CLIENT, "{}", version],
        );
        if let Some(read) = read {
            assert_eq!(read, (said("films.example", &["h3"]), 1));
        }
    }
}

/// curl that impersonates Chromium sends a post-quantum key share, which needs two packets.
#[test]
fn first_flight_of_curl_with_a_post_quantum_key_share_is_read() {
    const CLIENT: &str = "
import sys
from curl_cffi import requests
from curl_cffi.const import CurlOpt
options = {CurlOpt.RESOLVE: ['films.example:' + sys.argv[1] + ':127.0.0.1'], CurlOpt.SSL_EC_CURVES: b'X25519MLKEM768'}
requests.get('https://films.example:' + sys.argv[1] + '/', http_version='v3only', verify=False, curl_options=options)
";
    if let Some(((name, alpn, _), _)) = first_flight(
        PYTHON,
        "make build/stamps/quic-clients",
        &["-c", CLIENT, "{}"],
    ) {
        assert_eq!(name.as_deref(), Some(&b"films.example"[..]));
        assert!(alpn.contains(&b"h3".to_vec()));
    }
}
