// SPDX-License-Identifier: Apache-2.0
//! A library for `LD_PRELOAD` that lets unmodified QUIC clients use QuicSocks:
//! `LD_PRELOAD=libquicsocks_preload.so QUICSOCKS='proxy.example:1080' program`.
//!
//! ```text
//!   getaddrinfo ... for datagrams, returns a placeholder without a lookup
//!   connect ....... and the first datagram to a placeholder open an association with the proxy
//!   send .......... adds the SOCKS header, until datagrams go directly (path.rs)
//!   recv .......... removes it, and hides the proxy's report and the answer to the probe from the program
//! ```
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod address;
mod names;
mod next;
mod path;
mod settings;
mod sockets;

use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::net::SocketAddr;
use std::{io, mem, ptr, slice};

use libc::{
    addrinfo, c_char, c_int, c_uint, c_void, iovec, mmsghdr, msghdr, size_t, sockaddr, socklen_t,
    ssize_t, timespec,
};

use next::next;
use sockets::{MAX_DATAGRAM, Socket};

/// Set `errno`, and return -1.
fn fail<T: From<i8>>(error: &io::Error) -> T {
    // SAFETY: the C library's errno of this thread.
    unsafe { *libc::__errno_location() = error.raw_os_error().unwrap_or(libc::EIO) };
    T::from(-1)
}

/// Return whether a file descriptor is a socket for datagrams.
fn is_datagram(fd: c_int) -> bool {
    let (mut kind, mut length) = (0 as c_int, mem::size_of::<c_int>() as socklen_t);
    // SAFETY: the value has this length.
    let result = unsafe {
        libc::getsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_TYPE,
            ptr::from_mut(&mut kind).cast(),
            &raw mut length,
        )
    };
    result == 0 && kind == libc::SOCK_DGRAM
}

/// Return the socket of a datagram to `to`; None if its destination is not a server behind the proxy.
fn socket_for(fd: c_int, to: Option<SocketAddr>) -> io::Result<Option<std::sync::Arc<Socket>>> {
    match to {
        None => Ok(sockets::find(fd)),
        Some(to) if sockets::is_placeholder(to) && is_datagram(fd) => {
            sockets::open(fd, to).map(Some)
        }
        Some(_) => Ok(None),
    }
}

/// Replace getaddrinfo(3): names for datagram sockets get a placeholder.
///
/// # Safety
/// As for `getaddrinfo`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const addrinfo,
    result: *mut *mut addrinfo,
) -> c_int {
    let next = next!("getaddrinfo": fn(*const c_char, *const c_char, *const addrinfo, *mut *mut addrinfo) -> c_int);
    // SAFETY: the caller's promise.
    unsafe {
        let wanted = hints.as_ref().filter(|hints| {
            hints.ai_socktype == libc::SOCK_DGRAM && hints.ai_flags & libc::AI_NUMERICHOST == 0
        });
        if let Some(hints) = wanted.filter(|_| !node.is_null()) {
            let name = CStr::from_ptr(node).to_str().ok();
            let ipv4 = hints.ai_family == libc::AF_INET;
            let found = name
                .and_then(|name| sockets::placeholder(name, ipv4))
                .and_then(|address| CString::new(address.to_string()).ok());
            if let Some(address) = found {
                return next(address.as_ptr(), service, hints, result);
            }
        }
        next(node, service, hints, result)
    }
}

/// Replace connect(2).
///
/// # Safety
/// As for `connect`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn connect(fd: c_int, to: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        match address::read(to, length).map_or(Ok(None), |to| socket_for(fd, Some(to))) {
            Ok(Some(_)) => 0,
            Ok(None) => {
                next!("connect": fn(c_int, *const sockaddr, socklen_t) -> c_int)(fd, to, length)
            }
            Err(error) => fail(&error),
        }
    }
}

/// Replace getpeername(2).
///
/// # Safety
/// As for `getpeername`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getpeername(
    fd: c_int,
    place: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(socket) = sockets::find(fd) {
            address::write(socket.placeholder, socket.v6, place, length);
            return 0;
        }
        next!("getpeername": fn(c_int, *mut sockaddr, *mut socklen_t) -> c_int)(fd, place, length)
    }
}

/// Replace setsockopt(2): the proxy needs a header before each datagram, so the kernel must not split or join them.
///
/// # Safety
/// As for `setsockopt`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    if level == libc::SOL_UDP
        && (name == libc::UDP_GRO || name == libc::UDP_SEGMENT)
        && sockets::find(fd).is_some()
    {
        return fail(&io::Error::from_raw_os_error(libc::ENOPROTOOPT));
    }
    let next = next!("setsockopt": fn(c_int, c_int, c_int, *const c_void, socklen_t) -> c_int);
    // SAFETY: the caller's promise.
    unsafe { next(fd, level, name, value, length) }
}

