//! What a client sends, without our client library.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};

use crate::lab::NAME;

/// An association.
pub struct Raw {
    _control: TcpStream,
    pub socket: UdpSocket,
    pub bound: SocketAddr,
}

impl Raw {
    pub async fn new(proxy: SocketAddr) -> Self {
        let mut control = TcpStream::connect(proxy).await.unwrap();
        let request = [5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0];
        control.write_all(&request).await.unwrap();
        let mut answer = [0; 24];
        control.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer[..6], [5, 0, 5, 0, 0, 4]);
        let port = u16::from_be_bytes([answer[22], answer[23]]);
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

/// The first Initial of a connection, as noq makes it.
pub async fn initial() -> Vec<u8> {
    let sink = UdpSocket::bind("[::1]:0").await.unwrap();
    let server = crate::lab::server(false);
    let endpoint = noq::Endpoint::client("[::1]:0".parse().unwrap()).unwrap();
    let to = sink.local_addr().unwrap();
    let _connecting = endpoint.connect_with(server.config, to, NAME).unwrap();
    let mut wire = vec![0; 1500];
    let n = sink.recv(&mut wire).await.unwrap();
    wire.truncate(n);
    wire
}
