// SPDX-License-Identifier: Apache-2.0
//! System calls that all kinds of sockets need.

use std::ffi::c_int;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

/// Converts a system call's result.
pub fn check(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Sets an option of a socket.
///
/// # Errors
/// The system's error.
pub fn set_option<T>(socket: &OwnedFd, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    // SAFETY: the value and its size belong together.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        ) as isize
    })
    .map(drop)
}

/// Reads an option of a socket, a C structure of integers, which has this value before.
///
/// # Errors
/// The system's error.
pub fn option<T: Copy>(
    socket: &OwnedFd,
    level: c_int,
    option: c_int,
    mut value: T,
) -> io::Result<T> {
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the value and its size belong together.
    check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            option,
            ptr::from_mut(&mut value).cast(),
            &mut len,
        ) as isize
    })?;
    Ok(value)
}

/// Takes the error that the kernel has reported for a socket since the last call.
pub fn take_error(socket: &OwnedFd) -> Option<io::Error> {
    let error: c_int = option(socket, libc::SOL_SOCKET, libc::SO_ERROR, 0).ok()?;
    (error != 0).then(|| io::Error::from_raw_os_error(error))
}

/// Binds a socket to an address, a C structure of its family.
///
/// # Errors
/// The system's error.
pub fn bind<T>(socket: &OwnedFd, address: &T) -> io::Result<()> {
    // SAFETY: the address and its size belong together.
    check(unsafe {
        libc::bind(
            socket.as_raw_fd(),
            ptr::from_ref(address).cast(),
            size_of::<T>() as libc::socklen_t,
        ) as isize
    })
    .map(drop)
}
