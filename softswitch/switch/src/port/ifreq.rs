// SPDX-License-Identifier: Apache-2.0
//! Requests to the kernel about an interface with a name.

use std::ffi::{c_char, c_int, c_short};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Returns the interface's `IFF_*` flags.
///
/// # Errors
/// The system's error, for example if there is no interface with this name.
pub fn flags(socket: impl AsFd, interface: &[u8]) -> io::Result<c_short> {
    let answer = request(socket, interface, libc::SIOCGIFFLAGS)?;
    // SAFETY: this request fills this field of the union.
    Ok(unsafe { answer.ifr_ifru.ifru_flags })
}

/// Returns the interface's MTU: its maximum payload in bytes.
///
/// # Errors
/// The system's error, for example if there is no interface with this name.
pub fn mtu(socket: impl AsFd, interface: &[u8]) -> io::Result<usize> {
    let answer = request(socket, interface, libc::SIOCGIFMTU)?;
    // SAFETY: this request fills this field of the union.
    let mtu: c_int = unsafe { answer.ifr_ifru.ifru_mtu };
    usize::try_from(mtu).map_err(io::Error::other)
}

/// Carries out a command to the interface's driver, which fills the rest of the structure.
///
/// # Errors
/// The system's error, for example if the driver does not know the command.
///
/// # Safety
/// The command in `structure` must be one for this type.
pub unsafe fn ethtool<T>(socket: impl AsFd, interface: &[u8], structure: &mut T) -> io::Result<()> {
    let mut request = empty();
    request.ifr_ifru.ifru_data = std::ptr::from_mut(structure).cast();
    send(socket, interface, libc::SIOCETHTOOL, request).map(drop)
}

fn request(socket: impl AsFd, interface: &[u8], code: libc::Ioctl) -> io::Result<libc::ifreq> {
    send(socket, interface, code, empty())
}

fn empty() -> libc::ifreq {
    // SAFETY: all zeros are a valid `ifreq`.
    unsafe { std::mem::zeroed() }
}

/// Sends a request that reads and writes an `ifreq`.
fn send(
    socket: impl AsFd,
    interface: &[u8],
    code: libc::Ioctl,
    mut request: libc::ifreq,
) -> io::Result<libc::ifreq> {
    // The last byte stays zero.
    if interface.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface) {
        *to = *from as c_char;
    }
    // SAFETY: the request has the type that these codes expect.
    match unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), code, &mut request) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(request),
    }
}
