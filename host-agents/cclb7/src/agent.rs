// SPDX-License-Identifier: Apache-2.0
//! Attaching, adopting and detaching the eBPF programs.
//!
//! Programs, maps and links are pinned in a folder of bpffs, so they outlive this process: the programs write cookies
//! and count flows whether or not an agent runs. A later `attach` with the same folder adopts them.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use aya::maps::{Array, HashMap, Map, MapData};
use aya::programs::tc::{NlOptions, SchedClassifier, TcAttachOptions, TcAttachType, TcError};
use aya::programs::{CgroupSockopt, ProgramError, SockOps, tc};
use aya::{Ebpf, EbpfLoader};

use crate::abi::{Config, OBJECT, Server, SynKey};
use crate::bpf::{self, CgroupHook};
use crate::kfunc;
use crate::state::State;
use crate::system;

/// Sizes of the maps that the operator can choose.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Most connections at a time.
    pub flows: u32,
    /// Most handshakes and recently closed connections at a time.
    pub handshakes: u32,
}

/// The parameters of [`attach`].
#[derive(Clone, Debug)]
pub struct Attachment {
    /// The server's interface: an Ethernet device or a tunnel.
    pub interface: String,
    /// Listening ports, each of which is a server (SID).
    pub ports: Vec<u16>,
    /// Assumed bandwidth of a connection, in bit/s.
    pub bandwidth: u64,
    /// Remaining bytes above which a response counts in N_FF.
    pub look_ahead: u64,
    /// Keys of SYN cookies by epoch; `None` without the defence against SYN floods.
    pub syn_keys: Option<[SynKey; 2]>,
    /// Map sizes, which adoption does not change.
    pub sizes: Sizes,
    /// Folder in bpffs for pins.
    pub pin_dir: PathBuf,
}

/// How [`attach`] found the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attached {
    /// Not attached before; loaded and attached now.
    Fresh,
    /// Pinned already; their flows continue.
    Adopted,
}

const MAPS: [&str; 6] = [
    "config",
    "servers",
    "flows",
    "handshakes",
    "packets",
    "syn_keys",
];
const CLASSIFIERS: [(&str, TcAttachType); 2] = [
    ("cclb7_egress", TcAttachType::Egress),
    ("cclb7_ingress", TcAttachType::Ingress),
];
/// Priority before that of other filters by default, so that the programs see packets as the wire and the kernel do.
const FILTER: NlOptions = NlOptions {
    priority: 4000,
    handle: 1,
};
/// Bandwidth in bit/s at which a unit of RPT (8 us) is one byte.
const BANDWIDTH_PER_UNIT_BYTE: u64 = 1_000_000;

/// Load the programs without attaching them.
///
/// # Errors
/// If the kernel rejects the maps.
pub fn load(sizes: Sizes) -> Result<Ebpf> {
    system::require_root()?;
    EbpfLoader::new()
        .set_max_entries("flows", sizes.flows)
        .set_max_entries("handshakes", sizes.handshakes)
        .load(&kfunc::resolve(OBJECT))
        .map_err(|error| explain(error.into()))
        .context(
            "cannot load the eBPF maps: use Linux 5.15 or newer with BTF (CONFIG_DEBUG_INFO_BTF)",
        )
}

/// Attach the programs as `wanted`, or adopt attached ones. They write cookies until [`detach`], also after this
/// process has ended.
///
/// # Errors
/// If the system lacks a feature or permission, or if the pinned programs are of another version or network
/// namespace.
pub fn attach(wanted: &Attachment) -> Result<Attached> {
    system::require_root()?;
    if wanted.syn_keys.is_some() {
        require_syn_cookies()?;
    }
    let interface = system::interface(&wanted.interface)?;
    let config = Config {
        netns_cookie: system::netns_cookie()?,
        look_ahead: wanted.look_ahead,
        unit_bytes: wanted.bandwidth / BANDWIDTH_PER_UNIT_BYTE,
        ifindex: interface.index,
        build: crc32fast::hash(OBJECT),
        is_ethernet: interface.is_ethernet.into(),
        ..Config::default()
    };
    // First: where the cgroup hierarchy is hidden, pins would not last either.
    let cgroup = system::cgroup_root()?;
    system::prepare_pin_dir(&wanted.pin_dir)?;
    let attached = if wanted.pin_dir.join("config").exists() {
        adopt(wanted, config)?;
        Attached::Adopted
    } else {
        let fresh = attach_fresh(wanted, config, &cgroup);
        if fresh.is_err() {
            let _ = remove_pins(&wanted.pin_dir);
        }
        fresh?;
        Attached::Fresh
    };
    Ok(attached)
}

