// SPDX-License-Identifier: Apache-2.0
//! The lists that glibc's `getaddrinfo` returns.

use std::ffi::{CStr, CString, c_int};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::ptr;

use libc::{addrinfo, sockaddr, sockaddr_in, sockaddr_in6, socklen_t};

/// A list that frees itself.
#[derive(Debug)]
pub(super) struct List(*mut addrinfo);

impl Default for List {
    /// Create an empty list.
    fn default() -> Self {
        Self(ptr::null_mut())
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // Some C libraries, such as musl, do not accept null.
        if !self.0.is_null() {
            // SAFETY: all elements come from getaddrinfo, and glibc frees them one by one.
            unsafe { libc::freeaddrinfo(self.0) };
        }
    }
}

impl List {
    /// Call `getaddrinfo`, and return its list or its error code.
    pub(super) fn of(
        node: Option<&CStr>,
        service: Option<&CStr>,
        hints: &addrinfo,
    ) -> Result<Self, c_int> {
        let pointer = |text: Option<&CStr>| text.map_or(ptr::null(), CStr::as_ptr);
        let mut list = ptr::null_mut();
        // SAFETY: the strings end with NUL, and the hints are those of a caller of getaddrinfo.
        let code =
            unsafe { libc::getaddrinfo(pointer(node), pointer(service), hints, &raw mut list) };
        if code == 0 { Ok(Self(list)) } else { Err(code) }
    }

    /// Call `getaddrinfo` with a numeric host.
    pub(super) fn of_address(
        address: IpAddr,
        service: Option<&CStr>,
        hints: &addrinfo,
    ) -> Result<Self, c_int> {
        let node = CString::new(address.to_string()).expect("an address has no NUL");
        Self::of(Some(&node), service, hints)
    }

    /// Append the list `more`.
    pub(super) fn append(&mut self, more: Self) {
        let more = more.into_raw();
        let mut end = &raw mut self.0;
        // SAFETY: each element lives as long as the list.
        unsafe {
            while let Some(element) = (*end).as_mut() {
                end = &raw mut element.ai_next;
            }
            *end = more;
        }
    }

    /// Return the port of the first element, or `None` if the list is empty.
    pub(super) fn port(&self) -> Option<u16> {
        // SAFETY: null, or a valid element.
        let first = unsafe { self.0.as_ref() }?;
        // SAFETY: glibc set address and length.
        let address = unsafe { socket_address(first.ai_addr, first.ai_addrlen) };
        Some(address.map_or(0, |address| address.port()))
    }

    /// Set the canonical name of the first element, and remove those of the others.
    pub(super) fn set_canonical_name(&mut self, name: &str) -> Result<(), c_int> {
        let name = CString::new(name).map_err(|_| libc::EAI_NONAME)?;
        // SAFETY: these are elements of this list, and their names come from malloc, as freeaddrinfo requires.
        unsafe {
            let mut next = self.0;
            while let Some(element) = next.as_mut() {
                libc::free(element.ai_canonname.cast());
                element.ai_canonname = ptr::null_mut();
                next = element.ai_next;
            }
            let first = self.0.as_mut().ok_or(libc::EAI_NONAME)?;
            first.ai_canonname = libc::strdup(name.as_ptr());
            if first.ai_canonname.is_null() {
                return Err(libc::EAI_MEMORY);
            }
        }
        Ok(())
    }

    /// Return the list, which the caller must free.
    pub(super) fn into_raw(self) -> *mut addrinfo {
        let list = self.0;
        std::mem::forget(self);
        list
    }
}

/// Read the IPv4 or IPv6 address at `address`. Return `None` for other families.
///
/// # Safety
/// `address` is null, or points to `length` bytes.
pub(super) unsafe fn socket_address(
    address: *const sockaddr,
    length: socklen_t,
) -> Option<SocketAddr> {
    let holds = |size: usize| length as usize >= size;
    if address.is_null() || !holds(size_of::<libc::sa_family_t>()) {
        return None;
    }
    // SAFETY: the caller guarantees `length` bytes, which need not be aligned.
    unsafe {
        let family = address.cast::<libc::sa_family_t>().read_unaligned();
        match c_int::from(family) {
            libc::AF_INET if holds(size_of::<sockaddr_in>()) => {
                let v4 = address.cast::<sockaddr_in>().read_unaligned();
                let ip = Ipv4Addr::from_bits(u32::from_be(v4.sin_addr.s_addr));
                Some((ip, u16::from_be(v4.sin_port)).into())
            }
            libc::AF_INET6 if holds(size_of::<sockaddr_in6>()) => {
                let v6 = address.cast::<sockaddr_in6>().read_unaligned();
                let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                let port = u16::from_be(v6.sin6_port);
                Some(SocketAddrV6::new(ip, port, 0, v6.sin6_scope_id).into())
            }
            _ => None,
        }
    }
}
