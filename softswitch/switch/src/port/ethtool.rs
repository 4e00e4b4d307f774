// SPDX-License-Identifier: Apache-2.0
//! Properties of interfaces that their drivers report (`linux/ethtool.h`).

use std::io;
use std::os::fd::AsFd;

use super::ifreq;

const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const STRING: usize = 32;

/// `struct ethtool_drvinfo`.
#[repr(C)]
struct Driver {
    command: u32,
    name: [u8; STRING],
    version: [u8; STRING],
    firmware: [u8; STRING],
    bus: [u8; STRING],
    rom: [u8; STRING],
    reserved: [u8; 12],
    counts: [u32; 5],
}

/// `struct ethtool_channels`.
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    max: [u32; 4],
    rx: u32,
    tx: u32,
    other: u32,
    combined: u32,
}

/// Returns true if no hardware belongs to an interface.
pub fn is_virtual(socket: impl AsFd, interface: &[u8]) -> bool {
    let mut driver = Driver {
        command: ETHTOOL_GDRVINFO,
        name: [0; STRING],
        version: [0; STRING],
        firmware: [0; STRING],
        bus: [0; STRING],
        rom: [0; STRING],
        reserved: [0; 12],
        counts: [0; 5],
    };
    // SAFETY: the structure of this command.
    let result = unsafe { ifreq::ethtool(socket, interface, &mut driver) };
    result.is_err() || driver.bus[0] == 0
}

/// Returns the number of receive queues of an interface.
///
/// # Errors
/// The system's error, for example if there is no interface with this name.
pub fn receive_queues(socket: impl AsFd, interface: &[u8]) -> io::Result<u32> {
    let mut channels = Channels {
        command: ETHTOOL_GCHANNELS,
        ..Channels::default()
    };
    // SAFETY: the structure of this command.
    match unsafe { ifreq::ethtool(socket, interface, &mut channels) } {
        Ok(()) => Ok((channels.rx + channels.combined).max(1)),
        Err(e) if e.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(1),
        Err(e) => Err(e),
    }
}
