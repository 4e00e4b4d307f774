// SPDX-License-Identifier: Apache-2.0
//! Batched send with GSO.

use std::io;
use std::mem::zeroed;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, RawFd};

use libc::{c_void, cmsghdr, iovec, mmsghdr, sockaddr_storage};
use socket2::Socket;

use super::ControlBuffer;
use crate::outbox::{Entry, Outbox};
use crate::targets::tunnel_address;

/// Maximum number of datagrams in a GSO message (`UDP_MAX_SEGMENTS` of older kernels).
const MAX_SEGMENTS: usize = 64;
/// Maximum length of a GSO message in bytes, including headers.
const MAX_GSO_LEN: usize = 65_000;

/// Sends batches of packets.
#[derive(Default)]
pub struct Sender {
    names: Vec<(sockaddr_storage, u32)>,
    parts: Vec<iovec>,
    controls: Vec<ControlBuffer>,
    messages: Vec<mmsghdr>,
    groups: Vec<std::ops::Range<usize>>,
    is_gso_disabled: bool,
}

impl Sender {
    /// Creates a sender. Without `gso`, it sends each packet separately. With it, it falls back to that if GSO fails.
    pub fn new(gso: bool) -> Self {
        Self {
            is_gso_disabled: !gso,
            ..Self::default()
        }
    }

    /// Sends all packets of `out` and clears it; returns the number of packets that the system did not accept.
    pub fn send(&mut self, socket: &Socket, out: &mut Outbox) -> u64 {
        out.group_by_destination();
        let mut unsent = 0;
        let mut next = 0;
        while next < out.entries().len() {
            self.prepare(out, next);
            let sent = self.call(socket.as_raw_fd());
            let done = self.groups[..sent].last().map_or(next, |group| group.end);
            if sent < self.groups.len() {
                // Retry the message that the system did not accept without GSO, or give up on it.
                let failed = self.groups[sent].clone();
                if failed.len() > 1 && !self.is_gso_disabled {
                    self.is_gso_disabled = true;
                    next = done;
                } else {
                    unsent += failed.len() as u64;
                    next = failed.end;
                }
            } else {
                next = done;
            }
        }
        out.clear();
        unsent
    }

    /// Builds messages for the entries from `start` on.
    fn prepare(&mut self, out: &Outbox, start: usize) {
        self.names.clear();
        self.parts.clear();
        self.controls.clear();
        self.groups.clear();
        let entries = out.entries();
        let mut at = start;
        while at < entries.len() {
            let end = at
                + if self.is_gso_disabled {
                    1
                } else {
                    segments(&entries[at..])
                };
            self.names.push(socket_name(tunnel_address(entries[at].to)));
            self.controls.push([0; 4]);
            self.groups.push(at..end);
            at = end;
        }
        let part = |entry: &Entry| iovec {
            iov_base: out.packet(*entry).as_ptr().cast_mut().cast(),
            iov_len: entry.len,
        };
        self.parts.extend(entries[start..].iter().map(part));
        self.messages.clear();
        for (n, group) in self.groups.iter().enumerate() {
            // SAFETY: mmsghdr is plain data, for which zeros are valid.
            let mut message: mmsghdr = unsafe { zeroed() };
            let header = &mut message.msg_hdr;
            header.msg_name = (&raw mut self.names[n].0).cast();
            header.msg_namelen = self.names[n].1;
            header.msg_iov = &raw mut self.parts[group.start - start];
            header.msg_iovlen = group.len() as _;
            if group.len() > 1 {
                let size = entries[group.start].len as u16;
                // SAFETY: the buffer holds one control message with two bytes.
                unsafe {
                    header.msg_control = self.controls[n].as_mut_ptr().cast::<c_void>();
                    header.msg_controllen = libc::CMSG_SPACE(2) as _;
                    let control: *mut cmsghdr = libc::CMSG_FIRSTHDR(header);
                    (*control).cmsg_level = libc::SOL_UDP;
                    (*control).cmsg_type = libc::UDP_SEGMENT;
                    (*control).cmsg_len = libc::CMSG_LEN(2) as _;
                    libc::CMSG_DATA(control).cast::<u16>().write_unaligned(size);
                }
            }
            self.messages.push(message);
        }
    }

    /// Sends the messages; returns the number that the system accepted.
    fn call(&mut self, socket: RawFd) -> usize {
        loop {
            // SAFETY: all pointers have correct lengths and outlive the call.
            let sent = unsafe {
                libc::sendmmsg(
                    socket,
                    self.messages.as_mut_ptr(),
                    self.messages.len() as u32,
                    0,
                )
            };
            if sent >= 0 {
                return sent as usize;
            }
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                return 0;
            }
        }
    }
}

/// Returns how many entries fit into one GSO message: all to one destination and of one size, except a shorter last one.
fn segments(entries: &[Entry]) -> usize {
    let first = entries[0];
    let mut total = first.len;
    for (n, entry) in entries.iter().enumerate().skip(1) {
        total += entry.len;
        if entry.to != first.to || entry.len > first.len || n == MAX_SEGMENTS || total > MAX_GSO_LEN
        {
            return n;
        }
        if entry.len < first.len {
            return n + 1;
        }
    }
    entries.len()
}

fn socket_name(address: SocketAddr) -> (sockaddr_storage, u32) {
    let address = socket2::SockAddr::from(address);
    // SAFETY: sockaddr_storage is plain data, for which zeros are valid, and it holds any address.
    unsafe {
        let mut name: sockaddr_storage = zeroed();
        let len = address.len();
        std::ptr::copy_nonoverlapping(
            address.as_ptr().cast::<u8>(),
            (&raw mut name).cast(),
            len as usize,
        );
        (name, len)
    }
}
