//! The tunnels' UDP socket: batches in and out, segments of one flow as one (GRO, GSO).

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd as _, RawFd};

use libc::{
    c_int, c_void, cmsghdr, iovec, mmsghdr, msghdr, sockaddr_in, sockaddr_in6, sockaddr_storage,
};
use socket2::{Domain, Protocol, Socket, Type};

use crate::choice::tunnel_end;
use crate::outbox::{Entry, Outbox};

/// Datagrams, or trains of them, that one call takes.
const BATCH: usize = 32;
/// Bytes of a train: what GRO puts together at most.
const TRAIN: usize = 65_536;
/// Most datagrams that GSO takes at once (`UDP_MAX_SEGMENTS` of older kernels), and their bytes with all headers.
const MAX_SEGMENTS: usize = 64;
const MAX_GSO: usize = 65_000;
/// What may wait in the socket; the system gives less if it is told so.
const BUFFER: usize = 8 << 20;

/// Opens a tunnel's end at `listen`. Sockets of the same address share what comes, by flow.
///
/// # Errors
/// Those of the system.
pub fn bind(listen: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(listen),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    if listen.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_port(true)?;
    socket.set_recv_buffer_size(BUFFER)?;
    socket.set_send_buffer_size(BUFFER)?;
    // Trains of datagrams, where the kernel has them; and those over IPv6 that have no checksum, as switches send them (RFC 6935).
    for option in [libc::UDP_GRO, libc::UDP_NO_CHECK6_RX] {
        let on: c_int = 1;
        // SAFETY: an option of one int. Kernels without the first deliver single datagrams, which is as well.
        unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_UDP,
                option,
                (&raw const on).cast(),
                size_of::<c_int>() as u32,
            );
        }
    }
    socket.bind(&listen.into())?;
    Ok(socket)
}

/// Room for one control message with an int, as aligned as the system wants it.
type Control = [u64; 4];

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
