// SPDX-License-Identifier: Apache-2.0
//! The memory for the frames of a socket ("UMEM"), in chunks of one size.

use std::io;
use std::ptr::{self, NonNull};

use anyhow::Context;

/// Size of a chunk in bytes, each of which contains at most one frame.
pub const CHUNK: usize = 2048;
/// Bytes that the kernel leaves free before a received frame (`XDP_PACKET_HEADROOM`).
pub const HEADROOM: usize = 256;

/// Memory that the kernel and a socket share. A chunk belongs either to the kernel or to one of the port's sides.
#[derive(Debug)]
pub struct Memory {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the owners of chunks do not overlap, see `bytes`.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Allocates so many chunks.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn new(chunks: u32) -> anyhow::Result<Self> {
        let len = chunks as usize * CHUNK;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error()).context("memory for frames");
        }
        let start = NonNull::new(start.cast()).context("memory for frames")?;
        Ok(Self { start, len })
    }

    /// Returns the address of the memory, for the kernel.
    pub fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// Returns the size of the memory in bytes.
    pub fn len(&self) -> u64 {
        self.len as u64
    }

    /// Returns bytes at an offset; `None` if they are not in the memory.
    ///
    /// # Safety
    /// The caller must own the chunk: it has come out of a ring, or has never been put into one, and the previous slice of
    /// it is not used any more.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn bytes(&self, offset: u64, len: usize) -> Option<&mut [u8]> {
        let offset = usize::try_from(offset).ok()?;
        if offset.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: within the mapping, and without other references, since the caller owns the chunk.
        Some(unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(offset), len) })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping from `new`, without remaining references.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
