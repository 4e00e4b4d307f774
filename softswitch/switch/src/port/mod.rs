//! Ports: where frames come from and go to.

pub mod capture;
mod loopback;
mod offload;
mod receiver;
mod ring;
mod socket;
mod transmitter;

use std::io;
use std::os::fd::BorrowedFd;

#[cfg(target_arch = "x86_64")]
const CACHE_LINE: usize = 64;

pub use loopback::loopback;
pub use receiver::Receiver;
pub use transmitter::Transmitter;

/// Asks the processor to have these bytes ready soon. The kernel has often written them on another core.
pub fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(CACHE_LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: it is a hint, which no program sees the effects of.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

/// Where frames enter, in batches. One thread has it.
///
/// All calls return at once. Implementations count nothing; the data plane does.
pub trait Receive: Send {
    /// Becomes readable when frames wait, or when the port has failed.
    fn poll_fd(&self) -> BorrowedFd<'_>;

    /// Finds out whether frames wait, and gets ready to show a batch of them.
    fn fill(&mut self) -> bool;

    /// Shows the frames of the batch, in order, and gives their room back.
    fn frames(&mut self, each: &mut dyn FnMut(&[u8]));

    /// Why the port does not work, if it has failed since the last call.
    fn failure(&mut self) -> Option<PortError>;

    /// Frames dropped on their way in since the last call because nobody took them in time.
    fn drops(&mut self) -> u64;
}

/// Where frames leave, in batches. Threads take turns.
///
/// All calls return at once. Implementations count for one [`flush`](Self::flush) only.
pub trait Transmit: Send {
    /// Takes a copy of a frame, to be sent by the next [`flush`](Self::flush) at the latest.
    fn send(&mut self, frame: &[u8]);

    /// Sends what is left, and says what became of all frames since the last flush.
    fn flush(&mut self) -> Flushed;
}

/// What became of the frames between two flushes.
#[derive(Debug, Default)]
pub struct Flushed {
    /// Frames sent.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Frames dropped since they are longer than the interface's MTU allows.
    pub too_long: u64,
    /// Frames dropped since the interface did not take them.
    pub busy: u64,
    /// Frames dropped since the interface is down or gone.
    pub down: u64,
    /// Why, if any were.
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
