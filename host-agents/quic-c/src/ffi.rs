// SPDX-License-Identifier: Apache-2.0
//! The functions of `include/frontage/quic.h`, which documents them.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::ffi::OsStrExt as _;
use std::ptr;

use frontage_cookie::cid;
use libc::{in6_addr, sockaddr, sockaddr_in, sockaddr_in6};

use crate::connection::{Connection, Response, source_without_connection};
use crate::server::{Server, Settings};

/// `struct fq_settings`.
#[repr(C)]
struct CSettings {
    server_prefix: in6_addr,
    cookie_prefix: in6_addr,
    keys: *const c_char,
    bandwidth: u64,
    look_ahead: u64,
    sid: u16,
    sid_v4: u16,
    port: u16,
}

const UNKNOWN: u64 = u64::MAX;

/// # Safety
/// As the header says: `settings` is valid, and `error` points to `size` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn fq_open(
    settings: *const CSettings,
    error: *mut c_char,
    size: usize,
) -> *mut Server {
    // SAFETY: the caller's promise.
    let settings = unsafe {
        let settings = &*settings;
        Settings {
            server_prefix: Ipv6Addr::from(settings.server_prefix.s6_addr),
            cookie_prefix: Ipv6Addr::from(settings.cookie_prefix.s6_addr),
            keys: OsStr::from_bytes(CStr::from_ptr(settings.keys).to_bytes()).into(),
            bandwidth: settings.bandwidth,
            look_ahead: settings.look_ahead,
            sid: settings.sid,
            sid_v4: settings.sid_v4,
            port: settings.port,
        }
    };
    match Server::open(settings) {
        Ok(server) => Box::into_raw(Box::new(server)),
        Err(reason) => {
            // SAFETY: the caller's promise.
            unsafe { write_message(&format!("{reason:#}"), error, size) };
            ptr::null_mut()
        }
    }
}

/// # Safety
/// `server` is null or came from [`fq_open`] and was not closed.
#[unsafe(no_mangle)]
unsafe extern "C" fn fq_close(server: *mut Server) {
    // SAFETY: the caller's promise.
    unsafe { free(server) };
}

/// # Safety
/// `server` is valid, and `error` points to `size` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn fq_reload(server: *const Server, error: *mut c_char, size: usize) -> c_int {
    // SAFETY: the caller's promise.
    let result = unsafe { &*server }.reload();
    match result {
        Ok(()) => 0,
        Err(reason) => {
            // SAFETY: the caller's promise.
            unsafe { write_message(&format!("{reason:#}"), error, size) };
            -1
        }
    }
}

/// # Safety
/// `server` is valid, and `id` points to `FQ_CONNECTION_ID` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn fq_connection_id(server: *const Server, family: c_int, id: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        let new = (*server).connection_id(family == libc::AF_INET);
        ptr::copy_nonoverlapping(new.as_ptr(), id, cid::LEN);
    }
}

/// # Safety
/// `server` and `address` are valid.
#[unsafe(no_mangle)]
unsafe extern "C" fn fq_preferred_address(server: *const Server, address: *mut sockaddr_in6) {
    // SAFETY: the caller's promise, and zero is a valid sockaddr_in6.
    unsafe {
        let preferred = (*server).preferred_address();
        *address = sockaddr_in6 {
            sin6_family: libc::AF_INET6 as libc::sa_family_t,
            sin6_port: preferred.port().to_be(),
            sin6_addr: raw(*preferred.ip()),
            ..std::mem::zeroed()
        };
    }
}

/// # Safety
/// All pointers are valid.
#[unsafe(no_mangle)]
unsafe extern "C" fn fq_loads(server: *const Server, n_af: *mut u64, n_ff: *mut u64) {
    // SAFETY: the caller's promise.
    unsafe {
        let loads = (*server).loads();
        *n_af = loads.n_af();
        *n_ff = loads.n_ff();
    }
}

/// # Safety
/// `server` is valid.
#[unsafe(no_mangle)]
unsafe extern "C" fn fq_connection_new(server: *const Server) -> *mut Connection {
    // SAFETY: the caller's promise.
    Box::into_raw(Box::new(Connection::new(unsafe { &*server })))
}

/// # Safety
/// `connection` is null or came from [`fq_connection_new`] and was not freed.
#[unsafe(no_mangle)]
unsafe extern "C" fn fq_connection_free(connection: *mut Connection) {
    // SAFETY: the caller's promise.
    unsafe { free(connection) };
}

/// # Safety
/// `server`, `local` and `source` are valid, and `connection` is valid or null.
#[unsafe(no_mangle)]
unsafe extern "C" fn fq_source(
    server: *const Server,
    connection: *mut Connection,
    batch: u64,
    local: *const sockaddr,
    source: *mut in6_addr,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let local = address(local);
        let address = match (local, connection.as_mut()) {
            (None, _) => None,
            (Some(local), Some(connection)) => connection.source(batch, local),
            (Some(local), None) => source_without_connection(&*server, local),
        };
        let Some(address) = address else {
            return 0;
        };
        *source = raw(address);
    }
    1
}

/// # Safety
/// `connection` is valid.
#[unsafe(no_mangle)]
unsafe extern "C" fn fq_response_begin(connection: *const Connection, size: u64) -> *mut Response {
    let size = (size != UNKNOWN).then_some(size);
    // SAFETY: the caller's promise.
    Box::into_raw(Box::new(unsafe { &*connection }.begin(size)))
}

/// # Safety
/// `response` is valid.
#[unsafe(no_mangle)]
unsafe extern "C" fn fq_response_sent(response: *mut Response, offset: u64) {
    // SAFETY: the caller's promise.
    unsafe { &mut *response }.on_sent(offset);
}

/// # Safety
/// `response` is null or came from [`fq_response_begin`] and was not ended.
#[unsafe(no_mangle)]
unsafe extern "C" fn fq_response_end(response: *mut Response) {
    // SAFETY: the caller's promise.
    unsafe { free(response) };
}

/// # Safety
/// `value` is null or came from `Box::into_raw`.
unsafe fn free<T>(value: *mut T) {
    if !value.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(value) });
    }
}

/// # Safety
/// `error` points to `size` bytes.
unsafe fn write_message(message: &str, error: *mut c_char, size: usize) {
    let Some(room) = size.checked_sub(1) else {
        return;
    };
    let length = message.len().min(room);
    // SAFETY: the caller's promise.
    unsafe {
        ptr::copy_nonoverlapping(message.as_ptr().cast(), error, length);
        *error.add(length) = 0;
    }
}

/// # Safety
/// `address` points to a socket address of its family.
unsafe fn address(address: *const sockaddr) -> Option<IpAddr> {
    // SAFETY: the caller's promise.
    unsafe {
        match c_int::from((*address).sa_family) {
            libc::AF_INET => {
                let v4 = &*address.cast::<sockaddr_in>();
                Some(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)).into())
            }
            libc::AF_INET6 => {
                let v6 = &*address.cast::<sockaddr_in6>();
                Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}

fn raw(address: Ipv6Addr) -> in6_addr {
    in6_addr {
        s6_addr: address.octets(),
    }
}
