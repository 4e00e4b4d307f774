// SPDX-License-Identifier: Apache-2.0
//! Receives frames from all queues of an interface.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use anyhow::Context;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

use super::Shared;
use super::memory::CHUNK;
use super::socket::{RxRings, Socket};
use crate::port::offload::finish_checksum;
use crate::port::{PortError, Receive};

/// Maximum number of frames of a queue in a batch.
const BATCH: u32 = 64;

/// A receiver of all frames of a network interface.
pub struct XdpReceiver {
    shared: Arc<Shared>,
    queues: Vec<Queue>,
    /// Readable when a socket is.
    epoll: Epoll,
    /// Drops that [`Receive::drops`] has returned.
    drops: u64,
}

struct Queue {
    socket: Arc<Socket>,
    rings: RxRings,
    /// Number of frames in the batch.
    filled: u32,
    /// Senders leave checksums to the network card, which does not exist.
    is_virtual: bool,
}

impl XdpReceiver {
    pub(super) fn new(
        shared: Arc<Shared>,
        sockets: Vec<(Arc<Socket>, RxRings)>,
    ) -> anyhow::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).context("creating an epoll")?;
        for (socket, _) in &sockets {
            epoll.add(socket.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
        }
        let is_virtual = shared.is_virtual;
        let queues = sockets.into_iter().map(|(socket, rings)| Queue {
            socket,
            rings,
            filled: 0,
            is_virtual,
        });
        Ok(Self {
            shared,
            queues: queues.collect(),
            epoll,
            drops: 0,
        })
    }
}

impl Queue {
    fn frames(&mut self, each: &mut dyn FnMut(&[u8])) {
        let RxRings { received, fill } = &mut self.rings;
        for _ in 0..std::mem::take(&mut self.filled) {
            let Some(descriptor) = received.take() else {
                break;
            };
            // SAFETY: the chunk has come out of the ring, and goes to the kernel only after this use.
            let frame = unsafe {
                self.socket
                    .memory
                    .bytes(descriptor.addr, descriptor.len as usize)
            };
            if let Some(frame) = frame {
                if self.is_virtual {
                    finish_checksum(frame);
                }
                each(frame);
            }
            // The ring has room for all chunks of this side.
            fill.put(descriptor.addr & !(CHUNK as u64 - 1));
        }
        received.release();
        fill.publish();
        if fill.needs_wakeup() {
            self.socket.wake_receiving();
        }
    }
}

impl Receive for XdpReceiver {
    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }

    fn fill(&mut self) -> bool {
        for queue in &mut self.queues {
            queue.filled = queue.rings.received.waiting().min(BATCH);
        }
        self.queues.iter().any(|queue| queue.filled > 0)
    }

    fn frames(&mut self, each: &mut dyn FnMut(&[u8])) {
        let filled = self.queues.iter_mut().filter(|queue| queue.filled > 0);
        filled.for_each(|queue| queue.frames(each));
    }

    fn failure(&mut self) -> Option<PortError> {
        let error = self
            .queues
            .iter()
            .find_map(|queue| queue.socket.take_error())?;
        Some(self.shared.interface.classify(error))
    }

    fn drops(&mut self) -> u64 {
        let all: u64 = self.queues.iter().map(|queue| queue.socket.drops()).sum();
        all - std::mem::replace(&mut self.drops, all)
    }
}
