// SPDX-License-Identifier: Apache-2.0
//! TUN devices, whose packets have no Ethernet header.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::thread;

/// A TUN device, which lasts as long as this value.
pub struct Tun(File);

impl Tun {
    /// Create a device in this thread's network namespace.
    pub fn create(name: &str) -> Self {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/net/tun")
            .expect("the kernel has TUN devices");
        // SAFETY: all zeros are a valid request.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as i16;
        // SAFETY: the request has the form that this call requires, and outlives it.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
        Self(file)
    }

    /// Let the kernel receive `packet`.
    pub fn deliver(&self, packet: &[u8]) {
        (&self.0)
            .write_all(packet)
            .expect("the kernel accepts the packet");
    }

    /// Return the next packet that the kernel sends. `None` if the device no longer exists.
    pub fn sent(&self) -> Option<Vec<u8>> {
        let mut packet = vec![0; 1 << 16];
        let length = (&self.0).read(&mut packet).ok()?;
        packet.truncate(length);
        Some(packet)
    }

    /// Connect two devices, until their network namespaces are removed.
    pub fn connect(one: Self, other: Self) {
        let ends = [one, other].map(std::sync::Arc::new);
        for (from, to) in [(0, 1), (1, 0)] {
            let (from, to) = (ends[from].clone(), ends[to].clone());
            thread::spawn(move || {
                while let Some(packet) = from.sent() {
                    // Fails while the other device is down.
                    let _ = (&to.0).write_all(&packet);
                }
            });
        }
    }
}
