// SPDX-License-Identifier: Apache-2.0
//! Receives frames from a network interface through an `AF_PACKET` socket with a ring.

use std::os::fd::{AsFd, BorrowedFd};

use anyhow::Context;

use super::offload::{self, VnetHeader};
use super::ring::{ROOM, RxRing, Slot};
use super::socket::{Interface, PacketSocket};
use super::{PortError, Receive};

/// Maximum number of frames in a batch.
const BATCH: usize = 64;

/// Maximum number of frames in a batch that were too long for the ring: each may become 45 packets.
const LARGE_BATCH: usize = 8;

/// Maximum frame length: the largest IP packet (as in GSO) with Ethernet header and two VLAN tags.
const MAX_FRAME: usize = 65_535 + 14 + 8;

/// Number of frames that the kernel can hold for a port before it drops some.
const RX_SLOTS: usize = 4096;

/// Size in bytes of the kernel's buffer for frames that are too long for a slot.
const RECEIVE_BUFFER: i32 = 8 << 20;

/// A receiver of all frames of a network interface.
pub struct Receiver {
    socket: PacketSocket,
    interface: Interface,
    ring: RxRing,
    /// Number of frames in the batch.
    filled: usize,
    /// Number of frames in the batch that were too long for the ring.
    large: Vec<Large>,
    large_filled: usize,
    /// Number of frames that fitted neither.
    cut: u64,
    finisher: Finisher,
}

/// A frame that was too long for the ring, after [`ROOM`] bytes.
struct Large {
    header: VnetHeader,
    bytes: Vec<u8>,
    len: usize,
}

impl Receiver {
    /// Attaches to an interface of this network namespace.
    ///
    /// # Errors
    /// If the interface or the permission is missing.
    pub fn open(name: &str) -> anyhow::Result<Self> {
        let interface = Interface::find(name)?;
        let socket = PacketSocket::open()?;
        socket
            .set_packet_option(libc::PACKET_IGNORE_OUTGOING, &1)
            .context("PACKET_IGNORE_OUTGOING: Linux 4.20 or later is required")?;
        socket
            .set_receive_buffer(RECEIVE_BUFFER)
            .context("SO_RCVBUF")?;
        let ring = RxRing::new(&socket, RX_SLOTS)?;
        socket
            .bind(&interface, true)
            .with_context(|| format!("binding to interface '{name}'"))?;
        socket
            .make_promiscuous(&interface)
            .with_context(|| format!("making interface '{name}' promiscuous"))?;
        Ok(Self {
            socket,
            interface,
            ring,
            filled: 0,
            large: Vec::new(),
            large_filled: 0,
            cut: 0,
            finisher: Finisher::default(),
        })
    }

    /// Reads the next frame that was too long for the ring from the socket's buffer.
    fn take_large(&mut self) {
        if self.large_filled == self.large.len() {
            self.large.push(Large {
                header: VnetHeader::default(),
                bytes: vec![0; ROOM + MAX_FRAME],
                len: 0,
            });
        }
        let large = &mut self.large[self.large_filled];
        self.large_filled += 1;
        let read = self
            .socket
            .receive(&mut large.header, &mut large.bytes[ROOM..]);
        large.len = read.unwrap_or(0);
    }
}

impl Receive for Receiver {
    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.socket.fd().as_fd()
    }

    fn fill(&mut self) -> bool {
        while self.filled < BATCH && self.large_filled < LARGE_BATCH {
            match self.ring.waiting(self.filled) {
                None => break,
                Some(true) => self.take_large(),
                Some(false) => {}
            }
            self.filled += 1;
        }
        self.filled > 0
    }

    fn frames(&mut self, each: &mut dyn FnMut(&[u8])) {
        let mut large = self.large[..self.large_filled].iter_mut();
        for _ in 0..self.filled {
            self.ring.take(|slot, tag| match slot {
                Slot::Frame(header, bytes) => self.finisher.show(header, bytes, tag, each),
                Slot::Copied => match large.next() {
                    Some(l) if l.len > 0 => {
                        let bytes = &mut l.bytes[..ROOM + l.len];
                        self.finisher.show(l.header, bytes, tag, each);
                    }
                    _ => self.cut += 1,
                },
                Slot::Cut => self.cut += 1,
            });
        }
        (self.filled, self.large_filled) = (0, 0);
    }

    fn failure(&mut self) -> Option<PortError> {
        let error = self.socket.take_error()?;
        Some(self.interface.classify(error))
    }

    fn drops(&mut self) -> u64 {
        let none = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        let stats = self
            .socket
            .take_packet_option(libc::PACKET_STATISTICS, none);
        u64::from(stats.tp_drops) + std::mem::take(&mut self.cut)
    }
}

/// Converts frames to their form on a wire: with checksums, in segments, with their VLAN tag.
#[derive(Default)]
struct Finisher {
    segment: Vec<u8>,
    tagged: Vec<u8>,
}

impl Finisher {
    /// Converts a frame, which follows [`ROOM`] bytes in `bytes`.
    fn show(
        &mut self,
        header: VnetHeader,
        bytes: &mut [u8],
        tag: Option<[u8; 4]>,
        each: &mut dyn FnMut(&[u8]),
    ) {
        let frame = &mut bytes[ROOM..];
        match tag.filter(|_| frame.len() >= 12) {
            None if header.is_whole() => each(frame),
            None => offload::finish(header, frame, &mut self.segment, each),
            Some(tag) if header.is_whole() => {
                bytes.copy_within(ROOM..ROOM + 12, 0);
                bytes[12..16].copy_from_slice(&tag);
                each(bytes);
            }
            Some(tag) => offload::finish(header, frame, &mut self.segment, &mut |frame| {
                self.tagged.clear();
                self.tagged.extend_from_slice(&frame[..12]);
                self.tagged.extend_from_slice(&tag);
                self.tagged.extend_from_slice(&frame[12..]);
                each(&self.tagged);
            }),
        }
    }
}
