// SPDX-License-Identifier: Apache-2.0
//! Ports, which receive and send frames.

pub mod capture;
pub mod dump;
mod ethtool;
pub mod files;
mod frame_limit;
mod ifreq;
mod interface;
mod link_state;
mod loopback;
mod observed;
mod offload;
mod receiver;
mod ring;
mod socket;
mod syscall;
mod transmitter;
pub mod xdp;

use std::io;
use std::os::fd::BorrowedFd;

#[cfg(target_arch = "x86_64")]
const CACHE_LINE: usize = 64;

pub use interface::{Ends, Sockets, open};
pub use link_state::LinkStates;
pub use loopback::loopback;
pub use receiver::Receiver;
pub use transmitter::Transmitter;

/// Prefetches these bytes, which the kernel has often written on another core.
pub fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(CACHE_LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: it is a hint without visible effects.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

/// The receiving side of a port, which works in batches. It belongs to one thread.
///
/// The calls do not block. The data plane counts, not the implementations.
pub trait Receive: Send {
    /// Becomes readable when frames wait, or when the port has failed.
    fn poll_fd(&self) -> BorrowedFd<'_>;

    /// Returns true if frames wait, and prepares a batch.
    fn fill(&mut self) -> bool;

    /// Passes the frames of the batch to a function, in order, and frees their slots.
    fn frames(&mut self, each: &mut dyn FnMut(&[u8]));

    /// Returns the port's failure since the last call, if any.
    fn failure(&mut self) -> Option<PortError>;

    /// Returns the number of frames that were dropped before reception since the last call, because they were not taken in
    /// time.
    fn drops(&mut self) -> u64;
}

/// The sending side of a port, which works in batches. Threads take turns.
///
/// The calls do not block. Implementations count only from one [`flush`](Self::flush) to the next.
pub trait Transmit: Send {
    /// Copies a frame, to send it in the next [`flush`](Self::flush) at the latest.
    fn send(&mut self, frame: &[u8]);

    /// Sends the remaining frames, also those that were held, and returns the fate of all frames since the last flush.
    fn flush(&mut self) -> Flushed;
}

/// The fate of the frames between two flushes.
#[derive(Debug, Default)]
pub struct Flushed {
    /// Frames sent.
    pub sent: u64,
    /// Bytes of the sent frames.
    pub sent_bytes: u64,
    /// Frames dropped because they exceed the interface's MTU.
    pub too_long: u64,
    /// Frames dropped because the interface did not accept them.
    pub busy: u64,
    /// Frames dropped because the interface is down or gone.
    pub down: u64,
    /// The interface does not accept more frames at the moment; the transmitter keeps those that are left.
    pub held: bool,
    /// The failure of the interface, if it is down or gone.
    pub failure: Option<PortError>,
}

/// Why a port does not work.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// The interface is down; it may come up again.
    #[error("the interface is down")]
    Down,
    /// The interface no longer exists.
    #[error("the interface is gone")]
    Gone,
    /// Something else.
    #[error(transparent)]
    Io(#[from] io::Error),
}
