// SPDX-License-Identifier: Apache-2.0
//! `AF_XDP` sockets: creation, rings, binding.

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Context;
use libc::{xdp_desc, xdp_mmap_offsets, xdp_statistics};

use super::memory::{CHUNK, Memory};
use super::ring::{Consumer, Producer};
use crate::port::socket::Interface;
use crate::port::syscall::{self, check};

/// Number of frames that the kernel can hold for a queue before it drops some.
const RX_FRAMES: u32 = 4096;
/// Number of frames that wait to be sent.
const TX_FRAMES: u32 = 2048;
/// How long the kernel may take to release a queue after its last socket was closed.
const RELEASE_TIME: Duration = Duration::from_secs(5);
/// Time between two attempts to bind to a queue.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// A socket that is bound to a queue of an interface.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    pub memory: Memory,
}

/// The rings of the receiving side.
pub struct RxRings {
    pub received: Consumer<xdp_desc>,
    /// Chunks for frames to receive.
    pub fill: Producer<u64>,
}

/// The rings of the sending side.
pub struct TxRings {
    pub to_send: Producer<xdp_desc>,
    /// Chunks of frames that were sent.
    pub complete: Consumer<u64>,
    /// Chunks without a frame.
    pub free: Vec<u64>,
}

/// A new socket and its rings.
pub struct Opened {
    pub socket: Socket,
    pub rx: RxRings,
    pub tx: TxRings,
}

impl Socket {
    /// Opens a socket for a queue.
    ///
    /// # Errors
    /// The system's.
    pub fn open(interface: &Interface, queue: u32) -> anyhow::Result<Opened> {
        let socket = Self {
            fd: new_socket().context("opening an AF_XDP socket")?,
            memory: Memory::new(RX_FRAMES + TX_FRAMES)?,
        };
        socket.register_memory().context("XDP_UMEM_REG")?;
        for (option, size) in [
            (libc::XDP_UMEM_FILL_RING, RX_FRAMES),
            (libc::XDP_UMEM_COMPLETION_RING, TX_FRAMES),
            (libc::XDP_RX_RING, RX_FRAMES),
            (libc::XDP_TX_RING, TX_FRAMES),
        ] {
            socket
                .set_option(option, &size)
                .context("a ring of an AF_XDP socket")?;
        }
        let (rx, tx) = socket.map_rings()?;
        socket
            .bind_when_released(interface, queue)
            .with_context(|| format!("binding an AF_XDP socket to queue {queue}"))?;
        Ok(Opened { socket, rx, tx })
    }

    fn register_memory(&self) -> io::Result<()> {
        // SAFETY: all zeros are a valid `xdp_umem_reg`.
        let mut request: libc::xdp_umem_reg = unsafe { zeroed() };
        request.addr = self.memory.address();
        request.len = self.memory.len();
        request.chunk_size = CHUNK as u32;
        self.set_option(libc::XDP_UMEM_REG, &request)
    }

    fn map_rings(&self) -> anyhow::Result<(RxRings, TxRings)> {
        // SAFETY: all zeros are a valid `xdp_mmap_offsets`.
        let none: xdp_mmap_offsets = unsafe { zeroed() };
        let offsets = self
            .option(libc::XDP_MMAP_OFFSETS, none)
            .context("XDP_MMAP_OFFSETS")?;
        let fill_at = libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t;
        let complete_at = libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t;
        let mut fill = Producer::map(self, fill_at, offsets.fr, RX_FRAMES)?;
        let chunks = |numbers: std::ops::Range<u32>| numbers.map(|n| u64::from(n) * CHUNK as u64);
        chunks(0..RX_FRAMES).for_each(|chunk| {
            fill.put(chunk);
        });
        fill.publish();
        let rx = RxRings {
            received: Consumer::map(self, libc::XDP_PGOFF_RX_RING, offsets.rx, RX_FRAMES)?,
            fill,
        };
        let tx = TxRings {
            to_send: Producer::map(self, libc::XDP_PGOFF_TX_RING, offsets.tx, TX_FRAMES)?,
            complete: Consumer::map(self, complete_at, offsets.cr, TX_FRAMES)?,
            free: chunks(RX_FRAMES..RX_FRAMES + TX_FRAMES).collect(),
        };
        Ok((rx, tx))
    }

    /// Binds to a queue, also if a socket of it was closed just now: the kernel releases queues in the background.
    fn bind_when_released(&self, interface: &Interface, queue: u32) -> io::Result<()> {
        let deadline = Instant::now() + RELEASE_TIME;
        loop {
            match self.bind(interface, queue) {
                Err(error) if is_busy(&error) && Instant::now() < deadline => sleep(RETRY_INTERVAL),
                result => return result,
            }
        }
    }

    /// Binds to a queue. The kernel chooses zero-copy where the driver supports it.
    fn bind(&self, interface: &Interface, queue: u32) -> io::Result<()> {
        // SAFETY: all zeros are a valid `sockaddr_xdp`.
        let mut address: libc::sockaddr_xdp = unsafe { zeroed() };
        address.sxdp_family = libc::AF_XDP as u16;
        address.sxdp_flags = libc::XDP_USE_NEED_WAKEUP;
        address.sxdp_ifindex = interface.index().cast_unsigned();
        address.sxdp_queue_id = queue;
        syscall::bind(&self.fd, &address)
    }

    /// Returns true if the driver uses the socket's memory.
    pub fn is_zero_copy(&self) -> bool {
        let options = self.option(libc::XDP_OPTIONS, 0u32);
        options.is_ok_and(|flags| flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
    }

    /// Returns the number of frames so far for which the receiving rings had no room.
    pub fn drops(&self) -> u64 {
        // SAFETY: all zeros are a valid `xdp_statistics`.
        let none: xdp_statistics = unsafe { zeroed() };
        let statistics = self.option(libc::XDP_STATISTICS, none).unwrap_or(none);
        statistics.rx_dropped + statistics.rx_ring_full
    }

    /// Returns the error that the kernel has reported since the last call.
    pub fn take_error(&self) -> Option<io::Error> {
        syscall::take_error(&self.fd)
    }

    /// Lets the kernel fetch the chunks in the fill ring.
    pub fn wake_receiving(&self) {
        // SAFETY: no buffer. The result is about frames, of which none is expected.
        unsafe {
            libc::recvfrom(
                self.fd.as_raw_fd(),
                ptr::null_mut(),
                0,
                libc::MSG_DONTWAIT,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
    }

    /// Lets the kernel send frames.
    ///
    /// # Errors
    /// The system's; frames may have been sent nevertheless.
    pub fn kick(&self) -> io::Result<()> {
        // SAFETY: no buffer.
        check(unsafe {
            libc::sendto(
                self.fd.as_raw_fd(),
                ptr::null::<c_void>(),
                0,
                libc::MSG_DONTWAIT,
                ptr::null(),
                0,
            )
        })
        .map(drop)
    }

    fn set_option<T>(&self, option: c_int, value: &T) -> io::Result<()> {
        syscall::set_option(&self.fd, libc::SOL_XDP, option, value)
    }

    fn option<T: Copy>(&self, option: c_int, value: T) -> io::Result<T> {
        syscall::option(&self.fd, libc::SOL_XDP, option, value)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn is_busy(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EBUSY)
}

fn new_socket() -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    check(fd as isize)?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
