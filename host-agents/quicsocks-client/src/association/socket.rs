// SPDX-License-Identifier: Apache-2.0
//! The socket under a connection that runs through the proxy.

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

use super::{Association, CID_LEN};
use crate::socks::{self, Destination};
use crate::udp;

/// A socket that reaches one server through the proxy. When it is dropped, it releases the proxy's flow.
#[derive(Debug)]
pub struct Socket {
    association: Arc<Association>,
    destination: Destination,
    header: Vec<u8>,
    /// The client's connection id, known once noq has sent its first packet.
    cid: Arc<OnceLock<[u8; CID_LEN]>>,
    receiver: mpsc::Receiver<Bytes>,
    placeholder: SocketAddr,
}

impl Socket {
    pub(super) fn new(
        association: Arc<Association>,
        destination: Destination,
        receiver: mpsc::Receiver<Bytes>,
        placeholder: SocketAddr,
    ) -> Self {
        Self {
            association,
            header: socks::encode_header(&destination),
            destination,
            cid: Arc::default(),
            receiver,
            placeholder,
        }
    }

    /// Placeholder that noq uses as the server's address.
    pub const fn placeholder(&self) -> SocketAddr {
        self.placeholder
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let mut routes = self.association.routes();
        routes.by_destination.remove(&self.destination);
        if let Some(cid) = self.cid.get() {
            routes.by_cid.remove(cid);
        }
        drop(routes);
        // If this release is lost, the flow ends by its idle timeout.
        let _ = udp::send(&self.association.socket, &self.header);
    }
}

impl AsyncUdpSocket for Socket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(Sender {
            association: self.association.clone(),
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
            // The association has ended. QUIC's own timers close the connection.
            return Poll::Pending;
        };
        let length = datagram.len().min(bufs[0].len());
        bufs[0][..length].copy_from_slice(&datagram[..length]);
        meta[0] = RecvMeta::default();
        meta[0].addr = self.placeholder;
        (meta[0].len, meta[0].stride) = (length, length);
        Poll::Ready(Ok(1))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.association.socket.local_addr()
    }

    /// Returns the limit of the direct path's socket, although this socket delivers one datagram at a time.
    ///
    /// noq allocates its buffers for the endpoint's first socket. If they were smaller, they would truncate what the
    /// direct path's socket delivers to the first datagram.
    fn max_receive_segments(&self) -> NonZeroUsize {
        udp::MAX_SEGMENTS
    }

    fn may_fragment(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct Sender {
    association: Arc<Association>,
    header: Vec<u8>,
    destination: Destination,
    cid: Arc<OnceLock<[u8; CID_LEN]>>,
    wire: Vec<u8>,
}

impl Sender {
    /// Routes datagrams for the source connection id of `packet` to this connection.
    fn learn_cid(&self, packet: &[u8]) {
        let Some(cid) = source_cid(packet) else {
            return;
        };
        let mut routes = self.association.routes();
        if let Some(queue) = routes
            .by_destination
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
            this.learn_cid(transmit.contents);
        }
        this.wire.clone_from(&this.header);
        this.wire.extend(transmit.contents);
        // Connections share the socket. A datagram that does not fit into its buffer counts as lost.
        let _ = udp::send(&this.association.socket, &this.wire);
        Poll::Ready(Ok(()))
    }
}

/// Returns the source connection id of a long-header packet that noq sends.
fn source_cid(packet: &[u8]) -> Option<&[u8; CID_LEN]> {
    if packet.first()? & 0x80 == 0 {
        return None;
    }
    let dcid_len = usize::from(*packet.get(5)?);
    packet.get(7 + dcid_len..)?.first_chunk()
}
