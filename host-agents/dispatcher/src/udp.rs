// SPDX-License-Identifier: Apache-2.0
//! The UDP socket of the tunnels, with batched system calls, GRO and GSO.

use std::io;
use std::net::SocketAddr;

use frontage_daemon::socket::{accept_without_checksum, set_receive_offload};
use socket2::{Domain, Protocol, Socket, Type};

mod receive;
mod send;

pub use receive::Receiver;
pub use send::Sender;

/// Size of the socket buffers in bytes, capped by the system's limits.
const SOCKET_BUFFER: usize = 8 << 20;

/// Opens the tunnel endpoint at `listen`. The kernel distributes flows over all sockets with this address.
///
/// # Errors
/// Returns the system's error.
pub fn bind(listen: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(listen),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    if listen.is_ipv6() {
        socket.set_only_v6(true)?;
        accept_without_checksum(&socket)?;
    }
    socket.set_reuse_port(true)?;
    socket.set_recv_buffer_size(SOCKET_BUFFER)?;
    socket.set_send_buffer_size(SOCKET_BUFFER)?;
    // Kernels without GRO deliver single datagrams, which also works.
    let _ = set_receive_offload(&socket, true);
    socket.bind(&listen.into())?;
    Ok(socket)
}

/// Aligned buffer for one control message with an int.
type ControlBuffer = [u64; 4];
