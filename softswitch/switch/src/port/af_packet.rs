//! A network interface by an `AF_PACKET` socket.

use std::ffi::{CString, c_int, c_void};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use anyhow::{Context, bail};

use super::offload::{self, VnetHeader};
use super::{Flushed, Port, PortError};

/// Frames taken or sent by one system call.
const BATCH: usize = 32;

/// Longest frame: the largest IP packet (as GSO makes them) with Ethernet header and two VLAN tags.
const MAX_FRAME: usize = 65_535 + 14 + 8;

/// Room before each received frame to put a VLAN tag back in.
const HEADROOM: usize = 4;

/// Bytes that the kernel may hold for a port before it drops frames.
const RECEIVE_BUFFER: c_int = 8 << 20;

const SLOT: usize = HEADROOM + MAX_FRAME;
const CONTROL: usize = 64;

// Not in all versions of the libc crate; values of linux/if_packet.h.
const PACKET_IGNORE_OUTGOING: c_int = 23;
const TP_STATUS_VLAN_VALID: u32 = 1 << 4;
const TP_STATUS_VLAN_TPID_VALID: u32 = 1 << 6;

/// A network interface as a port: all its frames, except those that it sends itself.
pub struct AfPacket {
    socket: OwnedFd,
    name: CString,
    index: c_int,
    receive: Box<ReceiveBuffers>,
    received: usize,
    segment: Vec<u8>,
    sending: Vec<Vec<u8>>,
}

struct ReceiveBuffers {
    slots: Vec<u8>,
    headers: [VnetHeader; BATCH],
    control: [[u64; CONTROL / 8]; BATCH],
    iovecs: [[libc::iovec; 2]; BATCH],
    messages: [libc::mmsghdr; BATCH],
}

// SAFETY: the pointers in `iovecs` and `messages` only point into the same box, and are only used
// by system calls made with `&mut self`.
unsafe impl Send for ReceiveBuffers {}

impl AfPacket {
    /// Attaches to an interface of this network namespace.
    ///
    /// # Errors
    /// Says what is missing: the interface, or the permission.
    pub fn open(interface: &str) -> anyhow::Result<Self> {
        let name = CString::new(interface).context("the interface's name contains a zero byte")?;
        // SAFETY: a zero-terminated string.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        let Ok(index) = c_int::try_from(index) else {
            bail!("interface index {index} is out of range");
        };
        if index == 0 {
            bail!(
                "there is no interface '{interface}' in this network namespace; \
                 create it first, for example: ip link add {interface} type veth peer name {interface}p"
            );
        }
        let socket = open_socket()?;
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, &1)
            .context("PACKET_AUXDATA")?;
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1)
            .context("PACKET_VNET_HDR")?;
        set_option(&socket, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1)
            .context("PACKET_IGNORE_OUTGOING (Linux 4.20 or later is needed)")?;
        // Needs CAP_NET_ADMIN; without it the buffer is as large as the system allows.
        if set_option(
            &socket,
            libc::SOL_SOCKET,
            libc::SO_RCVBUFFORCE,
            &RECEIVE_BUFFER,
        )
        .is_err()
        {
            set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &RECEIVE_BUFFER)?;
        }
        bind(&socket, index).with_context(|| format!("binding to interface '{interface}'"))?;
        // SAFETY: all zeros are a valid `packet_mreq`.
        let mut promiscuous: libc::packet_mreq = unsafe { zeroed() };
        promiscuous.mr_ifindex = index;
        promiscuous.mr_type = libc::PACKET_MR_PROMISC as u16;
        set_option(
            &socket,
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            &promiscuous,
        )
        .with_context(|| format!("making interface '{interface}' promiscuous"))?;
        Ok(Self {
            socket,
            name,
            index,
            receive: ReceiveBuffers::new(),
            received: 0,
            segment: Vec::new(),
            sending: Vec::with_capacity(BATCH),
        })
    }

    fn classify(&self, error: io::Error) -> PortError {
        match error.raw_os_error() {
            Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => {
                // SAFETY: a zero-terminated string.
                let now = unsafe { libc::if_nametoindex(self.name.as_ptr()) };
                if c_int::try_from(now) == Ok(self.index) {
                    PortError::Down
                } else {
                    PortError::Gone
                }
            }
            _ => PortError::Io(error),
        }
    }
}

