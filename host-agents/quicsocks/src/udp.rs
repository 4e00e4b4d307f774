//! UDP sockets as QUIC wants them: nothing is fragmented on its way (RFC 9000, section 14).

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;

use frontage_program::socket::set_option;
use socket2::SockRef;
use tokio::net::UdpSocket;

/// Bytes that may wait to be read, as far as the kernel allows (`net.core.rmem_max`): what a client's many connections begin with at once.
const RECEIVE_BUFFER: libc::c_int = 1 << 20;
/// Most datagrams that the kernel hands over as one (`UDP_GRO_CNT_MAX`), where noq asks it to (`UDP_GRO`).
pub const MOST_SEGMENTS: NonZeroUsize = NonZeroUsize::new(64).expect("not 0");
/// Most bytes of a UDP datagram.
const LARGEST: usize = 65_535;

/// A socket at `local`, which may be several families' wildcard.
pub fn bind(local: SocketAddr) -> io::Result<UdpSocket> {
    let socket = std::net::UdpSocket::bind(local)?;
    socket.set_nonblocking(true)?;
    prepare(&socket, local.is_ipv6())?;
    UdpSocket::from_std(socket)
}

/// A socket that sends to and receives from `remote` alone.
pub fn connect(remote: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = if remote.is_ipv6() {
        (std::net::Ipv6Addr::UNSPECIFIED, 0).into()
    } else {
        (std::net::Ipv4Addr::UNSPECIFIED, 0).into()
    };
    let socket = std::net::UdpSocket::bind(any)?;
    socket.connect(remote)?;
    socket.set_nonblocking(true)?;
    prepare(&socket, remote.is_ipv6())?;
    UdpSocket::from_std(socket)
}

/// Whether a socket was not made because the system has no more of them, or of ports: none would be, whereto ever.
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

/// Has datagrams leave whole or not at all, whatever was heard of the path's MTU: the QUIC endpoints find that out (`IP_PMTUDISC_PROBE` of ip(7)).
fn prepare(socket: &std::net::UdpSocket, ipv6: bool) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, RECEIVE_BUFFER)?;
    let (level, option, value) = if ipv6 {
        (
            libc::IPPROTO_IPV6,
            libc::IPV6_MTU_DISCOVER,
            libc::IPV6_PMTUDISC_PROBE,
        )
    } else {
        (
            libc::IPPROTO_IP,
            libc::IP_MTU_DISCOVER,
            libc::IP_PMTUDISC_PROBE,
        )
    };
    set_option(socket, level, option, value)
}

/// Sends `datagram` now or not at all. Tokio's own `try_send` would refuse until it has heard from the kernel that a new socket is writable.
pub fn send(socket: &UdpSocket, datagram: &[u8]) -> io::Result<usize> {
    SockRef::from(socket).send(datagram)
}

/// The same from a socket that has no peer.
pub fn send_to(socket: &UdpSocket, datagram: &[u8], to: SocketAddr) -> io::Result<usize> {
    SockRef::from(socket).send_to(datagram, &to.into())
}

/// Lends this thread's buffer, which takes any datagram, so that sockets which wait have none.
pub fn with_buffer<T>(work: impl FnOnce(&mut [u8]) -> T) -> T {
    thread_local! {
        static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; LARGEST]);
    }
    BUFFER.with_borrow_mut(|buffer| work(buffer))
}

#[cfg(test)]
mod tests {
    use noq::{Runtime as _, TokioRuntime};

    use super::*;

    #[tokio::test]
    async fn noq_takes_no_more_datagrams_at_once() {
        let socket = bind("[::1]:0".parse().unwrap()).unwrap();
        let socket = TokioRuntime.wrap_udp_socket(socket.into_std().unwrap());
        assert!(socket.unwrap().max_receive_segments() <= MOST_SEGMENTS);
    }
}
