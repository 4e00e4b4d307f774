// SPDX-License-Identifier: Apache-2.0
//! A socket on a bad network: it loses datagrams in both directions and reorders those that it receives.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use frontage_quic::layer::{Layer, Layered, SendLayer};
use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, UdpSender};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

/// How bad the network is.
#[derive(Clone, Copy, Debug)]
pub struct Impairment {
    /// Percentage of datagrams lost, in each direction.
    pub loss: u32,
    /// Percentage of received datagrams that the next one overtakes.
    pub reordering: u32,
    /// Seed of the generator that chooses the datagrams.
    pub seed: u64,
}

/// Return `socket` with an `impairment`.
pub fn impaired(
    socket: Box<dyn AsyncUdpSocket>,
    impairment: Impairment,
) -> Box<dyn AsyncUdpSocket> {
    let layer = LossyLayer {
        impairment,
        random: SmallRng::seed_from_u64(impairment.seed),
    };
    Box::new(Layered::new(socket, layer))
}

/// Return `socket`, which now loses `loss` per cent of its datagrams in each direction.
pub fn lossy(socket: Box<dyn AsyncUdpSocket>, loss: u32, seed: u64) -> Box<dyn AsyncUdpSocket> {
    let impairment = Impairment {
        loss,
        reordering: 0,
        seed,
    };
    impaired(socket, impairment)
}

#[derive(Debug)]
struct LossyLayer {
    impairment: Impairment,
    random: SmallRng,
}

impl Layer for LossyLayer {
    type Sender = LossySender;

    fn sender(&self) -> LossySender {
        LossySender {
            loss: self.impairment.loss,
            random: SmallRng::seed_from_u64(self.impairment.seed),
            kept: Vec::new(),
            is_retry: false,
        }
    }

    fn on_received(&mut self, meta: &mut RecvMeta, datagrams: &mut [u8]) {
        meta.len = self.impair(datagrams, meta.stride.max(1));
    }
}

impl LossyLayer {
    /// Lose and reorder datagrams of `batch`, all but the last of which have `stride` bytes. Return how many bytes
    /// are left.
    fn impair(&mut self, batch: &mut [u8], stride: usize) -> usize {
        let Impairment {
            loss, reordering, ..
        } = self.impairment;
        let mut chance = |percentage| self.random.random_range(0..100) < percentage;
        let (mut left, mut from) = (0, 0);
        while from < batch.len() {
            let to = batch.len().min(from + stride);
            if !chance(loss) {
                batch.copy_within(from..to, left);
                let full = to - from == stride;
                if full && left >= stride && chance(reordering) {
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
struct LossySender {
    loss: u32,
    random: SmallRng,
    /// The segments of the current batch that are not lost.
    kept: Vec<u8>,
    /// True if the socket below was busy, so that the same batch comes again.
    is_retry: bool,
}

impl SendLayer for LossySender {
    fn poll_send(
        &mut self,
        below: Pin<&mut dyn UdpSender>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let size = transmit.segment_size.unwrap_or(transmit.contents.len());
        if !std::mem::replace(&mut self.is_retry, true) {
            self.kept.clear();
            for segment in transmit.contents.chunks(size) {
                if self.random.random_range(0..100) >= self.loss {
                    self.kept.extend(segment);
                }
            }
        }
        if !self.kept.is_empty() {
            let transmit = Transmit {
                contents: &self.kept,
                segment_size: Some(size).filter(|size| *size < self.kept.len()),
                ..transmit.clone()
            };
            ready!(below.poll_send(&transmit, cx))?;
        }
        self.is_retry = false;
        Poll::Ready(Ok(()))
    }
}
