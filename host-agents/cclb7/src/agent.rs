// SPDX-License-Identifier: Apache-2.0
//! Attaching, adopting and detaching the eBPF programs.
//!
//! Programs, maps and links are pinned in a folder of bpffs, so that they outlive this process: cookies are written
//! and flows counted whether or not an agent runs. A later `attach` with the same folder adopts them.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use aya::maps::{Array, HashMap, Map, MapData};
use aya::programs::tc::{NlOptions, SchedClassifier, TcAttachOptions, TcAttachType, TcError};
use aya::programs::{CgroupSockopt, ProgramError, SockOps, tc};
use aya::{Ebpf, EbpfLoader};

use crate::abi::{Config, OBJECT, Server};
use crate::bpf::{self, CgroupHook};
use crate::state::State;
use crate::system;

/// Tables whose size the operator chooses.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Connections at a time.
    pub flows: u32,
    /// Handshakes and recently closed connections remembered at a time.
    pub handshakes: u32,
}

/// What to attach to what.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// The server's Ethernet interface.
    pub interface: String,
    /// Listening ports, each of them a server (SID).
    pub ports: Vec<u16>,
    /// Assumed bandwidth of a connection, bits/s.
    pub bandwidth: u64,
    /// Remaining bytes above which a response counts in N_FF.
    pub look_ahead: u64,
    /// Table sizes, which an adoption cannot change.
    pub sizes: Sizes,
    /// Folder in bpffs.
    pub pin_dir: PathBuf,
}

/// Whether the programs were there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attached {
    /// Loaded and attached now.
    Fresh,
    /// Found pinned; flows go on as they were.
    Adopted,
}

const MAPS: [&str; 5] = ["config", "servers", "flows", "handshakes", "packets"];
const CLASSIFIERS: [(&str, TcAttachType); 2] = [
    ("cclb7_egress", TcAttachType::Egress),
    ("cclb7_ingress", TcAttachType::Ingress),
];
/// Before other filters' default, so that they see what the wire and the kernel see.
const FILTER: NlOptions = NlOptions {
    priority: 4000,
    handle: 1,
};
/// Bits per second at which a unit of RPT (8 us) is one byte.
const BANDWIDTH_PER_UNIT_BYTE: u64 = 1_000_000;

/// Loads the programs without attaching them.
pub fn load(sizes: Sizes) -> Result<Ebpf> {
    system::require_root()?;
    EbpfLoader::new()
        .set_max_entries("flows", sizes.flows)
        .set_max_entries("handshakes", sizes.handshakes)
        .load(OBJECT)
        .map_err(|error| explain(error.into()))
        .context("cannot load the eBPF maps; they need Linux 5.15 or newer with BTF (CONFIG_DEBUG_INFO_BTF)")
}

/// Writes cookies on the interface of `wanted` from now on, also after this process has gone.
pub fn attach(wanted: &Attachment) -> Result<Attached> {
    system::require_root()?;
    let ifindex = system::interface_index(&wanted.interface)?;
    let config = Config {
        netns_cookie: system::netns_cookie()?,
        look_ahead: wanted.look_ahead,
        unit_bytes: wanted.bandwidth / BANDWIDTH_PER_UNIT_BYTE,
        ifindex,
        build: crc32fast::hash(OBJECT),
    };
    // First, because without it this is a mount namespace in which pins would not last either.
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

fn attach_fresh(wanted: &Attachment, config: Config, cgroup: &File) -> Result<()> {
    let mut ebpf = load(wanted.sizes)?;
    configure(&mut ebpf, config, &wanted.ports)?;
    for name in MAPS {
        let map = ebpf
            .map(name)
            .ok_or_else(|| anyhow!("the object has no map {name}"))?;
        pin_map(map, &wanted.pin_dir.join(name))
            .with_context(|| format!("cannot pin map {name}"))?;
    }
    // The sockets' programs first: a cookie is only written where the connection's end will be seen.
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
        // A filter left behind by pins that were removed by hand would do the work twice.
        let _ = tc::qdisc_detach_program(&wanted.interface, direction, name);
        attach_filter(classifier, &wanted.interface, direction)?;
    }
    Ok(())
}

const CGROUP_HINT: &str = "cannot attach to the root cgroup; needs cgroup v2 with CONFIG_CGROUP_BPF, \
     and at most 64 agents on one kernel";

fn adopt(wanted: &Attachment, config: Config) -> Result<()> {
    let mut state = State::open(&wanted.pin_dir)?;
    let found = state.config()?;
    if found.build != config.build {
        bail!(
            "{} holds the programs of another version; drain the server, then: frontage-cclb7 detach --pin-dir {0}",
            wanted.pin_dir.display()
        );
    }
    if found.netns_cookie != config.netns_cookie {
        bail!(
            "{} belongs to the agent of another network namespace; give each its own --pin-dir",
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
    state.reconfigure(config, &wanted.ports)
}

/// Removes everything that `attach` made. Connections that have seen cookies get raw timestamps from now on, which
/// their clients may take for old ones: drain first.
pub fn detach(pin_dir: &Path) -> Result<()> {
    system::require_root()?;
    if !pin_dir.join("config").exists() {
        bail!("nothing is attached with --pin-dir {}", pin_dir.display());
    }
    let config = State::open(pin_dir)?.config()?;
    if config.netns_cookie != system::netns_cookie()? {
        bail!(
            "{0} is of another network namespace; name it with --netns, or, if it is no more: rm -r {0}",
            pin_dir.display()
        );
    }
    remove_filters(config.ifindex)?;
    remove_pins(pin_dir)
}

/// Detaches both filters from the interface of that index, if it still exists.
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

fn configure(ebpf: &mut Ebpf, config: Config, ports: &[u16]) -> Result<()> {
    let mut settings: Array<_, Config> = map(ebpf, "config")?;
    settings.set(0, config, 0)?;
    let mut servers: HashMap<_, u16, Server> = map(ebpf, "servers")?;
    for port in ports {
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
        .ok_or_else(|| anyhow!("the object has no map {name}"))?;
    Ok(M::try_from(map)?)
}

/// The program called `name`, of whatever kind the caller expects.
pub fn program<'a, P>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut P>
where
    &'a mut P: TryFrom<&'a mut aya::programs::Program, Error = ProgramError>,
{
    let program = ebpf
        .program_mut(name)
        .ok_or_else(|| anyhow!("the object has no program {name}"))?;
    Ok(program.try_into()?)
}

fn pin_map(map: &Map, path: &Path) -> Result<()> {
    let data: &MapData = match map {
        Map::Array(d) | Map::HashMap(d) | Map::LruHashMap(d) | Map::PerCpuArray(d) => d,
        _ => bail!("a map of a kind that the agent does not use"),
    };
    Ok(data.pin(path)?)
}

/// Attaches by clsact, which also kernels before 6.6 have. The filter stays when this process goes.
fn attach_filter(
    classifier: &mut SchedClassifier,
    interface: &str,
    direction: TcAttachType,
) -> Result<()> {
    // It is an error if another program has made one already, and then there is nothing to do.
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
            format!("cannot attach a filter to {interface}; needs CONFIG_NET_SCH_INGRESS and CONFIG_NET_CLS_BPF")
        }),
    }
}

fn explain(error: anyhow::Error) -> anyhow::Error {
    error.context(
        "the kernel refused an eBPF program; it needs Linux 5.15 or newer, root (CAP_BPF), and BTF in \
         /sys/kernel/btf/vmlinux",
    )
}
