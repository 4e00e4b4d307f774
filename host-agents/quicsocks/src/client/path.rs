//! The direct path to a server: whether it works, and the socket over it.
//!
//! Before its handshake is confirmed a client may send nothing of the connection by another path (RFC 9000, section 9). A packet of a version that
//! no server knows is of no connection; a server answers it with the versions that it has (RFC 9000, section 6), so it shows that the path works
//! in both directions, how long it is, and has NATs on the way learn of it, while the handshake is still under way.

use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use frontage_first_flight::MIN_DATAGRAM;
use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, Runtime as _, TokioRuntime, UdpSender};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::Stay;
use crate::udp;

/// A version that is reserved for this (RFC 9000, section 15: 0x?a?a?a?a).
const NO_VERSION: u32 = 0x1a2a_3a4a;
/// How long to wait for an answer, before each next question.
const PATIENCE: [Duration; 4] = [
    Duration::from_millis(300),
    Duration::from_millis(600),
    Duration::from_millis(1200),
    Duration::from_millis(2400),
];

/// A path that works.
#[derive(Debug)]
pub(super) struct Direct {
    socket: std::net::UdpSocket,
    pub(super) server: SocketAddr,
    pub(super) rtt: Duration,
}

/// Asks `server` whether it hears this client.
pub(super) async fn probe(server: SocketAddr) -> Result<Direct, Stay> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = udp::bind(any).map_err(Stay::Io)?;
    for patience in PATIENCE {
        let ids: [u8; 16] = rand::random();
        let sent = Instant::now();
        // A failure may be of the network's moment (ICMP): the next question shows it.
        let _ = socket.send_to(&question(&ids), server).await;
        let heard = async {
            let mut answer = [0; 512];
            loop {
                let received = socket.recv_from(&mut answer).await;
                if received.is_ok_and(|(n, from)| from == server && answers(&answer[..n], &ids)) {
                    return;
                }
            }
        };
        if timeout(patience, heard).await.is_ok() {
            let rtt = sent.elapsed();
            let socket = socket.into_std().map_err(Stay::Io)?;
            return Ok(Direct {
                socket,
                server,
                rtt,
            });
        }
    }
    Err(Stay::NoAnswer)
}

/// A packet of no version, from the connection id in the latter half of `ids` to that in the former.
fn question(ids: &[u8; 16]) -> Vec<u8> {
    let mut packet = vec![0xc0];
    packet.extend(NO_VERSION.to_be_bytes());
    for id in ids.chunks(8) {
        packet.push(8);
        packet.extend(id);
    }
    packet.resize(MIN_DATAGRAM, 0);
    packet
}

/// Whether this is a Version Negotiation packet to that question (RFC 9000, section 17.2.1).
fn answers(packet: &[u8], ids: &[u8; 16]) -> bool {
    let mut expected = vec![0, 0, 0, 0, 8];
    expected.extend(&ids[8..]);
    expected.push(8);
    expected.extend(&ids[..8]);
    packet.first().is_some_and(|first| first & 0x80 != 0) && packet[1..].starts_with(&expected)
}

impl Direct {
    /// The socket for noq, to which the server is at `known`; it says when it has heard of the server.
    pub(super) fn socket(
        self,
        known: SocketAddr,
        heard: oneshot::Sender<()>,
    ) -> io::Result<Socket> {
        Ok(Socket {
            inner: TokioRuntime.wrap_udp_socket(self.socket)?,
            server: self.server,
            known,
            heard: Some(heard),
        })
    }
}

/// A socket towards the server on the direct path.
#[derive(Debug)]
pub(super) struct Socket {
    inner: Box<dyn AsyncUdpSocket>,
    server: SocketAddr,
    known: SocketAddr,
    heard: Option<oneshot::Sender<()>>,
}

impl AsyncUdpSocket for Socket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(Sender {
            inner: self.inner.create_sender(),
            server: self.server,
        })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let n = ready!(self.inner.poll_recv(cx, bufs, meta))?;
        for meta in &mut meta[..n] {
            // As through the proxy: noq's path has no local address.
            meta.dst_ip = None;
            if meta.addr == self.server {
                meta.addr = self.known;
                if let Some(heard) = self.heard.take() {
                    // Nobody may wait for it.
                    let _ = heard.send(());
                }
            }
        }
        Poll::Ready(Ok(n))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

#[derive(Debug)]
struct Sender {
    inner: Pin<Box<dyn UdpSender>>,
    server: SocketAddr,
}

impl UdpSender for Sender {
    fn poll_send(
        mut self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let transmit = Transmit {
            destination: self.server,
            ..transmit.clone()
        };
        self.inner.as_mut().poll_send(&transmit, cx)
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.inner.max_transmit_segments()
    }
}
