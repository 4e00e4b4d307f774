// SPDX-License-Identifier: Apache-2.0
//! Commands of bpf(2) that aya does not offer in the required form.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

const BPF_OBJ_PIN: i64 = 6;
const BPF_PROG_TEST_RUN: i64 = 10;
const BPF_LINK_CREATE: i64 = 28;
const HEADROOM: usize = 256;

/// Attach type of a cgroup program (`enum bpf_attach_type`).
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub enum CgroupHook {
    /// Events of TCP sockets.
    SockOps = 3,
    /// setsockopt(2).
    SetSockOpt = 22,
}

/// The result of a test run.
#[derive(Debug)]
pub struct Outcome {
    /// The program's verdict.
    pub verdict: i32,
    /// The packet after the run.
    pub packet: Vec<u8>,
    /// Nanoseconds per run, as measured by the kernel.
    pub nanoseconds: u32,
}

/// Attach `program` to `cgroup` in addition to other programs, and pin the link at `path`, which keeps it attached.
///
/// # Errors
/// If the kernel refuses.
pub fn link_to_cgroup(
    program: BorrowedFd<'_>,
    cgroup: BorrowedFd<'_>,
    hook: CgroupHook,
    path: &Path,
) -> io::Result<()> {
    #[repr(C)]
    struct Create {
        prog_fd: u32,
        target_fd: u32,
        attach_type: u32,
        flags: u32,
    }
    #[repr(C)]
    struct Pin {
        pathname: u64,
        bpf_fd: u32,
        file_flags: u32,
    }
    let mut create = Create {
        prog_fd: program.as_raw_fd() as u32,
        target_fd: cgroup.as_raw_fd() as u32,
        attach_type: hook as u32,
        flags: 0,
    };
    let fd = bpf(BPF_LINK_CREATE, &mut create)?;
    // SAFETY: the kernel has just returned this descriptor, which nothing else owns.
    let link = unsafe { OwnedFd::from_raw_fd(fd as i32) };
    let pathname = CString::new(path.as_os_str().as_bytes())?;
    let mut pin = Pin {
        pathname: pathname.as_ptr() as u64,
        bpf_fd: link.as_raw_fd() as u32,
        file_flags: 0,
    };
    bpf(BPF_OBJ_PIN, &mut pin)?;
    Ok(())
}

/// Run `program` on `packet`, an Ethernet frame, `repeat` times without a network.
///
/// # Errors
/// If the kernel refuses.
pub fn test_run(program: BorrowedFd<'_>, packet: &[u8], repeat: u32) -> io::Result<Outcome> {
    #[repr(C)]
    #[derive(Default)]
    struct TestRun {
        prog_fd: u32,
        retval: u32,
        data_size_in: u32,
        data_size_out: u32,
        data_in: u64,
        data_out: u64,
        repeat: u32,
        duration: u32,
        ctx_size_in: u32,
        ctx_size_out: u32,
        ctx_in: u64,
        ctx_out: u64,
        flags: u32,
        cpu: u32,
        batch_size: u32,
        padding: u32,
    }
    let mut out = vec![0; packet.len() + HEADROOM];
    let mut run = TestRun {
        prog_fd: program.as_raw_fd() as u32,
        data_size_in: packet.len() as u32,
        data_size_out: out.len() as u32,
        data_in: packet.as_ptr() as u64,
        data_out: out.as_mut_ptr() as u64,
        repeat,
        ..TestRun::default()
    };
    bpf(BPF_PROG_TEST_RUN, &mut run)?;
    out.truncate(run.data_size_out as usize);
    Ok(Outcome {
        verdict: run.retval as i32,
        packet: out,
        nanoseconds: run.duration,
    })
}

/// `T` is the part of `union bpf_attr` that `command` reads; every pointer in it must be valid during the call.
fn bpf<T>(command: i64, attributes: &mut T) -> io::Result<i64> {
    // SAFETY: the attributes are of the size given, and private functions above give them valid pointers.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *attributes, size_of::<T>()) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
