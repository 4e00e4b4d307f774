// SPDX-License-Identifier: Apache-2.0
//! A socket that also receives the datagrams of the tunnel, which have a [`LocalAddress`] of their own.

use std::io::{self, IoSliceMut};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use frontage_quic::layer::{Layer, Layered, PassThrough};
use frontage_quic::migration::{LocalAddress, PathTable};
use noq::AsyncUdpSocket;
use noq::udp::RecvMeta;
use tokio::sync::mpsc;

use super::tunnel::{Arrival, Tunnel};

/// Maximum number of queued datagrams: those of a thousand first flights.
const MAX_QUEUED: usize = 2048;

/// Add the tunnel to `sockets`, at most one of each address family, which update `path_table`.
pub fn add_tunnel(
    tunnel: &Arc<Tunnel>,
    path_table: &Arc<PathTable>,
    sockets: Vec<(bool, frontage_quic::socket::Socket)>,
) -> Vec<Socket> {
    let (mut v4, mut v6) = (None, None);
    let socket = |(is_ipv4, inner)| {
        let (sender, inbox) = mpsc::channel(MAX_QUEUED);
        *(if is_ipv4 { &mut v4 } else { &mut v6 }) = Some(sender);
        let layer = TunnelLayer {
            tunnel: tunnel.clone(),
            path_table: path_table.clone(),
            inbox,
            direct_first: false,
        };
        Layered::new(Box::new(inner), layer)
    };
    let sockets = sockets.into_iter().map(socket).collect();
    tokio::spawn(tunnel.clone().receive(v4, v6));
    sockets
}

/// The socket that noq gets.
pub type Socket = Layered<TunnelLayer>;

/// Adds the datagrams of the tunnel to those that a socket receives.
#[derive(Debug)]
pub struct TunnelLayer {
    tunnel: Arc<Tunnel>,
    path_table: Arc<PathTable>,
    inbox: mpsc::Receiver<Arrival>,
    /// Alternates, so that neither source starves.
    direct_first: bool,
}

impl TunnelLayer {
    fn poll_tunnel(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut n = 0;
        while n < bufs.len().min(meta.len())
            && let Poll::Ready(Some(arrival)) = self.inbox.poll_recv(cx)
        {
            let length = arrival.payload.len();
            let Some(buffer) = bufs[n].get_mut(..length) else {
                self.tunnel.counts.queue_full.fetch_add(1, Relaxed);
                continue;
            };
            buffer.copy_from_slice(&arrival.payload);
            let address = LocalAddress::Tunnel(arrival.detour);
            self.path_table
                .on_datagrams(arrival.client, address, &arrival.payload, length);
            let mut received = RecvMeta::default();
            (received.addr, received.ecn) = (arrival.client, arrival.ecn);
            (received.len, received.stride) = (length, length);
            meta[n] = received;
            n += 1;
        }
        if n > 0 {
            Poll::Ready(Ok(n))
        } else {
            Poll::Pending
        }
    }
}

impl Layer for TunnelLayer {
    type Sender = PassThrough;

    fn sender(&self) -> PassThrough {
        PassThrough
    }

    fn poll_recv(
        &mut self,
        below: &mut dyn AsyncUdpSocket,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.direct_first = !self.direct_first;
        for direct in [self.direct_first, !self.direct_first] {
            let polled = if direct {
                below.poll_recv(cx, bufs, meta)
            } else {
                self.poll_tunnel(cx, bufs, meta)
            };
            if polled.is_ready() {
                return polled;
            }
        }
        Poll::Pending
    }
}
