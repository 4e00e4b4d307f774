// SPDX-License-Identifier: Apache-2.0
//! Rings of frames in memory that a packet socket shares with the kernel. Receiving needs no system call per frame, and
//! sending needs one per batch (`Documentation/networking/packet_mmap.rst`, TPACKET_V2).
//!
//! This is version 2, because version 3 delivers whole blocks, with a delay of a millisecond if a block does not fill.

use std::ffi::c_void;
use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context;
use libc::{TP_STATUS_COPY, TP_STATUS_SEND_REQUEST, TP_STATUS_USER, tpacket2_hdr};

use super::offload::VnetHeader;
use super::socket::PacketSocket;
use super::syscall::check;

/// Size of a slot in bytes. Frames of up to about 1,960 bytes fit. A power of two, so that slots fill pages.
const SLOT: usize = 2048;

/// Size of a block in bytes, which the kernel allocates contiguously.
const BLOCK: usize = 1 << 16;

/// Writable bytes before a received frame: the place of the [`VnetHeader`], which has been read.
pub const ROOM: usize = 4;

/// Offset at which the kernel expects a frame to send: behind the slot's header.
const TX_DATA: usize =
    (size_of::<tpacket2_hdr>() + libc::TPACKET_ALIGNMENT - 1) & !(libc::TPACKET_ALIGNMENT - 1);

const AVAILABLE: u32 = 0;

/// The slots of a ring, and the next slot.
struct Slots {
    memory: NonNull<u8>,
    count: usize,
    next: usize,
}

// SAFETY: only this value and the kernel use the memory.
unsafe impl Send for Slots {}

impl Slots {
    /// Maps a ring; `kind` is `PACKET_RX_RING` or `PACKET_TX_RING`.
    fn map(socket: &PacketSocket, kind: libc::c_int, count: usize) -> anyhow::Result<Self> {
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        socket
            .set_packet_option(libc::PACKET_VERSION, &version)
            .context("TPACKET_V2")?;
        let bytes = count * SLOT;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: (bytes / BLOCK) as u32,
            tp_frame_size: SLOT as u32,
            tp_frame_nr: count as u32,
        };
        socket
            .set_packet_option(kind, &request)
            .with_context(|| format!("a packet ring of {bytes} bytes"))?;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let memory = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                socket.fd().as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error()).context("mapping a packet ring");
        }
        Ok(Self {
            memory: NonNull::new(memory.cast()).context("mapping a packet ring")?,
            count,
            next: 0,
        })
    }

    /// Returns the slot `ahead` of the next one (or behind it, if negative).
    fn at(&self, ahead: isize) -> *mut u8 {
        let slot = (self.next + self.count).wrapping_add_signed(ahead) % self.count;
        // SAFETY: within the mapping.
        unsafe { self.memory.as_ptr().add(slot * SLOT) }
    }

    fn header(&self, ahead: isize) -> *mut tpacket2_hdr {
        self.at(ahead).cast()
    }

    fn status(&self, ahead: isize) -> &AtomicU32 {
        // SAFETY: an aligned word of the mapping, which lives as long as `self`.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.header(ahead)).tp_status) }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // SAFETY: the mapping from `map`, without remaining references.
        unsafe { libc::munmap(self.memory.as_ptr().cast::<c_void>(), self.count * SLOT) };
    }
}

/// A receive ring, which the kernel fills.
pub struct RxRing(Slots);

/// The content of a slot of an [`RxRing`].
pub enum Slot<'a> {
    /// A frame, after [`ROOM`] bytes.
    Frame(VnetHeader, &'a mut [u8]),
    /// The beginning of a frame that is too long for a slot; the socket's buffer contains the whole frame.
    Copied,
    /// The beginning of a frame that was too long for the socket's buffer, too.
    Cut,
}

impl RxRing {
    /// Creates the ring of a socket that is not yet bound. Frames that are too long for a slot go to the
    /// socket's buffer.
    ///
    /// # Errors
    /// The system's.
    pub fn new(socket: &PacketSocket, slots: usize) -> anyhow::Result<Self> {
        socket
            .set_packet_option(libc::PACKET_COPY_THRESH, &1)
            .context("PACKET_COPY_THRESH")?;
        Slots::map(socket, libc::PACKET_RX_RING, slots).map(Self)
    }

