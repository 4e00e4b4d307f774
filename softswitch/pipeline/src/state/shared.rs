// SPDX-License-Identifier: Apache-2.0
//! State that the lanes of a pipeline read while packets run in parallel.

use std::cell::UnsafeCell;
use std::ops::Deref;
use std::sync::Arc;

/// State of a pipeline, which the lanes of the pipeline read.
///
/// The owner can write. Lanes can only read; they change cells with interior mutability, such as those of registers.
#[derive(Debug)]
pub(crate) struct Shared<T> {
    value: Arc<UnsafeCell<T>>,
    is_lane: bool,
}

// SAFETY: a handle gives references to the value, to one thread exclusively or to several threads for reading; see `lane`.
unsafe impl<T: Send + Sync> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T> Shared<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            value: Arc::new(UnsafeCell::new(value)),
            is_lane: false,
        }
    }

    /// Creates the handle of a lane.
    ///
    /// # Safety
    ///
    /// As long as a handle of a lane exists, the owner's handle is not used while a lane's handle is in use.
    pub(crate) unsafe fn lane(&self) -> Self {
        Self {
            value: Arc::clone(&self.value),
            is_lane: true,
        }
    }

    /// Returns true if both are handles of the same value.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.value, &other.value)
    }

    /// Returns the value for changes; `None` for a lane.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        if self.is_lane {
            return None;
        }
        // SAFETY: the owner's handle is unique, and no lane's handle is in use, by the contract of `lane`.
        Some(unsafe { &mut *self.value.get() })
    }

    /// Returns the value for a change by the control plane or by a packet outside lanes.
    ///
    /// # Panics
    ///
    /// In a lane.
    #[inline]
    pub(crate) fn write(&mut self) -> &mut T {
        self.get_mut().expect("lanes do not write shared state")
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the owner writes only through a mutable reference to its handle, while no lane's handle is in use.
        unsafe { &*self.value.get() }
    }
}
