// SPDX-License-Identifier: Apache-2.0
//! The direct path to a server: the probe that tests it, and the socket that uses it.
//!
//! Before the handshake is confirmed, a client must not migrate (RFC 9000, section 9). A packet of an unknown version
//! belongs to no connection, and a server answers it with Version Negotiation (RFC 9000, section 6). So this probe may run
//! during the handshake: it shows that the path works in both directions, measures its round-trip time, and creates the
//! state in NATs on the path.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use frontage_quic::layer::{Layer, Layered, SendLayer};
use noq::udp::{RecvMeta, Transmit};
use noq::{Runtime as _, TokioRuntime, UdpSender};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::{MigrationError, probe, udp};

/// Time to wait for an answer to each probe.
const PROBE_TIMEOUTS: [Duration; 4] = [
    Duration::from_millis(300),
    Duration::from_millis(600),
    Duration::from_millis(1200),
    Duration::from_millis(2400),
];

/// A direct path that was probed successfully.
#[derive(Debug)]
pub(super) struct DirectPath {
    socket: std::net::UdpSocket,
    pub(super) server: SocketAddr,
    pub(super) rtt: Duration,
}

/// Probes the direct path to `server`.
pub(super) async fn probe(server: SocketAddr) -> Result<DirectPath, MigrationError> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = udp::bind(any).map_err(MigrationError::Io)?;
    for probe_timeout in PROBE_TIMEOUTS {
        let ids: probe::Ids = rand::random();
        let sent = Instant::now();
        // Ignore errors: an ICMP error may be temporary, and the next probe will show.
        let _ = socket.send_to(&probe::encode(&ids), server).await;
        let answered = async {
            let mut answer = [0; 512];
            loop {
                let received = socket.recv_from(&mut answer).await;
                if received
                    .is_ok_and(|(n, from)| from == server && probe::is_answer(&answer[..n], &ids))
                {
                    return;
                }
            }
        };
        if timeout(probe_timeout, answered).await.is_ok() {
            let rtt = sent.elapsed();
            let socket = socket.into_std().map_err(MigrationError::Io)?;
            return Ok(DirectPath {
                socket,
                server,
                rtt,
            });
        }
    }
    Err(MigrationError::ServerUnreachable)
}

impl DirectPath {
    /// Converts the path into a socket for noq, which addresses the server as `placeholder`.
    ///
    /// The socket notifies `answered` when it receives the first datagram from the server.
    pub(super) fn into_socket(
        self,
        placeholder: SocketAddr,
        answered: oneshot::Sender<()>,
    ) -> io::Result<Layered<DirectLayer>> {
        let layer = DirectLayer {
            server: self.server,
            placeholder,
            answered: Some(answered),
        };
        let socket = TokioRuntime.wrap_udp_socket(self.socket)?;
        Ok(Layered::new(socket, layer))
    }
}

/// Translates between the server's address on the direct path and the placeholder that noq knows.
#[derive(Debug)]
pub(super) struct DirectLayer {
    server: SocketAddr,
    placeholder: SocketAddr,
    answered: Option<oneshot::Sender<()>>,
}

impl Layer for DirectLayer {
    type Sender = ToServer;

    fn sender(&self) -> ToServer {
        ToServer(self.server)
    }

    fn on_received(&mut self, meta: &mut RecvMeta, _: &mut [u8]) {
        // noq's path has no local address, as it had none through the proxy.
        meta.dst_ip = None;
        if meta.addr == self.server {
            meta.addr = self.placeholder;
            if let Some(answered) = self.answered.take() {
                // The receiver may be gone: migrate() was cancelled.
                let _ = answered.send(());
            }
        }
    }
}

/// Sends every datagram to the server.
#[derive(Debug)]
pub(super) struct ToServer(SocketAddr);

impl SendLayer for ToServer {
    fn poll_send(
        &mut self,
        below: Pin<&mut dyn UdpSender>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let transmit = Transmit {
            destination: self.0,
            ..transmit.clone()
        };
        below.poll_send(&transmit, cx)
    }
}