fn open_socket() -> anyhow::Result<OwnedFd> {
    // Protocol 0: nothing is received before the socket is bound to its interface.
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
                "no permission to open packet sockets; run as root, or give the program the \
                 capability: setcap cap_net_raw,cap_net_admin+ep PATH/softswitch"
            );
        }
        return Err(error).context("opening a packet socket");
    }
    // SAFETY: the descriptor was just opened and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn bind(socket: &OwnedFd, index: c_int) -> io::Result<()> {
    // SAFETY: all zeros are a valid `sockaddr_ll`.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index;
    // SAFETY: the address and its size belong together.
    check(unsafe {
        libc::bind(
            socket.as_raw_fd(),
            ptr::from_ref(&address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    })
    .map(drop)
}

fn set_option<T>(socket: &OwnedFd, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    // SAFETY: the value and its size belong together.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    })
    .map(drop)
}

fn check(result: c_int) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

impl ReceiveBuffers {
    fn new() -> Box<Self> {
        // SAFETY: all zeros are valid for these C structures and for integers.
        let mut buffers = Box::new(Self {
            slots: vec![0; SLOT * BATCH],
            headers: [VnetHeader::default(); BATCH],
            control: [[0; CONTROL / 8]; BATCH],
            iovecs: unsafe { zeroed() },
            messages: unsafe { zeroed() },
        });
        let b = &mut *buffers;
        for (i, slot) in b.slots.chunks_exact_mut(SLOT).enumerate() {
            b.iovecs[i] = [
                libc::iovec {
                    iov_base: ptr::from_mut(&mut b.headers[i]).cast(),
                    iov_len: size_of::<VnetHeader>(),
                },
                libc::iovec {
                    iov_base: slot[HEADROOM..].as_mut_ptr().cast(),
                    iov_len: MAX_FRAME,
                },
            ];
            let message = &mut b.messages[i].msg_hdr;
            message.msg_iov = b.iovecs[i].as_mut_ptr();
            message.msg_iovlen = 2;
            message.msg_control = b.control[i].as_mut_ptr().cast();
        }
        buffers
    }

    /// The VLAN tag that the kernel took out of a frame, if any.
    fn vlan_tag(&self, i: usize) -> Option<[u8; 4]> {
        let header = &self.messages[i].msg_hdr;
        // SAFETY: the kernel has filled `msg_control` up to `msg_controllen`; CMSG_* stay within.
        let auxdata = unsafe {
            let mut message = libc::CMSG_FIRSTHDR(header);
            loop {
                let c = message.as_ref()?;
                if c.cmsg_level == libc::SOL_PACKET && c.cmsg_type == libc::PACKET_AUXDATA {
                    break ptr::read_unaligned(
                        libc::CMSG_DATA(message).cast::<libc::tpacket_auxdata>(),
                    );
                }
                message = libc::CMSG_NXTHDR(header, message);
            }
        };
        if auxdata.tp_status & TP_STATUS_VLAN_VALID == 0 {
            return None;
        }
        let tpid = match auxdata.tp_status & TP_STATUS_VLAN_TPID_VALID {
            0 => 0x8100,
            _ => auxdata.tp_vlan_tpid,
        };
        let [t0, t1] = tpid.to_be_bytes();
        let [c0, c1] = auxdata.tp_vlan_tci.to_be_bytes();
        Some([t0, t1, c0, c1])
    }
}

impl Port for AfPacket {
    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn fill(&mut self) -> Result<usize, PortError> {
        for message in &mut self.receive.messages {
            message.msg_hdr.msg_controllen = CONTROL;
            message.msg_hdr.msg_flags = 0;
        }
        self.received = 0;
        // SAFETY: every message points to buffers of the lengths given, which outlive the call.
        let result = check(unsafe {
            libc::recvmmsg(
                self.socket.as_raw_fd(),
                self.receive.messages.as_mut_ptr(),
                BATCH as u32,
                libc::MSG_DONTWAIT,
                ptr::null_mut(),
            )
        });
        match result {
            Ok(n) => self.received = n,
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(e) => return Err(self.classify(e)),
        }
        Ok(self.received)
    }

    fn frames(&mut self, each: &mut dyn FnMut(&[u8])) {
        for i in 0..std::mem::take(&mut self.received) {
            let len = self.receive.messages[i].msg_len as usize;
            let Some(len) = len.checked_sub(size_of::<VnetHeader>()) else {
                continue;
            };
            let tag = self.receive.vlan_tag(i);
            let header = self.receive.headers[i];
            let slot = &mut self.receive.slots[i * SLOT..(i + 1) * SLOT];
            match tag {
                Some(tag) if len >= 12 && header == VnetHeader::default() => {
                    slot.copy_within(HEADROOM..HEADROOM + 12, 0);
                    slot[12..16].copy_from_slice(&tag);
                    each(&slot[..HEADROOM + len]);
                }
                _ => {
                    let frame = &mut slot[HEADROOM..HEADROOM + len];
                    let mut tagged = Vec::new();
                    offload::finish(header, frame, &mut self.segment, &mut |frame| match tag {
                        Some(tag) if frame.len() >= 12 => {
                            tagged.clear();
                            tagged.extend_from_slice(&frame[..12]);
                            tagged.extend_from_slice(&tag);
                            tagged.extend_from_slice(&frame[12..]);
                            each(&tagged);
                        }
                        _ => each(frame),
                    });
                }
            }
        }
    }

    fn send(&mut self, frame: Vec<u8>) {
        self.sending.push(frame);
    }

    fn flush(&mut self, spare: &mut Vec<Vec<u8>>) -> Flushed {
        let mut flushed = Flushed::default();
        let mut next = 0;
        while next < self.sending.len() {
            let end = self.sending.len().min(next + BATCH);
            match send_batch(&self.socket, &self.sending[next..end]) {
                Ok(n) => {
                    flushed.sent += n as u64;
                    let bytes = self.sending[next..next + n].iter().map(Vec::len);
                    flushed.sent_bytes += bytes.sum::<usize>() as u64;
                    next += n;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // The first frame of the batch is the culprit.
                Err(e) if e.raw_os_error() == Some(libc::EMSGSIZE) => {
                    flushed.too_long += 1;
                    next += 1;
                }
                Err(e) => match self.classify(e) {
                    PortError::Io(_) => {
                        flushed.busy += 1;
                        next += 1;
                    }
                    failure => {
                        flushed.down += (self.sending.len() - next) as u64;
                        flushed.failure = Some(failure);
                        break;
                    }
                },
            }
        }
        spare.append(&mut self.sending);
        flushed
    }

    fn kernel_drops(&mut self) -> u64 {
        // SAFETY: all zeros are a valid `tpacket_stats`; the size is given.
        unsafe {
            let mut stats: libc::tpacket_stats = zeroed();
            let mut len = size_of::<libc::tpacket_stats>() as libc::socklen_t;
            let result = libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                ptr::from_mut(&mut stats).cast(),
                &mut len,
            );
            if result == 0 {
                u64::from(stats.tp_drops)
            } else {
                0
            }
        }
    }
}

/// Sends frames; gives how many of the first were sent.
fn send_batch(socket: &OwnedFd, frames: &[Vec<u8>]) -> io::Result<usize> {
    let no_offload = VnetHeader::default();
    // SAFETY: all zeros are valid for these C structures.
    let mut iovecs: [[libc::iovec; 2]; BATCH] = unsafe { zeroed() };
    let mut messages: [libc::mmsghdr; BATCH] = unsafe { zeroed() };
    for ((frame, iovec), message) in frames.iter().zip(&mut iovecs).zip(&mut messages) {
        *iovec = [
            libc::iovec {
                iov_base: ptr::from_ref(&no_offload).cast_mut().cast::<c_void>(),
                iov_len: size_of::<VnetHeader>(),
            },
            libc::iovec {
                iov_base: frame.as_ptr().cast_mut().cast(),
                iov_len: frame.len(),
            },
        ];
        message.msg_hdr.msg_iov = iovec.as_mut_ptr();
        message.msg_hdr.msg_iovlen = 2;
    }
    // SAFETY: every message points to a header and a frame that outlive the call, which only reads them.
    check(unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr(),
            frames.len().min(BATCH) as u32,
            libc::MSG_DONTWAIT,
        )
    })
}
