// SPDX-License-Identifier: Apache-2.0
//! Ports through `AF_XDP` sockets (`Documentation/networking/af_xdp.rst`), which receive frames before the kernel allocates
//! a socket buffer for them.
//!
//! An XDP program passes each frame of a queue of the interface to the socket of this queue. The port receives from all
//! queues, and sends through the first one. Where the driver cannot share its buffers with the socket (zero-copy), the kernel
//! copies frames.

mod memory;
mod program;
mod receiver;
mod ring;
mod socket;
mod transmitter;

use std::sync::Arc;

use anyhow::{Context, bail};

use super::socket::{Interface, PacketSocket};
use memory::{CHUNK, HEADROOM};
use program::Program;
pub use receiver::XdpReceiver;
use socket::{Opened, Socket};
pub use transmitter::XdpTransmitter;

/// Bytes of a frame besides the MTU: Ethernet header and two VLAN tags.
const LINK_HEADERS: usize = 14 + 8;

/// How a port exchanges frames with the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    /// The driver calls the XDP program; otherwise the kernel does, after it has allocated a socket buffer.
    pub is_native: bool,
    /// The driver uses the socket's memory; otherwise the kernel copies frames.
    pub is_zero_copy: bool,
}

/// The part that the sockets of an interface share.
#[derive(Debug)]
struct Shared {
    interface: Interface,
    /// No hardware belongs to the interface.
    is_virtual: bool,
    /// Attached while the port exists.
    _program: Program,
    /// Keeps the interface promiscuous.
    packet_socket: PacketSocket,
}

/// Attaches to an interface of this network namespace.
///
/// # Errors
/// If the interface or a permission is missing, its MTU is too large, it has an XDP program already, or the kernel
/// does not support `AF_XDP`.
pub fn open(name: &str) -> anyhow::Result<(XdpReceiver, XdpTransmitter, Mode)> {
    let interface = Interface::find(name)?;
    let packet_socket = PacketSocket::open()?;
    let mtu = packet_socket.mtu(&interface)?;
    if mtu + LINK_HEADERS > CHUNK - HEADROOM {
        bail!("the MTU of {mtu} bytes is too large for AF_XDP");
    }
    packet_socket
        .make_promiscuous(&interface)
        .with_context(|| format!("making interface '{name}' promiscuous"))?;
    let queues = packet_socket.receive_queues(&interface)?;
    let program = Program::attach(&interface, queues)?;
    let opened = (0..queues).map(|queue| {
        let opened = Socket::open(&interface, queue)?;
        program.pass_queue_to(queue, &opened.socket)?;
        anyhow::Ok(opened)
    });
    let opened = opened.collect::<anyhow::Result<Vec<_>>>()?;
    let mode = Mode {
        is_native: program.is_native(),
        is_zero_copy: opened[0].socket.is_zero_copy(),
    };
    let shared = Arc::new(Shared {
        is_virtual: packet_socket.is_virtual(&interface),
        interface,
        _program: program,
        packet_socket,
    });
    let (mut receiving, mut sending) = (Vec::new(), Vec::new());
    for Opened { socket, rx, tx } in opened {
        let socket = Arc::new(socket);
        receiving.push((Arc::clone(&socket), rx));
        sending.push((socket, tx));
    }
    let receiver = XdpReceiver::new(Arc::clone(&shared), receiving)?;
    let (socket, rings) = sending.swap_remove(0);
    let transmitter = XdpTransmitter::new(shared, socket, rings, mtu);
    Ok((receiver, transmitter, mode))
}
