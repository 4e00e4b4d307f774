// SPDX-License-Identifier: Apache-2.0
//! Conversions between the C library's addresses and Rust's.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::{mem, ptr};

use libc::{c_int, sa_family_t, sockaddr, sockaddr_in, sockaddr_in6, sockaddr_storage, socklen_t};

/// Return an address; None unless it is a complete IPv4 or IPv6 address.
///
/// # Safety
/// `address` is null, or points to `length` readable bytes.
pub unsafe fn read(address: *const sockaddr, length: socklen_t) -> Option<SocketAddr> {
    if address.is_null() || (length as usize) < mem::size_of::<sa_family_t>() {
        return None;
    }
    // SAFETY: the caller's promise. The structures may be unaligned.
    unsafe {
        let family = c_int::from(ptr::read_unaligned(ptr::addr_of!((*address).sa_family)));
        match family {
            libc::AF_INET if length as usize >= mem::size_of::<sockaddr_in>() => {
                let v4 = ptr::read_unaligned(address.cast::<sockaddr_in>());
                let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
                Some((ip, u16::from_be(v4.sin_port)).into())
            }
            libc::AF_INET6 if length as usize >= mem::size_of::<sockaddr_in6>() => {
                let v6 = ptr::read_unaligned(address.cast::<sockaddr_in6>());
                let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                let port = u16::from_be(v6.sin6_port);
                Some(SocketAddrV6::new(ip, port, 0, v6.sin6_scope_id).into())
            }
            _ => None,
        }
    }
}

/// Return an address for a socket of IPv6 (`v6`) or of IPv4, and its length.
pub fn encode(address: SocketAddr, v6: bool) -> (sockaddr_storage, socklen_t) {
    // SAFETY: all zeros is a valid value of these structures.
    let mut storage: sockaddr_storage = unsafe { mem::zeroed() };
    let place = ptr::from_mut(&mut storage);
    match (address.ip(), v6) {
        (IpAddr::V4(v4), false) => {
            let mut raw: sockaddr_in = unsafe { mem::zeroed() };
            raw.sin_family = libc::AF_INET as sa_family_t;
            raw.sin_port = address.port().to_be();
            raw.sin_addr.s_addr = u32::from(v4).to_be();
            // SAFETY: the storage has room for any address.
            unsafe { place.cast::<sockaddr_in>().write(raw) };
            (storage, mem::size_of::<sockaddr_in>() as socklen_t)
        }
        (ip, _) => {
            let v6 = match ip {
                IpAddr::V4(v4) => v4.to_ipv6_mapped(),
                IpAddr::V6(v6) => v6,
            };
            let mut raw: sockaddr_in6 = unsafe { mem::zeroed() };
            raw.sin6_family = libc::AF_INET6 as sa_family_t;
            raw.sin6_port = address.port().to_be();
            raw.sin6_addr.s6_addr = v6.octets();
            // SAFETY: the storage has room for any address.
            unsafe { place.cast::<sockaddr_in6>().write(raw) };
            (storage, mem::size_of::<sockaddr_in6>() as socklen_t)
        }
    }
}

/// Write an address to the output arguments of a C library call: as many bytes as fit, and the full length.
///
/// # Safety
/// `address` is null, or points to `*length` writable bytes.
pub unsafe fn write(value: SocketAddr, v6: bool, address: *mut sockaddr, length: *mut socklen_t) {
    if address.is_null() || length.is_null() {
        return;
    }
    let (storage, size) = encode(value, v6);
    // SAFETY: the caller's promise.
    unsafe {
        let fits = size.min(*length) as usize;
        ptr::copy_nonoverlapping(
            ptr::from_ref(&storage).cast::<u8>(),
            address.cast::<u8>(),
            fits,
        );
        *length = size;
    }
}

/// Return the address, with IPv4-mapped IPv6 addresses converted to IPv4.
pub fn canonical(address: SocketAddr) -> SocketAddr {
    (address.ip().to_canonical(), address.port()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip() {
        for (text, v6) in [
            ("192.0.2.1:443", false),
            ("192.0.2.1:443", true),
            ("[2001:db8::1]:1", true),
        ] {
            let address: SocketAddr = text.parse().unwrap();
            let (storage, length) = encode(address, v6);
            // SAFETY: the storage has this length.
            let found = unsafe { read(ptr::from_ref(&storage).cast(), length) }.unwrap();
            assert_eq!(canonical(found), address);
            assert_eq!(found.is_ipv6(), v6);
        }
        // SAFETY: null is allowed.
        assert_eq!(unsafe { read(ptr::null(), 16) }, None);
    }
}
