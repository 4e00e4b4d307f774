// SPDX-License-Identifier: Apache-2.0
//! A TUN interface, which reads the packets that a namespace sends, including their checksums.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;

use frontage_testkit::Namespace;

pub const NAME: &str = "tun0";

/// The fields of `struct ifreq` that TUNSETIFF reads.
#[repr(C)]
struct Request {
    name: [u8; libc::IFNAMSIZ],
    flags: libc::c_short,
    rest: [u8; 22],
}

/// Create the interface in `namespace`, with `addresses`, as the default route.
pub fn open(namespace: &Namespace, addresses: &[&str]) -> File {
    let file = namespace.run(|| {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/net/tun")
            .expect("/dev/net/tun");
        let mut request = Request {
            name: [0; libc::IFNAMSIZ],
            flags: (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short,
            rest: [0; 22],
        };
        request.name[..NAME.len()].copy_from_slice(NAME.as_bytes());
        // SAFETY: the call reads and writes a struct ifreq, which `request` has the size of.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
        assert_eq!(result, 0, "TUNSETIFF: {}", io::Error::last_os_error());
        file
    });
    for address in addresses {
        namespace.sh(&format!("ip addr add {address} dev {NAME} nodad"));
    }
    namespace.sh(&format!(
        "ip link set {NAME} up txqueuelen 2000 && ip -4 route add default dev {NAME} && ip -6 route add default dev {NAME}"
    ));
    file
}
