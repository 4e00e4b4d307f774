//! Batches out: what goes to one end as one (GSO).

use std::io;
use std::mem::zeroed;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, RawFd};

use libc::{c_void, cmsghdr, iovec, mmsghdr, sockaddr_storage};
use socket2::Socket;

use super::Control;
use crate::choice::tunnel_end;
use crate::outbox::{Entry, Outbox};

/// Most datagrams that GSO takes at once (`UDP_MAX_SEGMENTS` of older kernels), and their bytes with all headers.
const MAX_SEGMENTS: usize = 64;
const MAX_GSO: usize = 65_000;

/// Sends batches.
#[derive(Default)]
pub struct Sender {
    names: Vec<(sockaddr_storage, u32)>,
    parts: Vec<iovec>,
    controls: Vec<Control>,
    messages: Vec<mmsghdr>,
    groups: Vec<std::ops::Range<usize>>,
    singly: bool,
}

impl Sender {
    /// One that sends every packet on its own, if `singly`; else so only where the system or the way knows no GSO.
    pub fn new(singly: bool) -> Self {
        Self {
            singly,
            ..Self::default()
        }
    }

    /// Sends all of `out` and empties it; how many packets the system did not take.
    pub fn send(&mut self, socket: &Socket, out: &mut Outbox) -> u64 {
        out.group();
        let mut unsent = 0;
        let mut next = 0;
        while next < out.entries().len() {
            self.prepare(out, next);
            let sent = self.call(socket.as_raw_fd());
            let done = self.groups[..sent].last().map_or(next, |group| group.end);
            if sent < self.groups.len() {
                // The message that was not taken: once more without GSO, or not at all.
                let failed = self.groups[sent].clone();
                if failed.len() > 1 && !self.singly {
                    self.singly = true;
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

    /// Makes messages of the entries from `start` on.
    fn prepare(&mut self, out: &Outbox, start: usize) {
        self.names.clear();
        self.parts.clear();
        self.controls.clear();
        self.groups.clear();
        let entries = out.entries();
        let mut at = start;
        while at < entries.len() {
            let end = at + if self.singly { 1 } else { run(&entries[at..]) };
            self.names.push(name(tunnel_end(entries[at].to)));
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
            // SAFETY: plain data, of which all zeros are a value.
            let mut message: mmsghdr = unsafe { zeroed() };
            let header = &mut message.msg_hdr;
            header.msg_name = (&raw mut self.names[n].0).cast();
            header.msg_namelen = self.names[n].1;
            header.msg_iov = &raw mut self.parts[group.start - start];
            header.msg_iovlen = group.len() as _;
            if group.len() > 1 {
                let size = entries[group.start].len as u16;
                // SAFETY: there is room for one message with two bytes.
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

    /// How many messages the system took.
    fn call(&mut self, socket: RawFd) -> usize {
        loop {
            // SAFETY: all pointers are to what outlives the call, with their lengths.
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

/// How many entries go as one: to the same end, of the same size but for a shorter last one.
fn run(entries: &[Entry]) -> usize {
    let first = entries[0];
    let mut total = first.len;
    for (n, entry) in entries.iter().enumerate().skip(1) {
        total += entry.len;
        if entry.to != first.to || entry.len > first.len || n == MAX_SEGMENTS || total > MAX_GSO {
            return n;
        }
        if entry.len < first.len {
            return n + 1;
        }
    }
    entries.len()
}

fn name(address: SocketAddr) -> (sockaddr_storage, u32) {
    let address = socket2::SockAddr::from(address);
    // SAFETY: plain data, of which all zeros are a value; the copy is as long as the address is.
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
