// SPDX-License-Identifier: Apache-2.0
//! Opens network interfaces as ports.

use clap::ValueEnum;

use super::socket::{Interface, PacketSocket};
use super::xdp::Mode;
use super::{Receive, Receiver, Transmit, Transmitter, xdp};

/// The kind of sockets through which a port exchanges frames with the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sockets {
    /// AF_XDP for network cards whose driver runs XDP programs, AF_PACKET for all other interfaces.
    Auto,
    /// AF_PACKET.
    Packet,
    /// AF_XDP.
    Xdp,
}

/// The two sides of a port.
pub type Ends = (Box<dyn Receive>, Box<dyn Transmit>);

/// Attaches to an interface of this network namespace, and logs the kind of sockets.
///
/// # Errors
/// If the interface or a permission is missing, or the kernel refuses.
pub fn open(name: &str, sockets: Sockets) -> anyhow::Result<Ends> {
    let (ends, description) = match sockets {
        Sockets::Packet => (open_packet(name)?, "AF_PACKET".to_owned()),
        Sockets::Xdp => {
            let (receiver, transmitter, mode) = xdp::open(name)?;
            (boxed(receiver, transmitter), describe(mode))
        }
        Sockets::Auto => open_best(name)?,
    };
    tracing::info!("interface {name}: {description}");
    Ok(ends)
}

fn open_best(name: &str) -> anyhow::Result<(Ends, String)> {
    let reason = if PacketSocket::open()?.is_virtual(&Interface::find(name)?) {
        // Their frames may have unfinished checksums, and their VLAN tags elsewhere.
        "it has no hardware".to_owned()
    } else {
        match xdp::open(name) {
            Ok((receiver, transmitter, mode)) if mode.is_native => {
                return Ok((boxed(receiver, transmitter), describe(mode)));
            }
            Ok(_) => "its driver does not run XDP programs".to_owned(),
            Err(error) => format!("{error:#}"),
        }
    };
    Ok((open_packet(name)?, format!("AF_PACKET, because {reason}")))
}

fn open_packet(name: &str) -> anyhow::Result<Ends> {
    Ok(boxed(Receiver::open(name)?, Transmitter::open(name)?))
}

fn boxed(receiver: impl Receive + 'static, transmitter: impl Transmit + 'static) -> Ends {
    (Box::new(receiver), Box::new(transmitter))
}

fn describe(mode: Mode) -> String {
    let program = match mode.is_native {
        true => "in the driver",
        false => "not in the driver",
    };
    let copies = match mode.is_zero_copy {
        true => "zero-copy",
        false => "with copies",
    };
    format!("AF_XDP, {program}, {copies}")
}
