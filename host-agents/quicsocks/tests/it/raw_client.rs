// SPDX-License-Identifier: Apache-2.0
//! A client that sends arbitrary bytes, without our client library.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};

use crate::testbed::NAME;

/// A client with an association.
pub struct RawClient {
    _control: TcpStream,
    pub socket: UdpSocket,
    pub bound: SocketAddr,
}

impl RawClient {
    pub async fn new(proxy: SocketAddr) -> Self {
        let mut control = TcpStream::connect(proxy).await.unwrap();
        let request = [5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0];
        control.write_all(&request).await.unwrap();
        let mut reply = [0; 24];
        control.read_exact(&mut reply).await.unwrap();
        assert_eq!(reply[..6], [5, 0, 5, 0, 0, 4]);
        let port = u16::from_be_bytes([reply[22], reply[23]]);
        let bound = (std::net::Ipv6Addr::LOCALHOST, port).into();
        let socket = UdpSocket::bind("[::1]:0").await.unwrap();
        Self {
            _control: control,
            socket,
            bound,
        }
    }

    pub async fn send(&self, head: &[u8], payload: &[u8]) {
        let wire = [head, payload].concat();
        self.socket.send_to(&wire, self.bound).await.unwrap();
    }
}

/// Captures the first Initial of a connection of noq.
pub async fn capture_initial() -> Vec<u8> {
    let sink = UdpSocket::bind("[::1]:0").await.unwrap();
    let server = crate::testbed::start_server(false);
    let endpoint = noq::Endpoint::client("[::1]:0".parse().unwrap()).unwrap();
    let to = sink.local_addr().unwrap();
    let _connecting = endpoint.connect_with(server.config, to, NAME).unwrap();
    let mut wire = vec![0; 1500];
    let n = sink.recv(&mut wire).await.unwrap();
    wire.truncate(n);
    wire
}
