// SPDX-License-Identifier: Apache-2.0
//! Whether network interfaces can carry packets.

use std::ffi::c_int;
use std::os::fd::OwnedFd;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use super::ifreq;

/// The flags of an interface that is up and whose link has a carrier, or of which no carrier is known.
const RUNNING: c_int = libc::IFF_UP | libc::IFF_RUNNING;

/// A socket for the states of the interfaces of its network namespace.
#[derive(Debug)]
pub struct LinkStates(OwnedFd);

impl LinkStates {
    /// Opens a socket in the thread's network namespace; `None` if the kernel refuses it.
    pub fn open() -> Option<Self> {
        let socket = socket(
            AddressFamily::Inet,
            SockType::Datagram,
            SockFlag::SOCK_CLOEXEC,
            None,
        );
        socket.ok().map(Self)
    }

    /// Returns whether an interface is up; `None` if there is no interface with this name.
    pub fn is_up(&self, interface: &str) -> Option<bool> {
        let flags = ifreq::flags(&self.0, interface.as_bytes()).ok()?;
        Some(c_int::from(flags) & RUNNING == RUNNING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_interfaces_have_no_state() {
        let states = LinkStates::open().unwrap();
        for name in ["", "nosuch0", "a-name-that-is-too-long"] {
            assert_eq!(states.is_up(name), None, "{name}");
        }
        assert!(states.is_up("lo").is_some());
    }
}
