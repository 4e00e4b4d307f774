// SPDX-License-Identifier: Apache-2.0
//! Sends frames to a network interface through an `AF_PACKET` socket with a ring.

use std::io;

use anyhow::Context;

use super::frame_limit::FrameLimit;
use super::ring::TxRing;
use super::socket::{Interface, PacketSocket};
use super::{Flushed, PortError, Transmit};

/// Number of slots for waiting frames; when they are full, the frames are sent at once.
const SLOTS: usize = 512;

/// The sending side of a network interface.
///
/// Frames that are too long for the ring, or perhaps for the interface, bypass the ring, so that the kernel reports an
/// error for each.
pub struct Transmitter {
    past_ring: PacketSocket,
    interface: Interface,
    ring: TxRing,
    limit: FrameLimit,
    flushed: Flushed,
}

impl Transmitter {
    /// Attaches to an interface of this network namespace.
    ///
    /// # Errors
    /// If the interface or the permission is missing.
    pub fn open(name: &str) -> anyhow::Result<Self> {
        let interface = Interface::find(name)?;
        let past_ring = PacketSocket::open()?;
        let ring = TxRing::new(PacketSocket::open()?, SLOTS)?;
        for socket in [&past_ring, ring.socket()] {
            socket
                .bind(&interface, false)
                .with_context(|| format!("binding to interface '{name}'"))?;
        }
        Ok(Self {
            limit: FrameLimit::new(past_ring.mtu(&interface)?),
            past_ring,
            interface,
            ring,
            flushed: Flushed::default(),
        })
    }

    fn fits_ring(&self, frame: &[u8]) -> bool {
        frame.len() <= TxRing::LONGEST && self.limit.accepts(frame)
    }

    /// Sends the frames in the ring, or keeps them if the interface's queue is full, as that of a traffic shaper may be.
    fn kick(&mut self) {
        loop {
            let kicked = self.ring.kick();
            self.flushed.sent += kicked.frames;
            self.flushed.sent_bytes += kicked.bytes;
            let Some(error) = kicked.refused else { return };
            if error.kind() == io::ErrorKind::Interrupted {
                continue;
            }
            match self.interface.classify(error) {
                PortError::Io(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if kicked.frames == 0 {
                        self.flushed.held = true;
                        return;
                    }
                }
                PortError::Io(_) => {
                    self.ring.skip();
                    self.flushed.busy += 1;
                }
                failure => {
                    self.flushed.down += self.ring.take_back();
                    self.flushed.failure = Some(failure);
                    return;
                }
            }
        }
    }

    fn send_past_ring(&mut self, frame: &[u8]) {
        loop {
            match self.past_ring.send(frame) {
                Ok(()) => {
                    self.flushed.sent += 1;
                    self.flushed.sent_bytes += frame.len() as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) if e.raw_os_error() == Some(libc::EMSGSIZE) => self.flushed.too_long += 1,
                Err(e) => match self.interface.classify(e) {
                    PortError::Io(_) => self.flushed.busy += 1,
                    failure => {
                        self.flushed.down += 1;
                        self.flushed.failure = Some(failure);
                    }
                },
            }
            return;
        }
    }
}

impl Transmit for Transmitter {
    fn send(&mut self, frame: &[u8]) {
        if !self.fits_ring(frame) {
            // The ring first, to keep the order.
            self.kick();
            if self.flushed.held {
                self.flushed.busy += 1;
            } else {
                self.send_past_ring(frame);
            }
        } else if !self.ring.put(frame) {
            self.kick();
            if !self.ring.put(frame) {
                self.flushed.busy += 1;
            }
        }
    }

    fn flush(&mut self) -> Flushed {
        self.flushed.held = false;
        self.kick();
        self.limit.end_batch(&self.past_ring, &self.interface);
        std::mem::take(&mut self.flushed)
    }
}