/// Replace close(2).
///
/// # Safety
/// As for `close`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    sockets::close(fd);
    // SAFETY: the caller's promise.
    unsafe { next!("close": fn(c_int) -> c_int)(fd) }
}

// Sending.

/// Replace send(2).
///
/// # Safety
/// As for `send`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn send(
    fd: c_int,
    data: *const c_void,
    length: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { sendto(fd, data, length, flags, ptr::null(), 0) }
}

/// Replace sendto(2).
///
/// # Safety
/// As for `sendto`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendto(
    fd: c_int,
    data: *const c_void,
    length: size_t,
    flags: c_int,
    to: *const sockaddr,
    to_length: socklen_t,
) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe {
        match socket_for(fd, address::read(to, to_length)) {
            Ok(Some(socket)) => {
                let packet = slice::from_raw_parts(data.cast::<u8>(), length);
                socket
                    .send(packet, flags)
                    .map_or_else(|error| fail(&error), |sent| sent as ssize_t)
            }
            Ok(None) => {
                next!("sendto": fn(c_int, *const c_void, size_t, c_int, *const sockaddr, socklen_t) -> ssize_t)(
                    fd, data, length, flags, to, to_length,
                )
            }
            Err(error) => fail(&error),
        }
    }
}

/// Replace sendmsg(2). It uses only the size of segments in the control data.
///
/// # Safety
/// As for `sendmsg`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe {
        let Some(given) = message.as_ref() else {
            return fail(&io::Error::from_raw_os_error(libc::EFAULT));
        };
        let to = address::read(given.msg_name.cast(), given.msg_namelen);
        match socket_for(fd, to) {
            Ok(Some(socket)) => send_segments(&socket, given, flags)
                .map_or_else(|error| fail(&error), |sent| sent as ssize_t),
            Ok(None) => {
                next!("sendmsg": fn(c_int, *const msghdr, c_int) -> ssize_t)(fd, message, flags)
            }
            Err(error) => fail(&error),
        }
    }
}

/// Replace sendmmsg(2).
///
/// # Safety
/// As for `sendmmsg`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let is_to_placeholder = |at| {
            let header = &(*messages.add(at)).msg_hdr;
            address::read(header.msg_name.cast(), header.msg_namelen)
                .is_some_and(sockets::is_placeholder)
        };
        let is_ours = sockets::find(fd).is_some() || (0..count as usize).any(is_to_placeholder);
        if !is_ours {
            let next = next!("sendmmsg": fn(c_int, *mut mmsghdr, c_uint, c_int) -> c_int);
            return next(fd, messages, count, flags);
        }
        for at in 0..count as usize {
            let message = &mut *messages.add(at);
            let Ok(sent) = c_uint::try_from(sendmsg(fd, &raw const message.msg_hdr, flags)) else {
                return if at == 0 { -1 } else { at as c_int };
            };
            message.msg_len = sent;
        }
        count as c_int
    }
}

/// Send the datagrams of a message, each with the size of a segment.
///
/// # Safety
/// As for `sendmsg`.
unsafe fn send_segments(socket: &Socket, message: &msghdr, flags: c_int) -> io::Result<usize> {
    // SAFETY: the caller's promise.
    let (parts, size) = unsafe { (parts_of(message), segment_size(message)) };
    let data = parts.concat();
    if data.is_empty() {
        return socket.send(&data, flags);
    }
    let mut total = 0;
    for segment in data.chunks(size.unwrap_or(data.len()).max(1)) {
        match socket.send(segment, flags) {
            Ok(sent) => total += sent,
            Err(error) if total == 0 => return Err(error),
            // The rest counts as lost, as in the network.
            Err(_) => return Ok(data.len()),
        }
    }
    Ok(total)
}

/// Return the parts of a message.
///
/// # Safety
/// As for `sendmsg`.
unsafe fn parts_of(message: &msghdr) -> Vec<&[u8]> {
    if message.msg_iov.is_null() {
        return Vec::new();
    }
    // SAFETY: the caller's promise.
    unsafe {
        let parts = slice::from_raw_parts(message.msg_iov, message.msg_iovlen);
        parts
            .iter()
            .filter(|part| part.iov_len > 0)
            .map(|part| slice::from_raw_parts(part.iov_base.cast::<u8>(), part.iov_len))
            .collect()
    }
}

/// Return the size of segments in the control data of a message.
///
/// # Safety
/// As for `sendmsg`.
unsafe fn segment_size(message: &msghdr) -> Option<usize> {
    // SAFETY: the caller's promise.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(message);
        while let Some(header) = at.as_ref() {
            if (header.cmsg_level, header.cmsg_type) == (libc::SOL_UDP, libc::UDP_SEGMENT) {
                let size = ptr::read_unaligned(libc::CMSG_DATA(at).cast::<u16>());
                return Some(size.into());
            }
            at = libc::CMSG_NXTHDR(message, at);
        }
        None
    }
}

