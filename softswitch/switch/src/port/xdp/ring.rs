// SPDX-License-Identifier: Apache-2.0
//! Rings that the kernel and a socket share: one side produces entries, the other one consumes them.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context;

/// A ring with a power of two of entries. Positions count entries, modulo 2^32.
struct Ring<T> {
    memory: NonNull<u8>,
    len: usize,
    offsets: libc::xdp_ring_offset,
    mask: u32,
    /// The position of this side.
    next: u32,
    entries: NonNull<T>,
}

// SAFETY: only this value and the kernel use the memory.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    fn map(
        socket: impl AsFd,
        offset: libc::off_t,
        offsets: libc::xdp_ring_offset,
        size: u32,
    ) -> anyhow::Result<Self> {
        let len = offsets.desc as usize + size as usize * size_of::<T>();
        // SAFETY: a new mapping at an address that the kernel chooses.
        let memory = unsafe {
            libc::mmap(
                ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                socket.as_fd().as_raw_fd(),
                offset,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error()).context("mapping a ring");
        }
        let memory: NonNull<u8> = NonNull::new(memory.cast()).context("mapping a ring")?;
        // SAFETY: within the mapping.
        let entries = unsafe { memory.add(offsets.desc as usize) }.cast();
        Ok(Self {
            memory,
            len,
            offsets,
            mask: size - 1,
            next: 0,
            entries,
        })
    }

    fn word(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: an aligned word of the mapping, which lives as long as `self`.
        unsafe { AtomicU32::from_ptr(self.memory.add(offset as usize).as_ptr().cast()) }
    }

    fn producer(&self) -> &AtomicU32 {
        self.word(self.offsets.producer)
    }

    fn consumer(&self) -> &AtomicU32 {
        self.word(self.offsets.consumer)
    }

    fn entry(&self) -> *mut T {
        // SAFETY: within the mapping.
        unsafe { self.entries.as_ptr().add((self.next & self.mask) as usize) }
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping from `map`, without remaining references.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.len) };
    }
}

/// The producing side of a ring.
pub struct Producer<T>(Ring<T>);

impl<T: Copy> Producer<T> {
    /// Maps a ring of a socket at the offset of its kind.
    ///
    /// # Errors
    /// The system's.
    pub fn map(
        socket: impl AsFd,
        offset: libc::off_t,
        offsets: libc::xdp_ring_offset,
        size: u32,
    ) -> anyhow::Result<Self> {
        Ring::map(socket, offset, offsets, size).map(Self)
    }

    /// Returns the number of entries that the kernel has not consumed yet.
    pub fn pending(&self) -> u32 {
        let consumed = self.0.consumer().load(Ordering::Acquire);
        self.0.next.wrapping_sub(consumed)
    }

    /// Adds an entry, which the kernel sees after [`publish`](Self::publish); returns false if the ring is full.
    pub fn put(&mut self, entry: T) -> bool {
        if self.pending() > self.0.mask {
            return false;
        }
        // SAFETY: the kernel does not access this entry until it is published.
        unsafe { self.0.entry().write(entry) };
        self.0.next = self.0.next.wrapping_add(1);
        true
    }

    /// Passes the new entries to the kernel.
    pub fn publish(&self) {
        self.0.producer().store(self.0.next, Ordering::Release);
    }

    /// Returns true if the kernel waits for a system call.
    pub fn needs_wakeup(&self) -> bool {
        let flags = self.0.word(self.0.offsets.flags).load(Ordering::Relaxed);
        flags & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// The consuming side of a ring.
pub struct Consumer<T>(Ring<T>);

impl<T: Copy> Consumer<T> {
    /// Maps a ring of a socket at the offset of its kind.
    ///
    /// # Errors
    /// The system's.
    pub fn map(
        socket: impl AsFd,
        offset: libc::off_t,
        offsets: libc::xdp_ring_offset,
        size: u32,
    ) -> anyhow::Result<Self> {
        Ring::map(socket, offset, offsets, size).map(Self)
    }

    /// Returns the number of entries that the kernel has produced and this side has not taken.
    pub fn waiting(&self) -> u32 {
        let produced = self.0.producer().load(Ordering::Acquire);
        produced.wrapping_sub(self.0.next)
    }

    /// Takes the next entry, which the kernel can overwrite after [`release`](Self::release).
    pub fn take(&mut self) -> Option<T> {
        if self.waiting() == 0 {
            return None;
        }
        // SAFETY: the kernel has produced this entry.
        let entry = unsafe { self.0.entry().read() };
        self.0.next = self.0.next.wrapping_add(1);
        Some(entry)
    }

    /// Returns the taken entries to the kernel.
    pub fn release(&self) {
        self.0.consumer().store(self.0.next, Ordering::Release);
    }
}
