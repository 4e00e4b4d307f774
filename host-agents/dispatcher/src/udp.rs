//! The tunnels' UDP socket: batches in and out, segments of one flow as one (GRO, GSO).

use std::io;
use std::net::SocketAddr;

use frontage_daemon::socket::{accept_without_checksum, set_receive_offload};
use socket2::{Domain, Protocol, Socket, Type};

mod receive;
mod send;

pub use receive::Receiver;
pub use send::Sender;

/// What may wait in the socket; the system gives less if it is told so.
const BUFFER: usize = 8 << 20;

/// Opens a tunnel's end at `listen`. Sockets of the same address share what comes, by flow.
///
/// # Errors
/// Those of the system.
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
    socket.set_recv_buffer_size(BUFFER)?;
    socket.set_send_buffer_size(BUFFER)?;
    // Kernels without it deliver single datagrams, which is as well.
    let _ = set_receive_offload(&socket, true);
    socket.bind(&listen.into())?;
    Ok(socket)
}

/// Room for one control message with an int, as aligned as the system wants it.
type Control = [u64; 4];
