//! A socket on a rough network: some of what it sends and receives is lost, some of what it receives comes in another order.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, UdpSender};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

/// How rough.
#[derive(Clone, Copy, Debug)]
pub struct Roughness {
    /// Datagrams of a hundred, each way.
    pub lost: u32,
    /// Datagrams of a hundred that the next one overtakes.
    pub overtaken: u32,
    /// Which ones.
    pub seed: u64,
}

/// A socket over another.
#[derive(Debug)]
pub struct Rough {
    socket: Box<dyn AsyncUdpSocket>,
    roughness: Roughness,
    random: SmallRng,
}

impl Rough {
    /// Over `socket`.
    pub fn new(socket: Box<dyn AsyncUdpSocket>, roughness: Roughness) -> Self {
        Self {
            socket,
            roughness,
            random: SmallRng::seed_from_u64(roughness.seed),
        }
    }

    /// The same where so many of a hundred datagrams are lost.
    pub fn losing(socket: Box<dyn AsyncUdpSocket>, lost: u32, seed: u64) -> Self {
        let roughness = Roughness {
            lost,
            overtaken: 0,
            seed,
        };
        Self::new(socket, roughness)
    }
}

impl AsyncUdpSocket for Rough {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(Sender {
            inner: self.socket.create_sender(),
            lost: self.roughness.lost,
            random: SmallRng::seed_from_u64(self.roughness.seed),
            left: Vec::new(),
            again: false,
        })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let received = ready!(self.socket.poll_recv(cx, buffers, meta))?;
        for (buffer, meta) in buffers.iter_mut().zip(meta).take(received) {
            meta.len = self.roughen(&mut buffer[..meta.len], meta.stride.max(1));
        }
        Poll::Ready(Ok(received))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.socket.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }
}

impl Rough {
    /// What is left of a batch of datagrams, all but the last of which are `stride` long.
    fn roughen(&mut self, batch: &mut [u8], stride: usize) -> usize {
        let Roughness {
            lost, overtaken, ..
        } = self.roughness;
        let mut chance = |of_hundred| self.random.random_range(0..100) < of_hundred;
        let (mut left, mut from) = (0, 0);
        while from < batch.len() {
            let to = batch.len().min(from + stride);
            if !chance(lost) {
                batch.copy_within(from..to, left);
                let full = to - from == stride;
                if full && left >= stride && chance(overtaken) {
                    batch[left - stride..left + stride].rotate_left(stride);
                }
                left += to - from;
            }
            from = to;
        }
        left
    }
}

#[derive(Debug)]
struct Sender {
    inner: Pin<Box<dyn UdpSender>>,
    lost: u32,
    random: SmallRng,
    left: Vec<u8>,
    /// The same batch as before.
    again: bool,
}

impl UdpSender for Sender {
    fn poll_send(
        mut self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let size = transmit.segment_size.unwrap_or(transmit.contents.len());
        if !std::mem::replace(&mut this.again, true) {
            this.left.clear();
            for segment in transmit.contents.chunks(size) {
                if this.random.random_range(0..100) >= this.lost {
                    this.left.extend(segment);
                }
            }
        }
        if !this.left.is_empty() {
            let transmit = Transmit {
                contents: &this.left,
                segment_size: Some(size).filter(|size| *size < this.left.len()),
                ..transmit.clone()
            };
            ready!(this.inner.as_mut().poll_send(&transmit, cx))?;
        }
        this.again = false;
        Poll::Ready(Ok(()))
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.inner.max_transmit_segments()
    }
}