    /// Returns whether a frame waits in the slot `ahead` of the next one, and whether the socket's buffer contains it.
    pub fn waiting(&self, ahead: usize) -> Option<bool> {
        if ahead >= self.0.count {
            return None;
        }
        let status = self.0.status(ahead as isize).load(Ordering::Acquire);
        (status & TP_STATUS_USER != 0).then_some(status & TP_STATUS_COPY != 0)
    }

    /// Prefetches the frame after the next one.
    fn prefetch(&self) {
        if self.waiting(1).is_none() {
            return;
        }
        // SAFETY: the kernel has filled the slot and does not change it; the frame lies within it.
        unsafe {
            let (start, len) = extent(&ptr::read(self.0.header(1)));
            super::prefetch(std::slice::from_raw_parts(self.0.at(1).add(start), len));
        }
    }

    /// Passes the next slot, if a frame waits in it, to a function, with the VLAN tag that the kernel removed from the frame;
    /// then returns the slot to the kernel.
    pub fn take(&mut self, show: impl FnOnce(Slot<'_>, Option<[u8; 4]>)) {
        let status = self.0.status(0).load(Ordering::Acquire);
        if status & TP_STATUS_USER == 0 {
            return;
        }
        self.prefetch();
        // SAFETY: the kernel has filled the slot and does not change it until it is returned below.
        // Header and frame lie within the slot.
        let (header, slot) = unsafe {
            let header = ptr::read(self.0.header(0));
            let (start, len) = extent(&header);
            let vnet = self.0.at(0).add(start + ROOM - size_of::<VnetHeader>());
            let vnet: VnetHeader = ptr::read_unaligned(vnet.cast());
            let bytes = std::slice::from_raw_parts_mut(self.0.at(0).add(start), ROOM + len);
            let slot = match (
                status & TP_STATUS_COPY != 0,
                header.tp_snaplen == header.tp_len,
            ) {
                (true, _) => Slot::Copied,
                (false, true) => Slot::Frame(vnet, bytes),
                (false, false) => Slot::Cut,
            };
            (header, slot)
        };
        show(slot, vlan_tag(status, &header));
        self.0.status(0).store(AVAILABLE, Ordering::Release);
        self.0.next = (self.0.next + 1) % self.0.count;
    }
}

/// Returns the offset of a slot's frame, including [`ROOM`] bytes, and the frame's length.
fn extent(header: &tpacket2_hdr) -> (usize, usize) {
    let start = usize::from(header.tp_mac).saturating_sub(ROOM);
    let start = start.min(SLOT - ROOM);
    let len = (header.tp_snaplen as usize).min(SLOT - ROOM - start);
    (start, len)
}

fn vlan_tag(status: u32, header: &tpacket2_hdr) -> Option<[u8; 4]> {
    if status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let tpid = match status & libc::TP_STATUS_VLAN_TPID_VALID {
        0 => 0x8100,
        _ => header.tp_vlan_tpid,
    };
    let [t0, t1] = tpid.to_be_bytes();
    let [c0, c1] = header.tp_vlan_tci.to_be_bytes();
    Some([t0, t1, c0, c1])
}

/// A transmit ring, which the kernel empties.
///
/// Frames are sent in the order in which they are put. Frames that are put and not yet sent are *left*.
pub struct TxRing {
    socket: PacketSocket,
    slots: Slots,
    /// Slots whose frames are left, including skipped ones.
    left: usize,
    /// Number of frames left.
    frames: u64,
    /// Bytes of the frames left.
    bytes: u64,
}

/// The result of [`TxRing::kick`].
#[derive(Debug)]
pub struct Kicked {
    /// Frames sent.
    pub frames: u64,
    /// Bytes of the sent frames.
    pub bytes: u64,
    /// Why frames are left, if any are. If the kernel refused a frame, it is the first one left.
    pub refused: Option<io::Error>,
}

impl TxRing {
    /// Maximum length of a frame in the ring.
    pub const LONGEST: usize = SLOT - TX_DATA - size_of::<VnetHeader>();

    /// Creates the ring of a socket that is not yet bound.
    ///
    /// # Errors
    /// The system's.
    pub fn new(socket: PacketSocket, slots: usize) -> anyhow::Result<Self> {
        // The kernel passes over slots without a frame: see `skip`.
        socket
            .set_packet_option(libc::PACKET_LOSS, &1)
            .context("PACKET_LOSS")?;
        Ok(Self {
            slots: Slots::map(&socket, libc::PACKET_TX_RING, slots)?,
            socket,
            left: 0,
            frames: 0,
            bytes: 0,
        })
    }

