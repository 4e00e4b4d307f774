// SPDX-License-Identifier: Apache-2.0
//! Layers over noq's sockets: code that sees, changes or drops what a socket receives and sends.
//!
//! noq sends and receives through two traits, [`AsyncUdpSocket`] and [`UdpSender`]. A [`Layer`] overrides only what
//! it changes; [`Layered`] forwards the rest to the socket below, segment limits included.

use std::fmt::Debug;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, UdpSender};
use parking_lot::Mutex;

/// The receiving half of a layer, and the source of its sending halves.
pub trait Layer: Debug + Send + Sync + 'static {
    /// The sending half. noq makes one for each connection.
    type Sender: SendLayer;

    /// Return a new sending half.
    fn sender(&self) -> Self::Sender;

    /// Called for every batch of datagrams received. `datagrams` has `meta.len` bytes, in datagrams of `meta.stride`
    /// bytes each, the last of which may be shorter. A layer that drops some sets `meta.len`.
    fn on_received(&mut self, meta: &mut RecvMeta, datagrams: &mut [u8]) {
        let _ = (meta, datagrams);
    }

    /// Receive from the socket `below`. Layers with another source of datagrams override this.
    ///
    /// # Errors
    /// If the socket below fails.
    fn poll_recv(
        &mut self,
        below: &mut dyn AsyncUdpSocket,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let received = ready!(below.poll_recv(cx, buffers, meta))?;
        for (meta, buffer) in meta.iter_mut().zip(buffers).take(received) {
            let length = meta.len;
            self.on_received(meta, &mut buffer[..length]);
        }
        Poll::Ready(Ok(received))
    }
}

/// The sending half of a layer.
pub trait SendLayer: Debug + Send + Sync + Unpin + 'static {
    /// Send `transmit`, or what this layer makes of it, through the socket `below`.
    ///
    /// # Errors
    /// If the socket below fails.
    fn poll_send(
        &mut self,
        below: Pin<&mut dyn UdpSender>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>>;
}

/// The sending half of a layer that changes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct PassThrough;

impl SendLayer for PassThrough {
    fn poll_send(
        &mut self,
        below: Pin<&mut dyn UdpSender>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        below.poll_send(transmit, cx)
    }
}

/// A socket with a [`Layer`] over it.
#[derive(Debug)]
pub struct Layered<L> {
    below: Box<dyn AsyncUdpSocket>,
    layer: L,
}

impl<L: Layer> Layered<L> {
    /// Put `layer` over the socket `below`.
    pub fn new(below: Box<dyn AsyncUdpSocket>, layer: L) -> Self {
        Self { below, layer }
    }

    /// The layer.
    pub fn layer(&self) -> &L {
        &self.layer
    }
}

impl<L: Layer> AsyncUdpSocket for Layered<L> {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(LayeredSender {
            below: self.below.create_sender(),
            layer: self.layer.sender(),
        })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.layer.poll_recv(&mut *self.below, cx, buffers, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.below.local_addr()
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.below.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.below.may_fragment()
    }
}

#[derive(Debug)]
struct LayeredSender<S> {
    below: Pin<Box<dyn UdpSender>>,
    layer: S,
}

impl<S: SendLayer> UdpSender for LayeredSender<S> {
    fn poll_send(
        mut self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        this.layer.poll_send(this.below.as_mut(), transmit, cx)
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.below.max_transmit_segments()
    }
}

/// A socket that several owners share, for example two endpoints of which one receives and both send.
#[derive(Clone, Debug)]
pub struct SharedSocket(Arc<Mutex<Box<dyn AsyncUdpSocket>>>);

impl SharedSocket {
    /// Share `socket`.
    pub fn new(socket: Box<dyn AsyncUdpSocket>) -> Self {
        Self(Arc::new(Mutex::new(socket)))
    }
}

impl AsyncUdpSocket for SharedSocket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        self.0.lock().create_sender()
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.0.lock().poll_recv(cx, buffers, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.lock().local_addr()
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.0.lock().max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.0.lock().may_fragment()
    }
}

/// A socket that receives nothing and drops what it is to send: the bottom of tests and benchmarks.
#[derive(Clone, Copy, Debug)]
pub struct NullSocket {
    /// The address that the socket claims to be bound to.
    pub address: SocketAddr,
    /// Most datagrams that one transmit may have.
    pub max_transmit_segments: NonZeroUsize,
}

impl NullSocket {
    /// A socket at `address` that takes one datagram at a time.
    pub const fn new(address: SocketAddr) -> Self {
        Self {
            address,
            max_transmit_segments: NonZeroUsize::MIN,
        }
    }
}

impl AsyncUdpSocket for NullSocket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(*self)
    }

    fn poll_recv(
        &mut self,
        _: &mut Context<'_>,
        _: &mut [IoSliceMut<'_>],
        _: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        Poll::Pending
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

impl UdpSender for NullSocket {
    fn poll_send(
        self: Pin<&mut Self>,
        _: &Transmit<'_>,
        _: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.max_transmit_segments
    }
}
