//! A network interface by `AF_PACKET` sockets with rings.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use anyhow::Context;

use super::offload::{self, VnetHeader};
use super::ring::{ROOM, RxRing, Slot, TxRing};
use super::socket::{Interface, PacketSocket};
use super::{Flushed, PortError, Receive, Transmit};

/// Most frames of a batch.
const BATCH: usize = 64;

/// Most frames of a batch that were too long for the ring: each may become 45 packets.
const LARGE_BATCH: usize = 8;

/// Longest frame: the largest IP packet (as GSO makes them) with Ethernet header and two VLAN tags.
const MAX_FRAME: usize = 65_535 + 14 + 8;

/// Frames that the kernel may hold for a port before it drops some, ...
const RX_SLOTS: usize = 4096;

/// ... and bytes of those that are too long for a slot.
const RECEIVE_BUFFER: i32 = 8 << 20;

/// Frames that wait to be sent; more are sent at once.
const TX_SLOTS: usize = 512;

const ETHERNET_HEADER: usize = 14;
const VLAN_TAG: usize = 4;

/// How many batches are sent until the interface's MTU is asked for again.
const MTU_ASKED_EVERY: u32 = 1024;

/// A network interface as a port: all its frames, except those that it sends itself.
pub struct AfPacket {
    /// Where its frames enter.
    pub receiver: Receiver,
    /// Where frames leave.
    pub transmitter: Transmitter,
}

impl AfPacket {
    /// Attaches to an interface of this network namespace.
    ///
    /// # Errors
    /// Says what is missing: the interface, or the permission.
    pub fn open(name: &str) -> anyhow::Result<Self> {
        // Not in all versions of the kernel.
        const IGNORE_OUTGOING: &str = "PACKET_IGNORE_OUTGOING (Linux 4.20 or later is needed)";
        let interface = Interface::find(name)?;
        let binding = || format!("binding to interface '{name}'");
        let socket = PacketSocket::open()?;
        socket
            .set_packet_option(libc::PACKET_IGNORE_OUTGOING, &1)
            .context(IGNORE_OUTGOING)?;
        socket
            .set_receive_buffer(RECEIVE_BUFFER)
            .context("SO_RCVBUF")?;
        let ring = RxRing::new(&socket, RX_SLOTS)?;
        socket.bind(&interface, true).with_context(binding)?;
        socket
            .make_promiscuous(&interface)
            .with_context(|| format!("making interface '{name}' promiscuous"))?;
        let past_ring = socket.duplicate()?;

        let tx_ring = TxRing::new(PacketSocket::open()?, TX_SLOTS)?;
        tx_ring
            .socket()
            .bind(&interface, false)
            .with_context(binding)?;
        Ok(Self {
            receiver: Receiver {
                socket,
                interface: interface.clone(),
                ring,
                filled: 0,
                large: Vec::new(),
                large_filled: 0,
                cut: 0,
                finisher: Finisher::default(),
            },
            transmitter: Transmitter {
                longest: ETHERNET_HEADER + past_ring.mtu(&interface)?,
                past_ring,
                interface,
                ring: tx_ring,
                batches: 0,
                flushed: Flushed::default(),
            },
        })
    }
}

/// The receiving half of an [`AfPacket`].
pub struct Receiver {
    socket: PacketSocket,
    interface: Interface,
    ring: RxRing,
    /// Frames of the batch ...
    filled: usize,
    /// ... and those of them that were too long for the ring.
    large: Vec<Large>,
    large_filled: usize,
    /// Frames that did not fit anywhere.
    cut: u64,
    finisher: Finisher,
}

/// A frame that was too long for the ring, behind [`ROOM`] bytes.
struct Large {
    header: VnetHeader,
    bytes: Vec<u8>,
    len: usize,
}

impl Receiver {
    /// Takes the next frame that was too long for the ring out of the socket's buffer.
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
        let error = self
            .socket
            .take_option(libc::SOL_SOCKET, libc::SO_ERROR, 0i32);
        (error != 0).then(|| self.interface.classify(io::Error::from_raw_os_error(error)))
    }

    fn drops(&mut self) -> u64 {
        let none = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        let stats = self
            .socket
            .take_option(libc::SOL_PACKET, libc::PACKET_STATISTICS, none);
        u64::from(stats.tp_drops) + std::mem::take(&mut self.cut)
    }
}

/// Makes frames what they would be on a wire: with checksums, in segments, with their VLAN tag.
#[derive(Default)]
struct Finisher {
    segment: Vec<u8>,
    tagged: Vec<u8>,
}

impl Finisher {
    /// `bytes` is a frame behind [`ROOM`] bytes.
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

/// The sending half of an [`AfPacket`].
///
/// What is too long for the ring, or might be for the interface, goes past the ring, where the kernel says so.
pub struct Transmitter {
    past_ring: PacketSocket,
    interface: Interface,
    ring: TxRing,
    /// The longest frame for the ring, without a VLAN tag.
    longest: usize,
    batches: u32,
    flushed: Flushed,
}

impl Transmitter {
    fn fits(&self, frame: &[u8]) -> bool {
        let is_tagged = frame.get(12..14) == Some(&[0x81, 0x00]);
        let longest = self.longest + if is_tagged { VLAN_TAG } else { 0 };
        (ETHERNET_HEADER..=longest.min(TxRing::LONGEST)).contains(&frame.len())
    }

    /// Sends what is in the ring.
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
                PortError::Io(error)
                    if error.kind() == io::ErrorKind::WouldBlock && kicked.frames > 0 => {}
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
        if !self.fits(frame) {
            // In order.
            self.kick();
            self.send_past_ring(frame);
        } else if !self.ring.put(frame) {
            self.kick();
            if !self.ring.put(frame) {
                self.flushed.busy += 1;
            }
        }
    }

    fn flush(&mut self) -> Flushed {
        self.kick();
        self.batches += 1;
        if self.batches >= MTU_ASKED_EVERY {
            self.batches = 0;
            if let Ok(mtu) = self.past_ring.mtu(&self.interface) {
                self.longest = ETHERNET_HEADER + mtu;
            }
        }
        std::mem::take(&mut self.flushed)
    }
}