// Receiving.

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; MAX_DATAGRAM]);
}

/// Replace recv(2).
///
/// # Safety
/// As for `recv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recv(
    fd: c_int,
    data: *mut c_void,
    length: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { recvfrom(fd, data, length, flags, ptr::null_mut(), ptr::null_mut()) }
}

/// Replace recvfrom(2).
///
/// # Safety
/// As for `recvfrom`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvfrom(
    fd: c_int,
    data: *mut c_void,
    length: size_t,
    flags: c_int,
    from: *mut sockaddr,
    from_length: *mut socklen_t,
) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe {
        let Some(socket) = sockets::find(fd) else {
            let next = next!("recvfrom": fn(c_int, *mut c_void, size_t, c_int, *mut sockaddr, *mut socklen_t) -> ssize_t);
            return next(fd, data, length, flags, from, from_length);
        };
        let mut part = iovec {
            iov_base: data,
            iov_len: length,
        };
        let mut message: msghdr = mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        let received = receive(&socket, &mut message, flags);
        if received >= 0 {
            address::write(socket.placeholder, socket.v6, from, from_length);
        }
        received
    }
}

/// Replace the variant of `recv` in programs with checked buffers.
///
/// # Safety
/// As for `recv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __recv_chk(
    fd: c_int,
    data: *mut c_void,
    length: size_t,
    _room: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { recv(fd, data, length, flags) }
}

/// Replace the variant of `recvfrom` in programs with checked buffers.
///
/// # Safety
/// As for `recvfrom`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __recvfrom_chk(
    fd: c_int,
    data: *mut c_void,
    length: size_t,
    _room: size_t,
    flags: c_int,
    from: *mut sockaddr,
    from_length: *mut socklen_t,
) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { recvfrom(fd, data, length, flags, from, from_length) }
}

/// Replace recvmsg(2).
///
/// # Safety
/// As for `recvmsg`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe {
        match (sockets::find(fd), message.as_mut()) {
            (Some(socket), Some(given)) => receive(&socket, given, flags),
            _ => next!("recvmsg": fn(c_int, *mut msghdr, c_int) -> ssize_t)(fd, message, flags),
        }
    }
}

/// Replace recvmmsg(2). Returns one datagram at a time.
///
/// # Safety
/// As for `recvmmsg`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        match sockets::find(fd) {
            Some(socket) if count > 0 => {
                let message = &mut *messages;
                let flags = flags & !libc::MSG_WAITFORONE;
                let Ok(received) = c_uint::try_from(receive(&socket, &mut message.msg_hdr, flags))
                else {
                    return -1;
                };
                message.msg_len = received;
                1
            }
            _ => next!("recvmmsg": fn(c_int, *mut mmsghdr, c_uint, c_int, *mut timespec) -> c_int)(
                fd, messages, count, flags, timeout,
            ),
        }
    }
}

/// Receive a datagram with the arguments of the program.
///
/// # Safety
/// As for `recvmsg`.
unsafe fn receive(socket: &Socket, message: &mut msghdr, flags: c_int) -> ssize_t {
    BUFFER.with_borrow_mut(|buffer| {
        let mut own = *message;
        // SAFETY: the caller's promise.
        unsafe {
            let payload = match socket.next_payload(buffer, &mut own, flags) {
                Ok(payload) => payload,
                Err(error) => return fail(&error),
            };
            message.msg_controllen = own.msg_controllen;
            message.msg_flags = own.msg_flags;
            if !message.msg_name.is_null() {
                let name = message.msg_name.cast();
                address::write(
                    socket.placeholder,
                    socket.v6,
                    name,
                    &raw mut message.msg_namelen,
                );
            }
            let copied = scatter(payload, message);
            if copied < payload.len() {
                message.msg_flags |= libc::MSG_TRUNC;
            }
            let is_whole = flags & libc::MSG_TRUNC != 0;
            (if is_whole { payload.len() } else { copied }) as ssize_t
        }
    })
}

/// Copy a datagram into the parts of a message. Returns the number of copied bytes.
///
/// # Safety
/// As for `recvmsg`.
unsafe fn scatter(mut payload: &[u8], message: &msghdr) -> usize {
    let whole = payload.len();
    if message.msg_iov.is_null() {
        return 0;
    }
    // SAFETY: the caller's promise.
    unsafe {
        for part in slice::from_raw_parts(message.msg_iov, message.msg_iovlen) {
            let (now, rest) = payload.split_at(part.iov_len.min(payload.len()));
            ptr::copy_nonoverlapping(now.as_ptr(), part.iov_base.cast::<u8>(), now.len());
            payload = rest;
        }
    }
    whole - payload.len()
}
