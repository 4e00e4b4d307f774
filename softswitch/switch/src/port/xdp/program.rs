// SPDX-License-Identifier: Apache-2.0
//! The XDP program that passes the frames of a queue to the queue's socket, and its attachment to an interface.

use std::ffi::c_long;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use anyhow::{Context, bail};

use crate::port::socket::Interface;

const BPF_MAP_CREATE: c_long = 0;
const BPF_MAP_UPDATE_ELEM: c_long = 2;
const BPF_PROG_LOAD: c_long = 5;
const BPF_LINK_CREATE: c_long = 28;

const BPF_MAP_TYPE_XSKMAP: u32 = 17;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_XDP: u32 = 37;
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

/// Offset of `rx_queue_index` in the program's context.
const RX_QUEUE_INDEX: u64 = 16;
/// The verdict for frames of a queue without a socket: the kernel handles them.
const XDP_PASS: u64 = 2;
/// The helper `bpf_redirect_map`.
const REDIRECT_MAP: u64 = 51;

/// An attached program; it is detached when this value is dropped.
#[derive(Debug)]
pub struct Program {
    sockets: OwnedFd,
    _link: OwnedFd,
    is_native: bool,
}

impl Program {
    /// Attaches the program to an interface with so many queues, in the driver if possible.
    ///
    /// # Errors
    /// If the permission is missing, or the interface has an XDP program.
    pub fn attach(interface: &Interface, queues: u32) -> anyhow::Result<Self> {
        let sockets = create_map(queues).context("creating a map of sockets")?;
        let program = load(&sockets).context("loading an XDP program")?;
        let attach = |flags| attach(&program, interface, flags);
        let (link, is_native) = match attach(XDP_FLAGS_DRV_MODE) {
            Ok(link) => (link, true),
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) => bail!(
                "the interface has an XDP program already: detach it, for example: ip link set NAME xdp off"
            ),
            Err(_) => {
                let link = attach(XDP_FLAGS_SKB_MODE).context("attaching an XDP program")?;
                (link, false)
            }
        };
        Ok(Self {
            sockets,
            _link: link,
            is_native,
        })
    }

    /// Returns true if the driver calls the program.
    pub fn is_native(&self) -> bool {
        self.is_native
    }

    /// Passes the frames of a queue to a socket.
    ///
    /// # Errors
    /// The system's.
    pub fn pass_queue_to(&self, queue: u32, socket: &impl AsFd) -> anyhow::Result<()> {
        #[repr(C)]
        struct Update {
            map_fd: u32,
            padding: u32,
            key: u64,
            value: u64,
            flags: u64,
        }
        let value = descriptor(socket);
        let mut update = Update {
            map_fd: descriptor(&self.sockets),
            padding: 0,
            key: (&raw const queue) as u64,
            value: (&raw const value) as u64,
            flags: 0,
        };
        // SAFETY: key and value have the sizes of the map's.
        unsafe { bpf(BPF_MAP_UPDATE_ELEM, &mut update) }
            .with_context(|| format!("passing queue {queue} to its socket"))?;
        Ok(())
    }
}

fn create_map(queues: u32) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Create {
        map_type: u32,
        key_size: u32,
        value_size: u32,
        max_entries: u32,
    }
    let mut create = Create {
        map_type: BPF_MAP_TYPE_XSKMAP,
        key_size: 4,
        value_size: 4,
        max_entries: queues,
    };
    // SAFETY: the attributes contain no pointers.
    unsafe { new_descriptor(BPF_MAP_CREATE, &mut create) }
}

/// Loads `return bpf_redirect_map(&sockets, context->rx_queue_index, XDP_PASS)`.
fn load(sockets: &OwnedFd) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Load {
        prog_type: u32,
        insn_cnt: u32,
        insns: u64,
        license: u64,
    }
    let map = u64::from(descriptor(sockets));
    // An instruction: 8 bits of code, 4 of destination, 4 of source, 16 of offset, 32 of operand, from the lowest bit on.
    let instructions: [u64; 6] = [
        0x61 | 2 << 8 | 1 << 12 | RX_QUEUE_INDEX << 16, // r2 = *(u32 *)(r1 + 16)
        0x18 | 1 << 8 | 1 << 12 | map << 32,            // r1 = map
        0,                                              // the upper half of its address
        0xb7 | 3 << 8 | XDP_PASS << 32,                 // r3 = XDP_PASS
        0x85 | REDIRECT_MAP << 32,                      // r0 = bpf_redirect_map(r1, r2, r3)
        0x95,                                           // return r0
    ];
    let mut load = Load {
        prog_type: BPF_PROG_TYPE_XDP,
        insn_cnt: instructions.len() as u32,
        insns: instructions.as_ptr() as u64,
        license: c"Apache-2.0".as_ptr() as u64,
    };
    // SAFETY: the instructions and the string outlive the call.
    unsafe { new_descriptor(BPF_PROG_LOAD, &mut load) }
}

fn attach(program: &OwnedFd, interface: &Interface, flags: u32) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Create {
        prog_fd: u32,
        target_ifindex: u32,
        attach_type: u32,
        flags: u32,
    }
    let mut create = Create {
        prog_fd: descriptor(program),
        target_ifindex: interface.index().cast_unsigned(),
        attach_type: BPF_XDP,
        flags,
    };
    // SAFETY: the attributes contain no pointers.
    unsafe { new_descriptor(BPF_LINK_CREATE, &mut create) }
}

fn descriptor(of: &impl AsFd) -> u32 {
    of.as_fd().as_raw_fd().cast_unsigned()
}

/// Makes a call of bpf(2) that returns a new descriptor.
///
/// # Safety
/// As for [`bpf`].
unsafe fn new_descriptor<T>(command: c_long, attributes: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise.
    let fd = unsafe { bpf(command, attributes) }?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Calls bpf(2).
///
/// # Safety
/// The attributes must be those of the command, and their pointers must be valid.
unsafe fn bpf<T>(command: c_long, attributes: &mut T) -> io::Result<i32> {
    // SAFETY: the attributes and their size belong together.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size_of::<T>() as c_long) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    i32::try_from(result).map_err(io::Error::other)
}
