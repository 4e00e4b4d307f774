// SPDX-License-Identifier: Apache-2.0
//! Sends frames through the first queue of an interface.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use libc::xdp_desc;

use super::Shared;
use super::socket::{Socket, TxRings};
use crate::port::frame_limit::FrameLimit;
use crate::port::{Flushed, Transmit};

/// The sending side of a network interface.
pub struct XdpTransmitter {
    shared: Arc<Shared>,
    socket: Arc<Socket>,
    rings: TxRings,
    is_zero_copy: bool,
    /// Lengths of the frames that the kernel has not taken yet, in order.
    waiting: VecDeque<u32>,
    limit: FrameLimit,
    flushed: Flushed,
}

impl XdpTransmitter {
    pub(super) fn new(
        shared: Arc<Shared>,
        socket: Arc<Socket>,
        rings: TxRings,
        mtu: usize,
    ) -> Self {
        Self {
            is_zero_copy: socket.is_zero_copy(),
            shared,
            socket,
            rings,
            waiting: VecDeque::new(),
            limit: FrameLimit::new(mtu),
            flushed: Flushed::default(),
        }
    }

    /// Puts a frame into the ring; returns false if the ring is full.
    fn put(&mut self, frame: &[u8]) -> bool {
        if self.rings.free.is_empty() {
            self.reclaim();
        }
        let Some(addr) = self.rings.free.pop() else {
            return false;
        };
        // SAFETY: free chunks belong to this side.
        let chunk = unsafe { self.socket.memory.bytes(addr, frame.len()) };
        chunk
            .expect("a chunk is longer than a frame")
            .copy_from_slice(frame);
        let len = frame.len() as u32;
        // The ring has room for all chunks of this side.
        self.rings.to_send.put(xdp_desc {
            addr,
            len,
            options: 0,
        });
        self.waiting.push_back(len);
        true
    }

    /// Takes the chunks of sent frames back.
    fn reclaim(&mut self) {
        let TxRings { complete, free, .. } = &mut self.rings;
        free.extend(std::iter::from_fn(|| complete.take()));
        complete.release();
    }

    /// Counts the frames that the kernel has taken, and returns true if there are any.
    fn count(&mut self) -> bool {
        let taken = self.waiting.len() - self.rings.to_send.pending() as usize;
        let lengths = self.waiting.drain(..taken);
        self.flushed.sent_bytes += lengths.map(u64::from).sum::<u64>();
        self.flushed.sent += taken as u64;
        taken > 0
    }

    /// Sends the frames in the ring, or keeps them if the interface does not take them.
    fn kick(&mut self) {
        self.rings.to_send.publish();
        while !self.waiting.is_empty() {
            let result = match self.rings.to_send.needs_wakeup() {
                true => self.socket.kick(),
                false => Ok(()),
            };
            let has_progress = self.count();
            // The driver sends on its own.
            if self.is_zero_copy && result.is_ok() {
                break;
            }
            match result {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Ok(()) if has_progress => {}
                Err(e) if has_progress && is_full(&e) => {}
                Err(e) if !is_full(&e) => {
                    self.flushed.failure = Some(self.shared.interface.classify(e));
                    return;
                }
                Ok(()) | Err(_) => {
                    self.flushed.held = true;
                    return;
                }
            }
        }
    }
}

/// Returns true if the interface's queue, or the socket's share of it, is full.
fn is_full(error: &io::Error) -> bool {
    let full = [libc::EAGAIN, libc::EBUSY, libc::ENOBUFS];
    error
        .raw_os_error()
        .is_some_and(|code| full.contains(&code))
}

impl Transmit for XdpTransmitter {
    fn send(&mut self, frame: &[u8]) {
        if !self.limit.accepts(frame) {
            self.flushed.too_long += 1;
        } else if !self.put(frame) {
            self.kick();
            if !self.put(frame) {
                self.flushed.busy += 1;
            }
        }
    }

    fn flush(&mut self) -> Flushed {
        self.flushed.held = false;
        self.kick();
        let Shared {
            packet_socket,
            interface,
            ..
        } = &*self.shared;
        self.limit.end_batch(packet_socket, interface);
        std::mem::take(&mut self.flushed)
    }
}
