// SPDX-License-Identifier: Apache-2.0
//! The system resources that the agent uses: network namespaces, bpffs, the root cgroup, interfaces.

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

const BPFFS: &str = "/sys/fs/bpf";
const BPF_FS_MAGIC: i64 = 0xcafe_4a11;
const ARPHRD_RAWIP: u16 = 519;
const ARPHRD_IP6GRE: u16 = 823;
/// Types of devices whose packets begin with the IP header: TUN, IP in IP, GRE, and modems.
const WITHOUT_LINK_HEADER: [u16; 7] = [
    libc::ARPHRD_NONE,
    libc::ARPHRD_TUNNEL,
    libc::ARPHRD_TUNNEL6,
    libc::ARPHRD_SIT,
    libc::ARPHRD_IPGRE,
    ARPHRD_IP6GRE,
    ARPHRD_RAWIP,
];

/// Move this thread into a network namespace: a name of `ip netns`, or a path.
///
/// # Errors
/// If there is no such namespace, or without root.
pub fn enter_netns(name: &str) -> Result<()> {
    let path = if name.contains('/') {
        PathBuf::from(name)
    } else {
        Path::new("/run/netns").join(name)
    };
    let file = File::open(&path).with_context(|| {
        format!(
            "unknown network namespace {}: `ip netns list` shows the names",
            path.display()
        )
    })?;
    // SAFETY: the call takes a descriptor, which outlives it.
    if unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
        return Err(io::Error::last_os_error()).with_context(|| {
            format!(
                "cannot enter network namespace {}: run as root",
                path.display()
            )
        });
    }
    Ok(())
}

/// Return the kernel's number of this network namespace.
///
/// # Errors
/// On Linux before 5.14.
pub fn netns_cookie() -> Result<u64> {
    const SO_NETNS_COOKIE: i32 = 71;
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").context("cannot open a socket")?;
    let mut cookie = 0u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the option's value is a u64, and `length` says so.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error())
            .context("SO_NETNS_COOKIE: needs Linux 5.14 or newer");
    }
    Ok(cookie)
}

/// Return the value of a sysctl in this thread's network namespace.
///
/// # Errors
/// If there is no such sysctl.
pub fn sysctl(name: &str) -> Result<String> {
    let path = Path::new("/proc/sys").join(name);
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.trim().to_owned())
}

/// Check that this process may load eBPF programs.
///
/// # Errors
/// Without root.
pub fn require_root() -> Result<()> {
    // SAFETY: the call has no arguments and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        bail!("cannot load eBPF programs: run this command as root");
    }
    Ok(())
}

/// An interface of this network namespace.
#[derive(Clone, Copy, Debug)]
pub struct Interface {
    /// The kernel's number of the interface.
    pub index: u32,
    /// Whether its packets have an Ethernet header, or begin with the IP header.
    pub is_ethernet: bool,
}

/// Return interface `name` of this network namespace.
///
/// # Errors
/// If there is no such interface, or if it is neither an Ethernet device nor an IP tunnel.
pub fn interface(name: &str) -> Result<Interface> {
    let c_name = CString::new(name).context("invalid interface name: it has a NUL")?;
    // SAFETY: the string ends with NUL.
    let index = unsafe { libc::if_nametoindex(c_name.as_ptr()) };
    if index == 0 {
        bail!(
            "unknown interface {name} in this network namespace: `ip link` lists interfaces, --netns selects a namespace"
        );
    }
    match hardware_type(&c_name)? {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Ok(Interface {
            index,
            is_ethernet: true,
        }),
        kind if WITHOUT_LINK_HEADER.contains(&kind) => Ok(Interface {
            index,
            is_ethernet: false,
        }),
        kind => {
            bail!(
                "{name}: neither an Ethernet interface nor an IP tunnel (type {kind}): attach to the one below it"
            )
        }
    }
}

