//! Batches in: datagrams, and trains of them that the kernel made (GRO).

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd as _;

use libc::{c_int, iovec, mmsghdr, msghdr, sockaddr_in, sockaddr_in6, sockaddr_storage};
use socket2::Socket;

use super::Control;

/// Datagrams, or trains of them, that one call takes.
const BATCH: usize = 32;
/// Bytes of a train: what GRO puts together at most.
const TRAIN: usize = 65_536;

/// Receives batches.
pub struct Receiver {
    bytes: Vec<u8>,
    names: Box<[sockaddr_storage; BATCH]>,
    controls: Box<[Control; BATCH]>,
    /// Bytes, segment size and sender of each train.
    trains: Vec<(usize, usize, IpAddr)>,
}

impl Default for Receiver {
    fn default() -> Self {
        Self {
            bytes: vec![0; BATCH * TRAIN],
            // SAFETY: plain data, of which all zeros are a value.
            names: unsafe { Box::new(zeroed()) },
            controls: Box::new([[0; 4]; BATCH]),
            trains: Vec::with_capacity(BATCH),
        }
    }
}

impl Receiver {
    /// Waits until something comes, and takes what there is.
    ///
    /// # Errors
    /// Those of the system.
    pub fn receive(&mut self, socket: &Socket) -> io::Result<()> {
        self.trains.clear();
        let base = self.bytes.as_mut_ptr();
        let mut parts: [iovec; BATCH] = std::array::from_fn(|n| iovec {
            // SAFETY: within `bytes`, of which each train has a part of its own.
            iov_base: unsafe { base.add(n * TRAIN) }.cast(),
            iov_len: TRAIN,
        });
        let mut messages: [mmsghdr; BATCH] = std::array::from_fn(|n| {
            // SAFETY: plain data, of which all zeros are a value.
            let mut message: mmsghdr = unsafe { zeroed() };
            message.msg_hdr.msg_name = (&raw mut self.names[n]).cast();
            message.msg_hdr.msg_namelen = size_of::<sockaddr_storage>() as u32;
            message.msg_hdr.msg_iov = &raw mut parts[n];
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = self.controls[n].as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = size_of::<Control>() as _;
            message
        });
        // SAFETY: all pointers are to what outlives the call, with their lengths.
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
            let sender = address(&self.names[n]);
            self.trains
                .push((len, segment_size(&message.msg_hdr).unwrap_or(len), sender));
        }
        Ok(())
    }

    /// The datagrams received last, and who sent them.
    pub fn datagrams(&self) -> impl Iterator<Item = (IpAddr, &[u8])> {
        let trains = self.trains.iter().zip(self.bytes.chunks_exact(TRAIN));
        trains.flat_map(|((len, segment, sender), bytes)| {
            bytes[..*len]
                .chunks((*segment).max(1))
                .map(|datagram| (*sender, datagram))
        })
    }
}

fn address(name: &sockaddr_storage) -> IpAddr {
    if c_int::from(name.ss_family) == libc::AF_INET {
        // SAFETY: the family says what it is.
        let name = unsafe { &*(&raw const *name).cast::<sockaddr_in>() };
        Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr)).into()
    } else {
        // SAFETY: the socket is of one of two families.
        let name = unsafe { &*(&raw const *name).cast::<sockaddr_in6>() };
        Ipv6Addr::from(name.sin6_addr.s6_addr).into()
    }
}

/// Bytes of each datagram in a train, of which the last may have fewer.
fn segment_size(message: &msghdr) -> Option<usize> {
    // SAFETY: the system wrote the control messages; the macros walk within their length.
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
