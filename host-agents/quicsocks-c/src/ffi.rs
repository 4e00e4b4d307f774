// SPDX-License-Identifier: Apache-2.0
//! The functions of `include/frontage/quicsocks.h`, which documents them.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;
use std::{ptr, slice};

use frontage_quicsocks_client::Credentials;
use libc::{size_t, sockaddr_storage, ssize_t};
use socket2::SockAddr;

use crate::association::Association;
use crate::connection::{Connection, DirectState, Path};
use crate::failure::{self, Failure};

/// `struct fqs_association`. Its connection may outlive it.
struct Handle(Rc<Association>);

#[unsafe(no_mangle)]
extern "C" fn fqs_text(result: c_int) -> *const c_char {
    failure::text(result).as_ptr()
}

/// # Safety
/// The strings are valid, or null where the header says so. `association` is valid.
#[unsafe(no_mangle)]
unsafe extern "C" fn fqs_associate(
    proxy: *const c_char,
    user: *const c_char,
    password: *const c_char,
    association: *mut *mut Handle,
) -> c_int {
    // SAFETY: the caller's promise.
    let opened = unsafe {
        let credentials = credentials(user, password);
        text(proxy)
            .zip(credentials)
            .ok_or(Failure::Invalid)
            .and_then(|(proxy, credentials)| Association::open(proxy, credentials.as_ref()))
            .map(|opened| Handle(Rc::new(opened)))
    };
    // SAFETY: the caller's promise.
    unsafe { store(opened, association) }
}

/// # Safety
/// `association` is null or came from [`fqs_associate`] and was not freed.
#[unsafe(no_mangle)]
unsafe extern "C" fn fqs_association_free(association: *mut Handle) {
    // SAFETY: the caller's promise.
    unsafe { free(association) };
}

/// # Safety
/// All pointers are valid.
#[unsafe(no_mangle)]
unsafe extern "C" fn fqs_connect(
    association: *const Handle,
    name: *const c_char,
    port: u16,
    connection: *mut *mut Connection,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let name = text(name).ok_or(Failure::Invalid);
        let opened = name.and_then(|name| Connection::open(&(*association).0, name, port));
        store(opened, connection)
    }
}

/// # Safety
/// `connection` is null or came from [`fqs_connect`] and was not freed.
#[unsafe(no_mangle)]
unsafe extern "C" fn fqs_connection_free(connection: *mut Connection) {
    // SAFETY: the caller's promise.
    unsafe { free(connection) };
}

/// # Safety
/// `connection` is valid.
#[unsafe(no_mangle)]
unsafe extern "C" fn fqs_fd(connection: *const Connection) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { &*connection }.fd()
}

/// # Safety
/// `connection` is valid.
#[unsafe(no_mangle)]
unsafe extern "C" fn fqs_timeout(connection: *const Connection) -> c_int {
    // SAFETY: the caller's promise.
    let timeout = unsafe { &*connection }.timeout(Instant::now());
    timeout.map_or(-1, |ms| ms.try_into().unwrap_or(c_int::MAX))
}

/// # Safety
/// `connection` is valid, and `packet` is null or points to `length` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn fqs_send(
    connection: *const Connection,
    path: c_int,
    packet: *const c_void,
    length: size_t,
) -> c_int {
    if packet.is_null() {
        return Failure::Invalid.into_code();
    }
    // SAFETY: the caller's promise.
    unsafe {
        let packet = slice::from_raw_parts(packet.cast(), length);
        let sent = path_of(path).and_then(|path| (*connection).send(path, packet));
        sent.map_or_else(Failure::into_code, |()| 0)
    }
}

/// # Safety
/// `connection` and `path` are valid, and `buffer` points to `size` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn fqs_receive(
    connection: *mut Connection,
    buffer: *mut c_void,
    size: size_t,
    path: *mut Path,
) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe {
        let buffer = slice::from_raw_parts_mut(buffer.cast(), size);
        match (*connection).receive(buffer) {
            Ok((length, from)) => {
                *path = from;
                length as ssize_t
            }
            Err(failure) => failure.into_code() as ssize_t,
        }
    }
}

/// # Safety
/// `connection` is valid.
#[unsafe(no_mangle)]
unsafe extern "C" fn fqs_direct(connection: *const Connection) -> DirectState {
    // SAFETY: the caller's promise.
    unsafe { &*connection }.direct_state(Instant::now())
}

/// # Safety
/// All pointers are valid.
#[unsafe(no_mangle)]
unsafe extern "C" fn fqs_addresses(
    connection: *const Connection,
    path: c_int,
    local: *mut sockaddr_storage,
    server: *mut sockaddr_storage,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let addresses = path_of(path).and_then(|path| (*connection).addresses(path));
        match addresses {
            Ok((own, placeholder)) => {
                *local = raw(own);
                *server = raw(placeholder);
                0
            }
            Err(failure) => failure.into_code(),
        }
    }
}

/// # Safety
/// Both pointers are valid.
#[unsafe(no_mangle)]
unsafe extern "C" fn fqs_server(
    connection: *const Connection,
    server: *mut sockaddr_storage,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let Some(address) = (*connection).server() else {
            return Failure::Again.into_code();
        };
        *server = raw(address);
    }
    0
}

/// # Safety
/// `connection` is valid.
#[unsafe(no_mangle)]
unsafe extern "C" fn fqs_release(connection: *mut Connection) {
    // SAFETY: the caller's promise.
    unsafe { &mut *connection }.release();
}

/// Store a new object, and return the result for C.
///
/// # Safety
/// `place` is valid.
unsafe fn store<T>(opened: Result<T, Failure>, place: *mut *mut T) -> c_int {
    let (object, code) = match opened {
        Ok(object) => (Box::into_raw(Box::new(object)), 0),
        Err(failure) => (ptr::null_mut(), failure.into_code()),
    };
    // SAFETY: the caller's promise.
    unsafe { *place = object };
    code
}

/// # Safety
/// `object` is null or came from [`store`].
unsafe fn free<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(object) });
    }
}

/// Return a string; None if it is null or not UTF-8.
///
/// # Safety
/// `text` is null, or ends with NUL and lives as long as the result.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}

/// Return the credentials, if any; None if they are invalid.
///
/// # Safety
/// The strings are null or valid.
unsafe fn credentials(user: *const c_char, password: *const c_char) -> Option<Option<Credentials>> {
    if user.is_null() && password.is_null() {
        return Some(None);
    }
    // SAFETY: the caller's promise.
    let (name, password) = unsafe { (text(user)?.to_owned(), text(password)?.to_owned()) };
    let fits = |text: &String| (1..=255).contains(&text.len());
    (fits(&name) && fits(&password)).then_some(Some(Credentials { name, password }))
}

fn path_of(path: c_int) -> Result<Path, Failure> {
    match path {
        0 => Ok(Path::Proxied),
        1 => Ok(Path::Direct),
        _ => Err(Failure::Invalid),
    }
}

fn raw(address: SocketAddr) -> sockaddr_storage {
    let address = SockAddr::from(address);
    // SAFETY: all zeros is a valid sockaddr_storage.
    let mut storage: sockaddr_storage = unsafe { std::mem::zeroed() };
    // SAFETY: an address is no longer than sockaddr_storage.
    unsafe {
        ptr::copy_nonoverlapping(
            address.as_ptr().cast::<u8>(),
            ptr::from_mut(&mut storage).cast(),
            address.len() as usize,
        );
    }
    storage
}
