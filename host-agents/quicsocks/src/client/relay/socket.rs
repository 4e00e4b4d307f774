//! The sockets that noq gets.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, UdpSender};
use tokio::sync::mpsc;

use super::{CID, Relay};
use crate::socks::{self, Destination};
use crate::udp;

/// A socket towards one server, through the proxy. It releases the proxy's flow when it is dropped.
#[derive(Debug)]
pub struct Socket {
    relay: Arc<Relay>,
    destination: Destination,
    header: Vec<u8>,
    /// The client's connection id, once a packet shows it.
    cid: Arc<OnceLock<[u8; CID]>>,
    receiver: mpsc::Receiver<Bytes>,
    server: SocketAddr,
}

impl Socket {
    pub(super) fn new(
        relay: Arc<Relay>,
        destination: Destination,
        receiver: mpsc::Receiver<Bytes>,
        server: SocketAddr,
    ) -> Self {
        Self {
            relay,
            header: socks::header(&destination),
            destination,
            cid: Arc::default(),
            receiver,
            server,
        }
    }

    /// What noq is to take for the server's address.
    pub const fn server(&self) -> SocketAddr {
        self.server
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let mut routes = self.relay.routes();
        routes.of.remove(&self.destination);
        if let Some(cid) = self.cid.get() {
            routes.by_cid.remove(cid);
        }
        drop(routes);
        // If it is lost, the flow ends a little later, as one that idles.
        let _ = udp::send(&self.relay.socket, &self.header);
    }
}

impl AsyncUdpSocket for Socket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(Sender {
            relay: self.relay.clone(),
            header: self.header.clone(),
            destination: self.destination.clone(),
            cid: self.cid.clone(),
            wire: Vec::new(),
        })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let Some(datagram) = ready!(self.receiver.poll_recv(cx)) else {
            // The association is over. QUIC's own timer says so if nothing else does.
            return Poll::Pending;
        };
        let length = datagram.len().min(bufs[0].len());
        bufs[0][..length].copy_from_slice(&datagram[..length]);
        meta[0] = RecvMeta::default();
        meta[0].addr = self.server;
        (meta[0].len, meta[0].stride) = (length, length);
        Poll::Ready(Ok(1))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.relay.socket.local_addr()
    }

    /// One comes at a time, but noq's buffers are made for the endpoint's first socket, and must take what the direct path's hands over: of what
    /// does not fit, all but the first datagram would be lost.
    fn max_receive_segments(&self) -> NonZeroUsize {
        udp::MOST_SEGMENTS
    }

    fn may_fragment(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct Sender {
    relay: Arc<Relay>,
    header: Vec<u8>,
    destination: Destination,
    cid: Arc<OnceLock<[u8; CID]>>,
    wire: Vec<u8>,
}

impl Sender {
    /// Has what is for this connection find it.
    fn learn(&self, packet: &[u8]) {
        let Some(cid) = src_cid(packet) else { return };
        let mut routes = self.relay.routes();
        if let Some(queue) = routes
            .of
            .get(&self.destination)
            .map(|route| route.queue.clone())
        {
            routes.by_cid.insert(*self.cid.get_or_init(|| *cid), queue);
        }
    }
}

impl UdpSender for Sender {
    fn poll_send(
        mut self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        _: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.cid.get().is_none() {
            this.learn(transmit.contents);
        }
        this.wire.clone_from(&this.header);
        this.wire.extend(transmit.contents);
        // Connections share the socket: what does not fit is lost, as on the way.
        let _ = udp::send(&this.relay.socket, &this.wire);
        Poll::Ready(Ok(()))
    }
}

/// The Source Connection ID of a packet of noq's with a long header.
fn src_cid(packet: &[u8]) -> Option<&[u8; CID]> {
    if packet.first()? & 0x80 == 0 {
        return None;
    }
    let length = usize::from(*packet.get(5)?);
    packet.get(7 + length..)?.first_chunk()
}
