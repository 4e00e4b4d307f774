//! The socket that noq gets: what comes out of the tunnel is from the client, at a [`Place`] of its own.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use frontage_quic::places::{Place, Places};
use noq::udp::RecvMeta;
use noq::{AsyncUdpSocket, UdpSender};
use tokio::sync::mpsc;

use super::tunnel::{Arrival, Tunnel};

/// Datagrams that may wait for noq; those of a thousand first flights.
const WAITING: usize = 2048;

/// Puts the tunnel beside `sockets`, at most one of each family, which keep `places`.
pub fn beside(
    tunnel: &Arc<Tunnel>,
    places: &Arc<Places>,
    sockets: Vec<(bool, frontage_quic::socket::Socket)>,
) -> Vec<Socket> {
    let (mut v4, mut v6) = (None, None);
    let socket = |(is_ipv4, inner)| {
        let (sender, inbox) = mpsc::channel(WAITING);
        *(if is_ipv4 { &mut v4 } else { &mut v6 }) = Some(sender);
        Socket {
            inner,
            tunnel: tunnel.clone(),
            places: places.clone(),
            inbox,
            direct_first: false,
        }
    };
    let sockets = sockets.into_iter().map(socket).collect();
    tokio::spawn(tunnel.clone().receive(v4, v6));
    sockets
}

/// The socket that noq gets.
#[derive(Debug)]
pub struct Socket {
    inner: frontage_quic::socket::Socket,
    tunnel: Arc<Tunnel>,
    places: Arc<Places>,
    inbox: mpsc::Receiver<Arrival>,
    /// In turn, so that neither starves the other.
    direct_first: bool,
}

impl Socket {
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
            let Some(place) = bufs[n].get_mut(..length) else {
                self.tunnel.counts.full.fetch_add(1, Relaxed);
                continue;
            };
            place.copy_from_slice(&arrival.payload);
            let by = Place::Detour(arrival.detour);
            self.places
                .came(arrival.client, by, &arrival.payload, length);
            let mut here = RecvMeta::default();
            (here.addr, here.ecn) = (arrival.client, arrival.ecn);
            (here.len, here.stride) = (length, length);
            meta[n] = here;
            n += 1;
        }
        if n > 0 {
            Poll::Ready(Ok(n))
        } else {
            Poll::Pending
        }
    }
}

impl AsyncUdpSocket for Socket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        self.inner.create_sender()
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.direct_first = !self.direct_first;
        for direct in [self.direct_first, !self.direct_first] {
            let polled = if direct {
                self.inner.poll_recv(cx, bufs, meta)
            } else {
                self.poll_tunnel(cx, bufs, meta)
            };
            if polled.is_ready() {
                return polled;
            }
        }
        Poll::Pending
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