/// Return the type of an interface (`ARPHRD_...`).
fn hardware_type(name: &CStr) -> Result<u16> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").context("cannot open a socket")?;
    // SAFETY: all zeros are a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.to_bytes_with_nul()) {
        *to = *from as libc::c_char;
    }
    // SAFETY: the request has the form that this call requires, and outlives it.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR, &raw mut request) } != 0 {
        return Err(io::Error::last_os_error())
            .with_context(|| format!("cannot read the type of {}", name.to_string_lossy()));
    }
    // SAFETY: the call has filled in this field of the union.
    Ok(unsafe { request.ifr_ifru.ifru_hwaddr.sa_family })
}

/// Return the name of interface `index`, if it still exists in this network namespace.
pub fn interface_name(index: u32) -> Option<String> {
    let mut name = [0u8; libc::IF_NAMESIZE];
    // SAFETY: the buffer has the size that the call requires.
    let found = unsafe { libc::if_indextoname(index, name.as_mut_ptr().cast()) };
    if found.is_null() {
        return None;
    }
    let end = name.iter().position(|b| *b == 0)?;
    String::from_utf8(name[..end].to_vec()).ok()
}

/// Create `pin_dir`, which must be on a bpffs. Mount one at /sys/fs/bpf if necessary.
///
/// # Errors
/// If the folder is not on a bpffs, or one cannot be mounted.
pub fn prepare_pin_dir(pin_dir: &Path) -> Result<()> {
    if pin_dir.starts_with(BPFFS) && !on_bpffs(Path::new(BPFFS)) {
        if in_private_sysfs() {
            bail!(
                "a bpffs mounted here would vanish with this mount namespace (of `ip netns exec` or mnexec): \
                 run this command from outside, with --netns NAME or --netns /proc/PID/ns/net"
            );
        }
        mount_bpffs()?;
    }
    fs::create_dir_all(pin_dir).with_context(|| format!("cannot create {}", pin_dir.display()))?;
    if !on_bpffs(pin_dir) {
        let _ = fs::remove_dir(pin_dir);
        bail!(
            "{}: not on a bpffs: use a --pin-dir below {BPFFS}",
            pin_dir.display()
        );
    }
    Ok(())
}

/// Return whether /sys was mounted for a single command: `ip netns exec` mounts one whose source is the namespace's
/// name, and mnexec mounts one over the system's.
fn in_private_sysfs() -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let sources: Vec<&str> = mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ');
            let source = fields.next()?;
            (fields.next()? == "/sys").then_some(source)
        })
        .collect();
    sources.len() > 1
        || sources
            .iter()
            .any(|source| Path::new("/run/netns").join(source).exists())
}

fn mount_bpffs() -> Result<()> {
    let path = CString::new(BPFFS).expect("the path has no NUL");
    // SAFETY: the strings end with NUL, and bpffs accepts a null pointer as data.
    let result = unsafe {
        libc::mount(
            c"bpf".as_ptr(),
            path.as_ptr(),
            c"bpf".as_ptr(),
            0,
            std::ptr::null(),
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error())
            .with_context(|| format!("cannot mount a bpffs: try: mount -t bpf bpf {BPFFS}"));
    }
    Ok(())
}

fn on_bpffs(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt as _;
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: statfs is plain data, which the call fills.
    unsafe {
        let mut stat: libc::statfs = std::mem::zeroed();
        libc::statfs(path.as_ptr(), &mut stat) == 0 && stat.f_type as i64 == BPF_FS_MAGIC
    }
}

/// Open the root of the cgroup v2 hierarchy, below which every server runs.
///
/// # Errors
/// If the hierarchy is not mounted, or hidden.
pub fn cgroup_root() -> Result<File> {
    let mounts =
        fs::read_to_string("/proc/self/mounts").context("cannot read /proc/self/mounts")?;
    let root = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let path = fields.nth(1)?;
        (fields.next()? == "cgroup2").then_some(path)
    });
    let Some(root) = root else {
        bail!(
            "cgroup v2 is not mounted here: `ip netns exec` hides it, so run this command from outside, with \
             --netns NAME; otherwise: mount -t cgroup2 none /sys/fs/cgroup"
        );
    };
    File::open(root).with_context(|| {
        format!("cgroup v2 at {root}: hidden in this mount namespace: run this command from outside, with --netns")
    })
}
