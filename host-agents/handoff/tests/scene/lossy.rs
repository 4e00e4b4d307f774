//! The way from the real server to the client.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, UdpSender};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

/// A socket of the real server's that loses some of what it sends.
#[derive(Debug)]
pub struct Lossy {
    pub socket: Box<dyn AsyncUdpSocket>,
    /// Of a hundred packets.
    pub lost: u32,
    pub seed: u64,
}

impl AsyncUdpSocket for Lossy {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(LossySender {
            inner: self.socket.create_sender(),
            lost: self.lost,
            random: SmallRng::seed_from_u64(self.seed),
            left: Vec::new(),
            again: false,
        })
    }

    fn poll_recv(
        &mut self,
        _: &mut Context<'_>,
        _: &mut [IoSliceMut<'_>],
        _: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        panic!("a real server hears nothing from outside");
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }
}

#[derive(Debug)]
struct LossySender {
    inner: Pin<Box<dyn UdpSender>>,
    lost: u32,
    random: SmallRng,
    left: Vec<u8>,
    again: bool,
}

impl UdpSender for LossySender {
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
