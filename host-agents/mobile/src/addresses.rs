// SPDX-License-Identifier: Apache-2.0
//! This machine's addresses, as the kernel reports their changes (rtnetlink(7)).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, SockaddrStorage, bind,
    recv, socket,
};
use tokio::sync::watch;

/// Multicast groups of rtnetlink: addresses of IPv4 and IPv6 (RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR).
const GROUPS: u32 = 0x10 | 0x100;

/// An address of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Name of the interface.
    pub interface: String,
    /// The address.
    pub ip: IpAddr,
}

impl Address {
    /// Return whether other machines may reach the address.
    pub fn is_reachable(&self) -> bool {
        match self.ip {
            IpAddr::V4(ip) => !(ip.is_loopback() || ip.is_link_local() || ip.is_unspecified()),
            IpAddr::V6(ip) => {
                !(ip.is_loopback() || ip.is_unicast_link_local() || ip.is_unspecified())
            }
        }
    }
}

/// Return the present addresses, which change when the kernel notifies.
///
/// # Errors
/// If the kernel refuses a netlink socket.
pub fn observe() -> io::Result<watch::Receiver<Vec<Address>>> {
    let socket = subscribe()?;
    let (sender, receiver) = watch::channel(list()?);
    // Tokio can only watch a descriptor like this one with unsafe code, so a thread waits.
    std::thread::Builder::new()
        .name("addresses".to_owned())
        .spawn(move || {
            while !sender.is_closed() {
                if let Err(error) = notify(&socket, &sender) {
                    tracing::error!("cannot observe addresses any more: {error}");
                    return;
                }
            }
        })?;
    Ok(receiver)
}

fn subscribe() -> io::Result<OwnedFd> {
    let route = SockProtocol::NetlinkRoute;
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, route)?;
    bind(socket.as_raw_fd(), &NetlinkAddr::new(0, GROUPS))?;
    Ok(socket)
}

/// Wait for the next notification, and list the addresses again.
fn notify(socket: &OwnedFd, sender: &watch::Sender<Vec<Address>>) -> io::Result<()> {
    // The content of messages does not matter, so they may be truncated or lost (ENOBUFS).
    match recv(socket.as_raw_fd(), &mut [0; 64], MsgFlags::empty()) {
        Ok(_) | Err(Errno::ENOBUFS | Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    let addresses = list()?;
    sender.send_if_modified(|present| {
        let is_new = *present != addresses;
        *present = addresses;
        is_new
    });
    Ok(())
}

fn list() -> io::Result<Vec<Address>> {
    let found = getifaddrs()?.filter_map(|one| {
        let ip = ip(one.address?)?;
        let interface = one.interface_name;
        Some(Address { interface, ip })
    });
    Ok(found.collect())
}

fn ip(address: SockaddrStorage) -> Option<IpAddr> {
    if let Some(v4) = address.as_sockaddr_in() {
        return Some(SocketAddr::from((v4.ip(), 0)).ip());
    }
    Some(address.as_sockaddr_in6()?.ip().into())
}
