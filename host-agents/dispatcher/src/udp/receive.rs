// SPDX-License-Identifier: Apache-2.0
//! Batched receive with GRO.

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd as _;

use libc::{c_int, iovec, mmsghdr, msghdr, sockaddr_in, sockaddr_in6, sockaddr_storage};
use socket2::Socket;

use super::ControlBuffer;

/// Maximum number of messages that one system call receives. Each is a datagram or several coalesced ones.
const BATCH: usize = 32;
/// Maximum length of a message in bytes: the limit of GRO.
const MESSAGE_LEN: usize = 65_536;

/// A received message.
struct Message {
    len: usize,
    /// Length of each datagram in the message, except the last, which may be shorter.
    segment_size: usize,
    sender: IpAddr,
}

/// Receives batches of datagrams.
pub struct Receiver {
    bytes: Vec<u8>,
    names: Box<[sockaddr_storage; BATCH]>,
    controls: Box<[ControlBuffer; BATCH]>,
    received: Vec<Message>,
}

impl Default for Receiver {
    fn default() -> Self {
        Self {
            bytes: vec![0; BATCH * MESSAGE_LEN],
            // SAFETY: sockaddr_storage is plain data, for which zeros are valid.
            names: unsafe { Box::new(zeroed()) },
            controls: Box::new([[0; 4]; BATCH]),
            received: Vec::with_capacity(BATCH),
        }
    }
}

impl Receiver {
    /// Waits for the first message and receives all that are available.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn receive(&mut self, socket: &Socket) -> io::Result<()> {
        self.received.clear();
        let base = self.bytes.as_mut_ptr();
        let mut parts: [iovec; BATCH] = std::array::from_fn(|n| iovec {
            // SAFETY: the offset is within `bytes`, and the messages' parts do not overlap.
            iov_base: unsafe { base.add(n * MESSAGE_LEN) }.cast(),
            iov_len: MESSAGE_LEN,
        });
        let mut messages: [mmsghdr; BATCH] = std::array::from_fn(|n| {
            // SAFETY: mmsghdr is plain data, for which zeros are valid.
            let mut message: mmsghdr = unsafe { zeroed() };
            message.msg_hdr.msg_name = (&raw mut self.names[n]).cast();
            message.msg_hdr.msg_namelen = size_of::<sockaddr_storage>() as u32;
            message.msg_hdr.msg_iov = &raw mut parts[n];
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = self.controls[n].as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = size_of::<ControlBuffer>() as _;
            message
        });
        // SAFETY: all pointers have correct lengths and outlive the call.
        let received = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                messages.as_mut_ptr(),
                BATCH as u32,
                libc::MSG_WAITFORONE as _,
                std::ptr::null_mut(),
            )
        };
        if received < 0 {
            return Err(io::Error::last_os_error());
        }
        for (n, message) in messages.iter().take(received as usize).enumerate() {
            let len = message.msg_len as usize;
            self.received.push(Message {
                len,
                segment_size: segment_size(&message.msg_hdr).unwrap_or(len),
                sender: address(&self.names[n]),
            });
        }
        Ok(())
    }

    /// Iterates over the datagrams of the last batch, with their senders.
    pub fn datagrams(&self) -> impl Iterator<Item = (IpAddr, &[u8])> {
        let messages = self
            .received
            .iter()
            .zip(self.bytes.chunks_exact(MESSAGE_LEN));
        messages.flat_map(|(message, bytes)| {
            bytes[..message.len]
                .chunks(message.segment_size.max(1))
                .map(|datagram| (message.sender, datagram))
        })
    }
}

fn address(name: &sockaddr_storage) -> IpAddr {
    if c_int::from(name.ss_family) == libc::AF_INET {
        // SAFETY: the family is AF_INET.
        let name = unsafe { &*(&raw const *name).cast::<sockaddr_in>() };
        Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr)).into()
    } else {
        // SAFETY: the socket's family is AF_INET or AF_INET6.
        let name = unsafe { &*(&raw const *name).cast::<sockaddr_in6>() };
        Ipv6Addr::from(name.sin6_addr.s6_addr).into()
    }
}

/// Returns the length of each datagram in a message that GRO coalesced.
fn segment_size(message: &msghdr) -> Option<usize> {
    // SAFETY: the kernel wrote the control messages, and the macros stay within their length.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(message);
        while let Some(head) = control.as_ref() {
            if head.cmsg_level == libc::SOL_UDP && head.cmsg_type == libc::UDP_GRO {
                let size = libc::CMSG_DATA(control).cast::<c_int>().read_unaligned();
                return usize::try_from(size).ok();
            }
            control = libc::CMSG_NXTHDR(message, control);
        }
    }
    None
}
