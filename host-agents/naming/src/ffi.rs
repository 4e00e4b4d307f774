// SPDX-License-Identifier: Apache-2.0
//! The C library, which `include/artemis.h` documents.
//!
//! It concatenates the lists that glibc's `getaddrinfo` returns for numeric hosts. So services, hints and error codes
//! are those of glibc, and `freeaddrinfo` frees the result element by element.

use std::ffi::{CStr, c_char, c_int};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::ptr;
use std::sync::OnceLock;

use libc::{addrinfo, sockaddr, socklen_t};

use crate::{Name, Settings};

mod list;

use list::List;

/// The host has no address of the requested family (`netdb.h`). Crate libc lacks this constant.
const EAI_ADDRFAMILY: c_int = -9;

/// Return the environment's settings as of the first call, which prints an error to the standard error stream if they
/// are invalid.
pub fn settings() -> Option<&'static Settings> {
    static SETTINGS: OnceLock<Option<Settings>> = OnceLock::new();
    let read = || {
        let settings = Settings::from_environment();
        settings
            .inspect_err(|error| eprintln!("libartemis: {error}"))
            .ok()
    };
    SETTINGS.get_or_init(read).as_ref()
}

/// See `artemis.h`.
///
/// # Safety
/// As for `getaddrinfo`: strings end with NUL or are null, `hints` is valid or null, and `res` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getaddrinfosid(
    node: *const c_char,
    service: *const c_char,
    hints: *const addrinfo,
    res: *mut *mut addrinfo,
) -> c_int {
    // SAFETY: the caller's promise.
    let (hints, service, node) = unsafe {
        let text = |text: *const c_char| (!text.is_null()).then(|| CStr::from_ptr(text));
        (hints.as_ref(), text(service), text(node))
    };
    let result = look_up(node, service, &hints.copied().unwrap_or_else(default_hints));
    result.map_or_else(
        |code| code,
        |list| {
            // SAFETY: the caller's promise.
            unsafe { *res = list.into_raw() };
            0
        },
    )
}

/// Return the hints that glibc uses for a null pointer.
fn default_hints() -> addrinfo {
    // SAFETY: numbers and null pointers.
    let zero: addrinfo = unsafe { std::mem::zeroed() };
    addrinfo {
        ai_flags: libc::AI_V4MAPPED | libc::AI_ADDRCONFIG,
        ..zero
    }
}

fn look_up(node: Option<&CStr>, service: Option<&CStr>, hints: &addrinfo) -> Result<List, c_int> {
    let numeric = addrinfo {
        ai_flags: hints.ai_flags | libc::AI_NUMERICHOST,
        ..*hints
    };
    // glibc handles numeric hosts in all their forms, a null host, and invalid hints.
    match List::of(node, service, if node.is_some() { &numeric } else { hints }) {
        Err(libc::EAI_NONAME) if hints.ai_flags & libc::AI_NUMERICHOST == 0 => {}
        result => return result,
    }
    let name = node.and_then(|node| node.to_str().ok());
    let name = name
        .and_then(|name| Name::new(name).ok())
        .ok_or(libc::EAI_NONAME)?;
    let Some(settings) = settings() else {
        set_errno(libc::EINVAL);
        return Err(libc::EAI_SYSTEM);
    };
    let mut addresses = settings.instances.service_addresses(&name);
    if addresses.is_empty() {
        return Err(libc::EAI_NONAME);
    }
    addresses.sort_by_key(|address| (!is_reachable(*address), address.is_ipv4()));
    let mut numeric = numeric;
    // IPv4 addresses are mapped to IPv6 if there is no IPv6 address, or if AI_ALL requests it (getaddrinfo(3)).
    if addresses.iter().any(IpAddr::is_ipv6) && hints.ai_flags & libc::AI_ALL == 0 {
        numeric.ai_flags &= !libc::AI_V4MAPPED;
    }
    let (mut list, mut last_error) = (List::default(), EAI_ADDRFAMILY);
    for address in addresses {
        match List::of_address(address, service, &numeric) {
            Ok(more) => list.append(more),
            // The family was not requested, or this host lacks it, or the service must be numeric and is not.
            Err(code @ (EAI_ADDRFAMILY | libc::EAI_NONAME)) => last_error = code,
            Err(code) => return Err(code),
        }
    }
    let port = list.port().ok_or(last_error)?;
    if let Some(mut first) = cached(settings, &name, port, &numeric) {
        first.append(list);
        list = first;
    }
    if hints.ai_flags & libc::AI_CANONNAME != 0 {
        list.set_canonical_name(name.as_str())?;
    }
    Ok(list)
}

/// Return the cached address of the service, for datagrams only: it is a QUIC server's preferred address.
fn cached(settings: &Settings, name: &Name, port: u16, numeric: &addrinfo) -> Option<List> {
    if ![0, libc::SOCK_DGRAM].contains(&numeric.ai_socktype) {
        return None;
    }
    let unicast = settings.cache.get(name, port).ok()??;
    let datagrams = addrinfo {
        ai_socktype: libc::SOCK_DGRAM,
        ..*numeric
    };
    let port = std::ffi::CString::new(unicast.port().to_string()).expect("digits");
    List::of_address(unicast.ip(), Some(&port), &datagrams).ok()
}

/// Return whether there is a route to `address` (RFC 6724, section 6, rule 1). This sends no packet.
fn is_reachable(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // The port does not matter, except that some systems reject 0.
    UdpSocket::bind((any, 0)).is_ok_and(|socket| socket.connect((address, 443)).is_ok())
}

/// See `artemis.h`.
///
/// # Safety
/// `name` ends with NUL, and `unicast` points to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn artemis_cache(
    name: *const c_char,
    port: u16,
    unicast: *const sockaddr,
    length: socklen_t,
    service_ttl: u32,
) -> c_int {
    // SAFETY: the caller's promise.
    let unicast = unsafe { list::socket_address(unicast, length) };
    let put = |name: &Name, unicast: SocketAddr| {
        let settings = settings()?;
        let ttl = service_ttl.into();
        Some(settings.cache.put(name, port, unicast, ttl))
    };
    // SAFETY: the caller's promise.
    let name = unsafe { name_at(name) };
    outcome(
        name.zip(unicast)
            .and_then(|(name, unicast)| put(&name, unicast)),
    )
}

/// See `artemis.h`.
///
/// # Safety
/// `name` ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn artemis_invalidate(name: *const c_char, port: u16) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { name_at(name) };
    outcome(name.and_then(|name| Some(settings()?.cache.invalidate(&name, port))))
}

/// # Safety
/// `text` is null or ends with NUL.
unsafe fn name_at(text: *const c_char) -> Option<Name> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    Name::new(text.to_str().ok()?).ok()
}

/// Return 0, or set `errno` and return -1. `None` stands for an invalid argument.
fn outcome(done: Option<std::io::Result<()>>) -> c_int {
    let code = match done {
        Some(Ok(())) => return 0,
        Some(Err(error)) => error.raw_os_error().unwrap_or(libc::EIO),
        None => libc::EINVAL,
    };
    set_errno(code);
    -1
}

fn set_errno(code: c_int) {
    // SAFETY: glibc returns a valid pointer to this thread's errno.
    unsafe { ptr::write(libc::__errno_location(), code) };
}
