//! Socket options that neither the standard library nor socket2 knows.

use std::io;
use std::os::fd::AsRawFd;

/// Sets an option whose value is an int.
///
/// # Errors
/// If the kernel refuses.
pub fn set_option(
    socket: &impl AsRawFd,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the option's value is an int of that size.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Lets a socket take datagrams over IPv6 that have no checksum, as tunnels may (RFC 6935): a switch that encapsulates does not see all
/// of a packet, and what is inside has a checksum of its own. The kernel drops them otherwise.
///
/// # Errors
/// If the kernel refuses.
pub fn accept_without_checksum(socket: &impl AsRawFd) -> io::Result<()> {
    set_option(socket, libc::SOL_UDP, libc::UDP_NO_CHECK6_RX, 1)
}
