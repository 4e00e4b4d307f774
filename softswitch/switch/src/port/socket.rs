// SPDX-License-Identifier: Apache-2.0
//! Packet sockets: opening, options, binding.

use std::ffi::{CString, c_int, c_void};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use anyhow::{Context, bail};

use super::offload::VnetHeader;
use super::syscall::{self, check};
use super::{PortError, ethtool, ifreq};

/// A network interface of the namespace in which it was looked up.
#[derive(Debug, Clone)]
pub struct Interface {
    name: CString,
    index: c_int,
}

impl Interface {
    /// Finds an interface by name.
    ///
    /// # Errors
    /// If it does not exist.
    pub fn find(interface: &str) -> anyhow::Result<Self> {
        let name = CString::new(interface).context("the interface's name contains a zero byte")?;
        let index = index_of(&name);
        if index == 0 {
            bail!(
                "unknown interface '{interface}' in this network namespace: \
                 create it first, for example: ip link add {interface} type veth peer name {interface}p"
            );
        }
        Ok(Self { name, index })
    }

    /// Returns the interface's number.
    pub fn index(&self) -> c_int {
        self.index
    }

    /// Converts an error of one of the interface's sockets to an error of the port.
    pub fn classify(&self, error: io::Error) -> PortError {
        match error.raw_os_error() {
            Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => {
                if index_of(&self.name) == self.index {
                    PortError::Down
                } else {
                    PortError::Gone
                }
            }
            _ => PortError::Io(error),
        }
    }
}

fn index_of(name: &CString) -> c_int {
    // SAFETY: a zero-terminated string.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    c_int::try_from(index).unwrap_or(0)
}

/// A packet socket whose frames follow a [`VnetHeader`]. It does not receive frames until it is bound.
#[derive(Debug)]
pub struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// Opens a socket.
    ///
    /// # Errors
    /// If the permission is missing.
    pub fn open() -> anyhow::Result<Self> {
        // SAFETY: no pointers.
        let fd = unsafe {
            libc::socket(
                libc::AF_PACKET,
                libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC,
                0,
            )
        };
        if fd < 0 {
            let error = io::Error::last_os_error();
            if error.raw_os_error() == Some(libc::EPERM) {
                bail!(
                    "no permission to open packet sockets: run as root, or give the program the \
                     capability: setcap cap_net_raw,cap_net_admin+ep PATH/softswitch"
                );
            }
            return Err(error).context("opening a packet socket");
        }
        // SAFETY: the descriptor is new and has no other owner.
        let socket = Self(unsafe { OwnedFd::from_raw_fd(fd) });
        socket
            .set_packet_option(libc::PACKET_VNET_HDR, &1)
            .context("PACKET_VNET_HDR")?;
        Ok(socket)
    }

    /// Returns the descriptor.
    pub fn fd(&self) -> &OwnedFd {
        &self.0
    }

    /// Sets an option of level `SOL_PACKET`.
    ///
    /// # Errors
    /// The system's error.
    pub fn set_packet_option<T>(&self, option: c_int, value: &T) -> io::Result<()> {
        syscall::set_option(&self.0, libc::SOL_PACKET, option, value)
    }

    /// Sets the size in bytes of the kernel's buffer for frames outside a ring.
    ///
    /// # Errors
    /// The system's error.
    pub fn set_receive_buffer(&self, bytes: c_int) -> io::Result<()> {
        // Needs CAP_NET_ADMIN; without it the buffer is as large as the system allows.
        let set = |option| syscall::set_option(&self.0, libc::SOL_SOCKET, option, &bytes);
        set(libc::SO_RCVBUFFORCE).or_else(|_| set(libc::SO_RCVBUF))
    }

    /// Reads an option of level `SOL_PACKET` that is a C structure of integers; reading resets it.
    pub fn take_packet_option<T: Copy>(&self, option: c_int, default: T) -> T {
        syscall::option(&self.0, libc::SOL_PACKET, option, default).unwrap_or(default)
    }

    /// Takes the error that the kernel has reported since the last call.
    pub fn take_error(&self) -> Option<io::Error> {
        syscall::take_error(&self.0)
    }

    /// Binds to an interface, to send, and to receive all its frames if `receive`.
    ///
    /// # Errors
    /// The system's error.
    pub fn bind(&self, interface: &Interface, receive: bool) -> io::Result<()> {
        // SAFETY: all zeros are a valid `sockaddr_ll`.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = if receive {
            (libc::ETH_P_ALL as u16).to_be()
        } else {
            0
        };
        address.sll_ifindex = interface.index;
        syscall::bind(&self.0, &address)
    }

    /// Makes the interface promiscuous.
    ///
    /// # Errors
    /// The system's error.
    pub fn make_promiscuous(&self, interface: &Interface) -> io::Result<()> {
        // SAFETY: all zeros are a valid `packet_mreq`.
        let mut promiscuous: libc::packet_mreq = unsafe { zeroed() };
        promiscuous.mr_ifindex = interface.index;
        promiscuous.mr_type = libc::PACKET_MR_PROMISC as u16;
        self.set_packet_option(libc::PACKET_ADD_MEMBERSHIP, &promiscuous)
    }

    /// Returns the interface's MTU: its maximum payload in bytes.
    pub fn mtu(&self, interface: &Interface) -> io::Result<usize> {
        ifreq::mtu(&self.0, interface.name.as_bytes())
    }

    /// Returns the number of receive queues of the interface.
    pub fn receive_queues(&self, interface: &Interface) -> io::Result<u32> {
        ethtool::receive_queues(&self.0, interface.name.as_bytes())
    }

    /// Returns true if no hardware belongs to the interface.
    pub fn is_virtual(&self, interface: &Interface) -> bool {
        ethtool::is_virtual(&self.0, interface.name.as_bytes())
    }

    /// Sends one complete frame, bypassing any ring.
    ///
    /// # Errors
    /// The system's error.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        let header = VnetHeader::default();
        let mut parts = [
            libc::iovec {
                iov_base: ptr::from_ref(&header).cast_mut().cast::<c_void>(),
                iov_len: size_of::<VnetHeader>(),
            },
            libc::iovec {
                iov_base: frame.as_ptr().cast_mut().cast(),
                iov_len: frame.len(),
            },
        ];
        // SAFETY: all zeros are a valid message.
        let mut message: libc::msghdr = unsafe { zeroed() };
        message.msg_iov = parts.as_mut_ptr();
        message.msg_iovlen = parts.len();
        // SAFETY: the parts outlive the call, which only reads them.
        check(unsafe { libc::sendmsg(self.0.as_raw_fd(), &message, libc::MSG_DONTWAIT) }).map(drop)
    }

    /// Reads one frame from the kernel's buffer, bypassing any ring, and returns its length.
    ///
    /// # Errors
    /// The system's error.
    pub fn receive(&self, header: &mut VnetHeader, frame: &mut [u8]) -> io::Result<usize> {
        let mut parts = [
            libc::iovec {
                iov_base: ptr::from_mut(header).cast(),
                iov_len: size_of::<VnetHeader>(),
            },
            libc::iovec {
                iov_base: frame.as_mut_ptr().cast(),
                iov_len: frame.len(),
            },
        ];
        // SAFETY: both parts are plain bytes that outlive the call.
        let n = check(unsafe {
            libc::readv(self.0.as_raw_fd(), parts.as_mut_ptr(), parts.len() as c_int)
        })?;
        Ok(n.saturating_sub(size_of::<VnetHeader>()))
    }
}
