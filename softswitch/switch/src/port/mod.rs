//! Ports: where frames come from and go to.

mod af_packet;
mod capture;
mod offload;

use std::io;
use std::os::fd::BorrowedFd;

pub use af_packet::AfPacket;
pub use capture::Capture;

/// A port that frames enter and leave by, in batches.
///
/// All calls return at once. Implementations count nothing; the data plane does.
pub trait Port: Send {
    /// Becomes readable when frames wait, or when the port has failed.
    fn poll_fd(&self) -> BorrowedFd<'_>;

    /// Takes a batch of waiting frames from the interface; gives how many.
    ///
    /// # Errors
    /// See [`PortError`].
    fn fill(&mut self) -> Result<usize, PortError>;

    /// Shows the frames of the batch, in order.
    fn frames(&mut self, each: &mut dyn FnMut(&[u8]));

    /// Queues a frame to be sent by the next [`flush`](Self::flush).
    fn send(&mut self, frame: Vec<u8>);

    /// Sends what is queued, and says what became of it. Gives the frames' buffers back to `spare`.
    fn flush(&mut self, spare: &mut Vec<Vec<u8>>) -> Flushed;

    /// Frames that the kernel dropped since the last call because nobody took them in time.
    fn kernel_drops(&mut self) -> u64;
}

/// What became of the frames of a [`Port::flush`].
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
