//! From which addresses packets leave: those of balancers, which are not this machine's.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

use frontage_handoff::borrow::Borrower;
use frontage_quic::socket::{Addressing, CookiePrefix, Socket};
use noq::{Runtime as _, TokioRuntime};

/// Bytes that may wait to be read where nobody reads: what strays here is dropped by the kernel.
const RECEIVE_BUFFER: usize = 0;

/// Whose packets leave by a borrower: the address family, the port, and the server id and prefix in their cookies.
type Sender = (bool, u16, Option<(u16, u64)>);

/// A borrower for each family and port that balancers serve at, and for each balancer whose packets' sources are cookies.
#[derive(Default)]
pub struct Sources(Mutex<All>);

#[derive(Default)]
struct All {
    /// By family and port, which several balancers may share.
    sockets: HashMap<(bool, u16), UdpSocket>,
    borrowers: HashMap<Sender, Arc<Borrower>>,
}

impl Sources {
    /// That of a balancer which clients know as `server`, the sources of whose packets are made by `cookie_prefix` if there is one. Must be called within a
    /// Tokio runtime.
    ///
    /// # Errors
    /// If no socket can be bound to its port.
    pub fn of(
        &self,
        server: SocketAddr,
        cookie_prefix: Option<CookiePrefix>,
    ) -> io::Result<Arc<Borrower>> {
        let (family, port) = (server.is_ipv4(), server.port());
        let balancer = cookie_prefix.as_ref();
        let balancer =
            balancer.map(|cookie_prefix| (cookie_prefix.keys.sid(), cookie_prefix.prefix));
        let sender = (family, port, balancer);
        let all = &mut *self.0.lock().expect("nobody panics with it");
        if let Some(borrower) = all.borrowers.get(&sender) {
            return Ok(borrower.clone());
        }
        let socket = match all.sockets.entry((family, port)) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(bind(server)?),
        };
        let socket = TokioRuntime.wrap_udp_socket(socket.try_clone()?)?;
        let addresses = cookie_prefix.map(|cookie_prefix| Addressing {
            // Nobody is heard here: the meters say where clients are.
            path_table: Arc::default(),
            cookie_prefix: Some(cookie_prefix),
            tunnel: None,
        });
        let borrower = Arc::new(Borrower::new(Box::new(Socket::over(socket, addresses)))?);
        all.borrowers.insert(sender, borrower.clone());
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
        socket.set_freebind_v6(true)?;
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        // Only this lets IPv4 send from an address that no interface has; without CAP_NET_ADMIN, one must have it.
        let _ = socket.set_ip_transparent_v4(true);
        Ipv4Addr::UNSPECIFIED.into()
    };
    socket.bind(&SocketAddr::new(everywhere, server.port()).into())?;
    Ok(socket.into())
}
