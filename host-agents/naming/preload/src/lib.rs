//! `LD_PRELOAD=libartemis_preload.so ARTEMIS='2001:db8:a::/48+16 = *.films.example' program`: an unmodified program on Artemis names.
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

/// The next one in line: the C library's.
fn next() -> Option<GetAddrInfo> {
    static NEXT: OnceLock<usize> = OnceLock::new();
    // SAFETY: a string that ends.
    let find = || unsafe { libc::dlsym(libc::RTLD_NEXT, c"getaddrinfo".as_ptr()) as usize };
    let found = *NEXT.get_or_init(find) as *mut c_void;
    // SAFETY: a function of that name has that type; null is `None`.
    unsafe { mem::transmute::<*mut c_void, Option<GetAddrInfo>>(found) }
}

/// Whether `node` is a name of an instance's.
///
/// # Safety
/// It is null, or ends with NUL.
unsafe fn is_ours(node: *const c_char) -> bool {
    if node.is_null() {
        return false;
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(node) }.to_str();
    let name = text.ok().and_then(|text| Name::new(text).ok());
    name.zip(ffi::settings())
        .is_some_and(|(name, settings)| !settings.instances.service_addresses(&name).is_empty())
}

/// getaddrinfo(3), in front of the C library's.
///
/// # Safety
/// As `getaddrinfo`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const addrinfo,
    res: *mut *mut addrinfo,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        // getaddrinfosid itself asks for numeric hosts, and must get to the C library.
        let numeric = hints
            .as_ref()
            .is_some_and(|hints| hints.ai_flags & libc::AI_NUMERICHOST != 0);
        if !numeric && is_ours(node) {
            return ffi::getaddrinfosid(node, service, hints, res);
        }
        next().map_or(libc::EAI_FAIL, |next| next(node, service, hints, res))
    }
}