    /// Returns the socket.
    pub fn socket(&self) -> &PacketSocket {
        &self.socket
    }

    /// Appends a copy of a frame, with at least an Ethernet header and at most [`LONGEST`](Self::LONGEST) bytes. Returns false
    /// if the ring is full.
    pub fn put(&mut self, frame: &[u8]) -> bool {
        assert!(frame.len() <= Self::LONGEST, "a frame longer than its slot");
        if self.left >= self.slots.count
            || self.slots.status(0).load(Ordering::Acquire) != AVAILABLE
        {
            return false;
        }
        // The kernel copies this many bytes into its own buffer. Bytes beyond would refer to this ring, and the first
        // veth would have to copy them again, at a higher cost.
        let header = VnetHeader {
            header_len: frame.len() as u16,
            ..VnetHeader::default()
        };
        // SAFETY: the slot belongs to the program while it is available, and the frame fits into it.
        unsafe {
            let data = self.slots.at(0).add(TX_DATA);
            ptr::write_unaligned(data.cast(), header);
            let to = data.add(size_of::<VnetHeader>());
            ptr::copy_nonoverlapping(frame.as_ptr(), to, frame.len());
            (*self.slots.header(0)).tp_len = (size_of::<VnetHeader>() + frame.len()) as u32;
        }
        self.slots
            .status(0)
            .store(TP_STATUS_SEND_REQUEST, Ordering::Release);
        self.slots.next = (self.slots.next + 1) % self.slots.count;
        self.left += 1;
        self.frames += 1;
        self.bytes += frame.len() as u64;
        true
    }

    /// Sends the frames left, in one system call.
    pub fn kick(&mut self) -> Kicked {
        let mut kicked = Kicked {
            frames: 0,
            bytes: 0,
            refused: None,
        };
        if self.left == 0 {
            return kicked;
        }
        // SAFETY: an empty message: the kernel sends the ring.
        let result = check(unsafe {
            libc::sendto(
                self.socket.fd().as_raw_fd(),
                ptr::null(),
                0,
                libc::MSG_DONTWAIT,
                ptr::null(),
                0,
            )
        });
        if matches!(result, Ok(bytes) if bytes as u64 == self.bytes) {
            (kicked.frames, kicked.bytes) = (self.frames, self.bytes);
            (self.left, self.frames, self.bytes) = (0, 0, 0);
            return kicked;
        }
        while self.left > 0 {
            let first = -(self.left as isize);
            if self.slots.status(first).load(Ordering::Acquire) == TP_STATUS_SEND_REQUEST {
                let stopped = || io::Error::from(io::ErrorKind::WouldBlock);
                kicked.refused = Some(result.err().unwrap_or_else(stopped));
                break;
            }
            if let Some(bytes) = self.forget(first) {
                kicked.frames += 1;
                kicked.bytes += bytes;
            }
            self.left -= 1;
        }
        kicked
    }

    /// Makes the kernel pass over the first frame left.
    pub fn skip(&mut self) {
        if self.left > 0 {
            let first = -(self.left as isize);
            self.forget(first);
            // SAFETY: the kernel reads the slot only in `kick`.
            unsafe { (*self.slots.header(first)).tp_len = 0 };
        }
    }

    /// Removes the frames left, and returns their number.
    pub fn take_back(&mut self) -> u64 {
        for behind in 1..=self.left as isize {
            self.slots
                .status(-behind)
                .store(AVAILABLE, Ordering::Release);
        }
        let back = self.slots.count - self.left;
        self.slots.next = (self.slots.next + back) % self.slots.count;
        (self.left, self.bytes) = (0, 0);
        std::mem::take(&mut self.frames)
    }

    /// Counts a slot's frame as no longer left; returns its length, if it was not skipped.
    fn forget(&mut self, slot: isize) -> Option<u64> {
        // SAFETY: within the mapping; the kernel does not change the length.
        let len = unsafe { (*self.slots.header(slot)).tp_len } as usize;
        let bytes = len.checked_sub(size_of::<VnetHeader>())? as u64;
        self.frames -= 1;
        self.bytes -= bytes;
        Some(bytes)
    }
}