/// Check that the kernel can create connections from SYN cookies in this network namespace.
fn require_syn_cookies() -> Result<()> {
    if !kfunc::is_available() {
        bail!(
            "--syn-keys: this kernel cannot create connections from SYN cookies: use Linux 6.9 or newer with BTF, or leave out --syn-keys"
        );
    }
    if system::sysctl("net/ipv4/tcp_syncookies")? == "0" {
        bail!(
            "--syn-keys: net.ipv4.tcp_syncookies is 0, so the kernel rejects SYN cookies: set it to 1"
        );
    }
    Ok(())
}

fn attach_fresh(wanted: &Attachment, config: Config, cgroup: &File) -> Result<()> {
    let mut ebpf = load(wanted.sizes)?;
    configure(&mut ebpf, config, wanted)?;
    for name in MAPS {
        let map = ebpf
            .map(name)
            .ok_or_else(|| anyhow!("missing map {name} in the eBPF object"))?;
        pin_map(map, &wanted.pin_dir.join(name))
            .with_context(|| format!("cannot pin map {name}"))?;
    }
    // Attach the socket programs first, so that no cookie is written on a connection whose end would be missed.
    let socket_ops: &mut SockOps = program(&mut ebpf, "cclb7_sockops")?;
    socket_ops.load().map_err(|e| explain(e.into()))?;
    let pin = wanted.pin_dir.join("sockops");
    bpf::link_to_cgroup(
        socket_ops.fd()?.as_fd(),
        cgroup.as_fd(),
        CgroupHook::SockOps,
        &pin,
    )
    .context(CGROUP_HINT)?;

    let report: &mut CgroupSockopt = program(&mut ebpf, "cclb7_report")?;
    report.load().map_err(|e| explain(e.into()))?;
    let pin = wanted.pin_dir.join("report");
    bpf::link_to_cgroup(
        report.fd()?.as_fd(),
        cgroup.as_fd(),
        CgroupHook::SetSockOpt,
        &pin,
    )
    .context(CGROUP_HINT)?;

    for (name, direction) in CLASSIFIERS {
        let classifier: &mut SchedClassifier = program(&mut ebpf, name)?;
        classifier.load().map_err(|e| explain(e.into()))?;
        classifier
            .pin(wanted.pin_dir.join(name))
            .with_context(|| format!("cannot pin {name}"))?;
        // If the pins were removed by hand, an old filter may be left, which would process packets a second time.
        let _ = tc::qdisc_detach_program(&wanted.interface, direction, name);
        attach_filter(classifier, &wanted.interface, direction)?;
    }
    Ok(())
}

const CGROUP_HINT: &str = "cannot attach to the root cgroup: use cgroup v2 with CONFIG_CGROUP_BPF, \
     and at most 64 agents on one kernel";

fn adopt(wanted: &Attachment, config: Config) -> Result<()> {
    let mut state = State::open(&wanted.pin_dir)?;
    let found = state.config()?;
    if found.build != config.build {
        bail!(
            "{}: has the programs of another version: drain the server, then run: frontage-cclb7 detach --pin-dir {0}",
            wanted.pin_dir.display()
        );
    }
    if found.netns_cookie != config.netns_cookie {
        bail!(
            "{}: belongs to the agent of another network namespace: give each agent its own --pin-dir",
            wanted.pin_dir.display()
        );
    }
    if found.ifindex != config.ifindex {
        remove_filters(found.ifindex)?;
    }
    for (name, direction) in CLASSIFIERS {
        let mut classifier = SchedClassifier::from_pin(wanted.pin_dir.join(name))
            .with_context(|| format!("cannot open pinned {name}"))?;
        attach_filter(&mut classifier, &wanted.interface, direction)?;
    }
    state.reconfigure(config, &wanted.ports)?;
    state.set_syn_keys(wanted.syn_keys.unwrap_or_default())
}

