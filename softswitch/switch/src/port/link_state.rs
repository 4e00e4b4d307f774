// SPDX-License-Identifier: Apache-2.0
//! Whether network interfaces can carry packets.

use std::ffi::{c_char, c_int};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

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
        // SAFETY: zero is a valid value of each member.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // The last byte stays zero.
        if interface.len() >= request.ifr_name.len() {
            return None;
        }
        for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
            *to = from as c_char;
        }
        // SAFETY: the request has the type that SIOCGIFFLAGS reads and writes.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SIOCGIFFLAGS, &mut request) };
        if result != 0 {
            return None;
        }
        // SAFETY: SIOCGIFFLAGS has written the flags.
        let flags = c_int::from(unsafe { request.ifr_ifru.ifru_flags });
        Some(flags & RUNNING == RUNNING)
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
