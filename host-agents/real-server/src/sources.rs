//! From which addresses packets leave: those of balancers, which are not this machine's.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

use frontage_handoff::borrow::Borrower;
use frontage_program::socket::set_option;
use frontage_quic::socket::Socket;
use noq::{Runtime as _, TokioRuntime};

/// Bytes that may wait to be read where nobody reads: what strays here is dropped by the kernel.
const RECEIVE_BUFFER: usize = 0;

/// A borrower for each family and port that balancers serve at.
#[derive(Default)]
pub struct Sources(Mutex<HashMap<(bool, u16), Arc<Borrower>>>);

impl Sources {
    /// That of a balancer which clients know as `server`. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// If no socket can be bound to its port.
    pub fn of(&self, server: SocketAddr) -> io::Result<Arc<Borrower>> {
        let key = (server.is_ipv4(), server.port());
        let mut all = self.0.lock().expect("nobody panics with it");
        if let Some(borrower) = all.get(&key) {
            return Ok(borrower.clone());
        }
        let socket = TokioRuntime.wrap_udp_socket(bind(server)?)?;
        let borrower = Arc::new(Borrower::new(Box::new(Socket::over(socket, None)))?);
        all.insert(key, borrower.clone());
        Ok(borrower)
    }
}

/// Bound to the port of `server` everywhere; each packet has its source with it.
fn bind(server: SocketAddr) -> io::Result<UdpSocket> {
    let socket = socket2::Socket::new(
        socket2::Domain::for_address(server),
        socket2::Type::DGRAM,
        Some(socket2::Protocol::UDP),
    )?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    let everywhere: IpAddr = if server.is_ipv6() {
        socket.set_only_v6(true)?;
        set_option(&socket, libc::IPPROTO_IPV6, libc::IPV6_FREEBIND, 1)?;
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        // Only this lets IPv4 send from an address that no interface has; without CAP_NET_ADMIN, one must have it.
        let _ = set_option(&socket, libc::IPPROTO_IP, libc::IP_TRANSPARENT, 1);
        Ipv4Addr::UNSPECIFIED.into()
    };
    socket.bind(&SocketAddr::new(everywhere, server.port()).into())?;
    Ok(socket.into())
}
