// SPDX-License-Identifier: Apache-2.0
//! Socket options that neither the standard library nor socket2 has.

use std::io;
use std::os::fd::AsFd;

use nix::setsockopt_impl;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{SetBool, UdpGroSegment};

#[derive(Clone, Copy)]
struct UdpNoCheck6Rx;
setsockopt_impl!(
    UdpNoCheck6Rx,
    libc::SOL_UDP,
    libc::UDP_NO_CHECK6_RX,
    bool,
    SetBool
);

/// Accept UDP datagrams over IPv6 without a checksum, as tunnels may send them (RFC 6935): a switch that encapsulates
/// does not see all of a packet, and the inner packet has a checksum of its own. By default, the kernel drops them.
///
/// # Errors
/// If the kernel refuses.
pub fn accept_without_checksum(socket: &impl AsFd) -> io::Result<()> {
    Ok(setsockopt(socket, UdpNoCheck6Rx, &true)?)
}

/// Let the kernel merge datagrams of one flow into one large datagram (generic receive offload), or not.
///
/// # Errors
/// If the kernel refuses, or does not know the option (Linux before 5.0).
pub fn set_receive_offload(socket: &impl AsFd, enabled: bool) -> io::Result<()> {
    Ok(setsockopt(socket, UdpGroSegment, &enabled)?)
}