/// Remove everything that [`attach`] created. From then on, connections with cookies get raw timestamps, which their
/// clients may reject as old: drain the server first.
///
/// # Errors
/// If nothing is attached, or the programs belong to another network namespace.
pub fn detach(pin_dir: &Path) -> Result<()> {
    system::require_root()?;
    if !pin_dir.join("config").exists() {
        bail!("{}: nothing is attached", pin_dir.display());
    }
    let config = State::open(pin_dir)?.config()?;
    if config.netns_cookie != system::netns_cookie()? {
        bail!(
            "{0}: belongs to another network namespace: name it with --netns, or if it no longer exists: rm -r {0}",
            pin_dir.display()
        );
    }
    remove_filters(config.ifindex)?;
    remove_pins(pin_dir)
}

/// Detach both filters from the interface with this index, if it still exists.
fn remove_filters(ifindex: u32) -> Result<()> {
    let Some(interface) = system::interface_name(ifindex) else {
        return Ok(());
    };
    for (name, direction) in CLASSIFIERS {
        match tc::qdisc_detach_program(&interface, direction, name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error)
                    .with_context(|| format!("cannot detach {name} from {interface}"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn remove_pins(pin_dir: &Path) -> Result<()> {
    for entry in fs::read_dir(pin_dir)? {
        let path = entry?.path();
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    fs::remove_dir(pin_dir).with_context(|| format!("cannot remove {}", pin_dir.display()))
}

fn configure(ebpf: &mut Ebpf, config: Config, wanted: &Attachment) -> Result<()> {
    let mut settings: Array<_, Config> = map(ebpf, "config")?;
    settings.set(0, config, 0)?;
    let mut syn_keys: Array<_, SynKey> = map(ebpf, "syn_keys")?;
    for (epoch, key) in (0..).zip(wanted.syn_keys.unwrap_or_default()) {
        syn_keys.set(epoch, key, 0)?;
    }
    let mut servers: HashMap<_, u16, Server> = map(ebpf, "servers")?;
    for port in &wanted.ports {
        servers.insert(port, Server::default(), 0)?;
    }
    Ok(())
}

fn map<'a, M>(ebpf: &'a mut Ebpf, name: &str) -> Result<M>
where
    M: TryFrom<&'a mut Map, Error = aya::maps::MapError>,
{
    let map = ebpf
        .map_mut(name)
        .ok_or_else(|| anyhow!("missing map {name} in the eBPF object"))?;
    Ok(M::try_from(map)?)
}

/// Return the program `name` as the type that the caller expects.
///
/// # Errors
/// If there is no such program, or it has another type.
pub fn program<'a, P>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut P>
where
    &'a mut P: TryFrom<&'a mut aya::programs::Program, Error = ProgramError>,
{
    let program = ebpf
        .program_mut(name)
        .ok_or_else(|| anyhow!("missing program {name} in the eBPF object"))?;
    Ok(program.try_into()?)
}

fn pin_map(map: &Map, path: &Path) -> Result<()> {
    let data: &MapData = match map {
        Map::Array(d) | Map::HashMap(d) | Map::LruHashMap(d) | Map::PerCpuArray(d) => d,
        _ => bail!("unknown type of map"),
    };
    Ok(data.pin(path)?)
}

/// Attach a filter through clsact, which kernels before 6.6 have, too. The filter stays attached when this process
/// ends.
fn attach_filter(
    classifier: &mut SchedClassifier,
    interface: &str,
    direction: TcAttachType,
) -> Result<()> {
    // This fails if another program has created the qdisc already, which is fine.
    let _ = tc::qdisc_add_clsact(interface);
    match classifier.attach_with_options(interface, direction, TcAttachOptions::Netlink(FILTER)) {
        Ok(id) => {
            std::mem::forget(classifier.take_link(id)?);
            Ok(())
        }
        Err(ProgramError::TcError(TcError::NetlinkError { io_error }))
            if io_error.kind() == io::ErrorKind::AlreadyExists =>
        {
            Ok(())
        }
        Err(error) => Err(error).with_context(|| {
            format!("cannot attach a filter to {interface}: the kernel must have CONFIG_NET_SCH_INGRESS and CONFIG_NET_CLS_BPF")
        }),
    }
}

fn explain(error: anyhow::Error) -> anyhow::Error {
    error.context(
        "the kernel rejected an eBPF program: use Linux 5.15 or newer with BTF in /sys/kernel/btf/vmlinux, and \
         run as root (CAP_BPF)",
    )
}
