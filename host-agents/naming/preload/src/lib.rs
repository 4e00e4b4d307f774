// SPDX-License-Identifier: Apache-2.0
//! A library for `LD_PRELOAD` that lets unmodified programs use Artemis names:
//! `LD_PRELOAD=libartemis_preload.so ARTEMIS='2001:db8:a::/48+16 = *.films.example' program`.
#![cfg(target_env = "gnu")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem;
use std::sync::OnceLock;

use artemis::{Name, ffi};
use libc::addrinfo;

type GetAddrInfo = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const addrinfo,
    *mut *mut addrinfo,
) -> c_int;

/// Return the next `getaddrinfo` in the search order: the C library's.
fn next() -> Option<GetAddrInfo> {
    static NEXT: OnceLock<usize> = OnceLock::new();
    // SAFETY: the string ends with NUL.
    let find = || unsafe { libc::dlsym(libc::RTLD_NEXT, c"getaddrinfo".as_ptr()) as usize };
    let found = *NEXT.get_or_init(find) as *mut c_void;
    // SAFETY: a function of that name has that type, and null becomes `None`.
    unsafe { mem::transmute::<*mut c_void, Option<GetAddrInfo>>(found) }
}

/// Return whether `node` is a name of an instance.
///
/// # Safety
/// `node` is null, or ends with NUL.
unsafe fn is_artemis_name(node: *const c_char) -> bool {
    if node.is_null() {
        return false;
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(node) }.to_str();
    let name = text.ok().and_then(|text| Name::new(text).ok());
    name.zip(ffi::settings())
        .is_some_and(|(name, settings)| !settings.instances.service_addresses(&name).is_empty())
}

/// Replace getaddrinfo(3) of the C library.
///
/// # Safety
/// As for `getaddrinfo`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const addrinfo,
    res: *mut *mut addrinfo,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        // getaddrinfosid itself calls getaddrinfo with numeric hosts, which must reach the C library.
        let numeric = hints
            .as_ref()
            .is_some_and(|hints| hints.ai_flags & libc::AI_NUMERICHOST != 0);
        if !numeric && is_artemis_name(node) {
            return ffi::getaddrinfosid(node, service, hints, res);
        }
        next().map_or(libc::EAI_FAIL, |next| next(node, service, hints, res))
    }
}
