// SPDX-License-Identifier: Apache-2.0
//! UDP sockets for QUIC: datagrams are never fragmented (RFC 9000, section 14).

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;

use nix::setsockopt_impl;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::SetStruct;
use socket2::SockRef;
use tokio::net::UdpSocket;

/// Receive buffer in bytes, capped by `net.core.rmem_max`. It must hold the first flights of many connections that a client
/// opens at once.
const RECEIVE_BUFFER: usize = 1 << 20;
/// Maximum number of datagrams that the kernel coalesces (`UDP_GRO_CNT_MAX`) on noq's sockets, which enable `UDP_GRO`.
pub const MAX_SEGMENTS: NonZeroUsize = NonZeroUsize::new(64).expect("64 is not zero");
/// Maximum length of a UDP datagram in bytes.
const MAX_DATAGRAM: usize = 65_535;

#[derive(Clone, Copy)]
struct IpMtuDiscover;
setsockopt_impl!(
    IpMtuDiscover,
    libc::IPPROTO_IP,
    libc::IP_MTU_DISCOVER,
    libc::c_int,
    SetStruct<'_, libc::c_int>
);

#[derive(Clone, Copy)]
struct Ipv6MtuDiscover;
setsockopt_impl!(
    Ipv6MtuDiscover,
    libc::IPPROTO_IPV6,
    libc::IPV6_MTU_DISCOVER,
    libc::c_int,
    SetStruct<'_, libc::c_int>
);

/// Opens a socket bound to `local`.
pub fn bind(local: SocketAddr) -> io::Result<UdpSocket> {
    let socket = std::net::UdpSocket::bind(local)?;
    socket.set_nonblocking(true)?;
    configure(&socket, local.is_ipv6())?;
    UdpSocket::from_std(socket)
}

/// Opens a socket that is connected to `remote`.
pub fn connect(remote: SocketAddr) -> io::Result<UdpSocket> {
    UdpSocket::from_std(connect_std(remote)?)
}

/// Opens the same socket for programs without Tokio. It does not block.
pub fn connect_std(remote: SocketAddr) -> io::Result<std::net::UdpSocket> {
    let any: SocketAddr = if remote.is_ipv6() {
        (std::net::Ipv6Addr::UNSPECIFIED, 0).into()
    } else {
        (std::net::Ipv4Addr::UNSPECIFIED, 0).into()
    };
    let socket = std::net::UdpSocket::bind(any)?;
    socket.connect(remote)?;
    socket.set_nonblocking(true)?;
    configure(&socket, remote.is_ipv6())?;
    Ok(socket)
}

/// Returns true if opening a socket failed because the system is out of sockets or ports, which affects every destination.
pub fn is_exhausted(error: &io::Error) -> bool {
    const EXHAUSTED: [libc::c_int; 5] = [
        libc::EMFILE,
        libc::ENFILE,
        libc::ENOBUFS,
        libc::ENOMEM,
        libc::EADDRINUSE,
    ];
    error
        .raw_os_error()
        .is_some_and(|error| EXHAUSTED.contains(&error))
}

/// Sets the receive buffer, and sends datagrams unfragmented whatever the kernel knows about the path MTU: the QUIC endpoints
/// do their own path MTU discovery (`IP_PMTUDISC_PROBE` in ip(7)).
fn configure(socket: &std::net::UdpSocket, ipv6: bool) -> io::Result<()> {
    SockRef::from(socket).set_recv_buffer_size(RECEIVE_BUFFER)?;
    if ipv6 {
        setsockopt(socket, Ipv6MtuDiscover, &libc::IPV6_PMTUDISC_PROBE)?;
    } else {
        setsockopt(socket, IpMtuDiscover, &libc::IP_PMTUDISC_PROBE)?;
    }
    Ok(())
}

/// Sends `datagram` without waiting.
///
/// Tokio's `try_send` fails on a new socket until the kernel has reported it writable.
pub fn send(socket: &UdpSocket, datagram: &[u8]) -> io::Result<usize> {
    SockRef::from(socket).send(datagram)
}

/// Sends `datagram` from an unconnected socket without waiting.
pub fn send_to(socket: &UdpSocket, datagram: &[u8], to: SocketAddr) -> io::Result<usize> {
    SockRef::from(socket).send_to(datagram, &to.into())
}

/// Runs `work` with this thread's receive buffer, which holds any datagram. Idle sockets need no buffers of their own.
pub fn with_buffer<T>(work: impl FnOnce(&mut [u8]) -> T) -> T {
    thread_local! {
        static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; MAX_DATAGRAM]);
    }
    BUFFER.with_borrow_mut(|buffer| work(buffer))
}

#[cfg(test)]
mod tests {
    use noq::{Runtime as _, TokioRuntime};

    use super::*;

    #[tokio::test]
    async fn noq_coalesces_at_most_max_segments() {
        let socket = bind("[::1]:0".parse().unwrap()).unwrap();
        let socket = TokioRuntime.wrap_udp_socket(socket.into_std().unwrap());
        assert!(socket.unwrap().max_receive_segments() <= MAX_SEGMENTS);
    }
}
