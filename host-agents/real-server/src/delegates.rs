// SPDX-License-Identifier: Apache-2.0
//! Delegates: senders from the addresses of balancers, which are not addresses of this machine.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use frontage_handoff::delegate::Delegate;
use frontage_quic::socket::{Addressing, CookiePrefix, Socket};
use noq::{Runtime as _, TokioRuntime};
use parking_lot::Mutex;

/// Receive buffer in bytes. Nothing is read from the sockets, so the kernel drops stray packets.
const RECEIVE_BUFFER: usize = 0;

/// Key of a delegate: address family, port, and the server id and prefix in cookies.
type DelegateKey = (bool, u16, Option<(u16, u64)>);

/// One delegate for each address family and port at which balancers serve, and for each balancer with cookies.
#[derive(Default)]
pub struct Delegates(Mutex<State>);

#[derive(Default)]
struct State {
    /// Sockets by address family and port, which several balancers may share.
    sockets: HashMap<(bool, u16), UdpSocket>,
    delegates: HashMap<DelegateKey, Arc<Delegate>>,
}

impl Delegates {
    /// Return the delegate for a balancer that clients know as `server`. `cookie_prefix` creates the source addresses if there is one. Must be
    /// called within a Tokio runtime.
    ///
    /// # Errors
    /// If no socket can be bound to the port.
    pub fn get(
        &self,
        server: SocketAddr,
        cookie_prefix: Option<CookiePrefix>,
    ) -> io::Result<Arc<Delegate>> {
        let (family, port) = (server.is_ipv4(), server.port());
        let balancer = cookie_prefix.as_ref();
        let balancer =
            balancer.map(|cookie_prefix| (cookie_prefix.keys.sid(), cookie_prefix.prefix));
        let key = (family, port, balancer);
        let state = &mut *self.0.lock();
        if let Some(delegate) = state.delegates.get(&key) {
            return Ok(delegate.clone());
        }
        let socket = match state.sockets.entry((family, port)) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(bind(server)?),
        };
        let socket = TokioRuntime.wrap_udp_socket(socket.try_clone()?)?;
        let addresses = cookie_prefix.map(|cookie_prefix| Addressing {
            // Nothing is received here. The meters know where clients are.
            path_table: Arc::default(),
            cookie_prefix: Some(cookie_prefix),
            tunnel: None,
        });
        let delegate = Arc::new(Delegate::new(Box::new(Socket::over(socket, addresses)))?);
        state.delegates.insert(key, delegate.clone());
        Ok(delegate)
    }
}

/// Bind a socket to the port of `server` on all addresses. Each packet sets its source address.
fn bind(server: SocketAddr) -> io::Result<UdpSocket> {
    let socket = socket2::Socket::new(
        socket2::Domain::for_address(server),
        socket2::Type::DGRAM,
        Some(socket2::Protocol::UDP),
    )?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    let any_address: IpAddr = if server.is_ipv6() {
        socket.set_only_v6(true)?;
        socket.set_freebind_v6(true)?;
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        // Required to send from an IPv4 address that no interface has. Without CAP_NET_ADMIN, an interface must have it.
        let _ = socket.set_ip_transparent_v4(true);
        Ipv4Addr::UNSPECIFIED.into()
    };
    socket.bind(&SocketAddr::new(any_address, server.port()).into())?;
    Ok(socket.into())
}
