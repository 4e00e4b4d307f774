// SPDX-License-Identifier: Apache-2.0
//! Placeholder addresses, which stand for names that only the proxy resolves.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Mutex;

/// The names in the order of their placeholders.
static NAMES: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// The first placeholders: in the discard-only prefix (RFC 6666), and in the prefix for benchmarks (RFC 2544).
const FIRST_V6: u128 = 0x0100_0000_0000_0000_0051_0000_0000_0000;
const FIRST_V4: u32 = 0xc612_0000;
/// The number of placeholders.
const MAX_NAMES: usize = 1 << 16;

/// Return the placeholder of a name, over IPv4 if `ipv4`. None if there are too many names.
pub fn placeholder(name: &str, ipv4: bool) -> Option<IpAddr> {
    let mut names = NAMES.lock().ok()?;
    let known = names.iter().position(|known| known == name);
    let index = match known {
        Some(index) => index,
        None if names.len() < MAX_NAMES => {
            names.push(name.to_owned());
            names.len() - 1
        }
        None => return None,
    };
    drop(names);
    Some(if ipv4 {
        Ipv4Addr::from(FIRST_V4 + index as u32).into()
    } else {
        Ipv6Addr::from(FIRST_V6 + index as u128).into()
    })
}

/// Return the name that a placeholder stands for.
pub fn name(address: IpAddr) -> Option<String> {
    let index = match address.to_canonical() {
        IpAddr::V4(v4) => u128::from(v4.to_bits().checked_sub(FIRST_V4)?),
        IpAddr::V6(v6) => v6.to_bits().checked_sub(FIRST_V6)?,
    };
    NAMES
        .lock()
        .ok()?
        .get(usize::try_from(index).ok()?)
        .cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_stand_for_their_names() {
        let films = placeholder("films.example", false).unwrap();
        let other = placeholder("other.example", true).unwrap();
        assert_eq!(placeholder("films.example", false), Some(films));
        assert_ne!(placeholder("films.example", true), Some(other));
        assert_eq!(name(films).as_deref(), Some("films.example"));
        assert_eq!(name(other).as_deref(), Some("other.example"));
        assert_eq!(name("192.0.2.1".parse().unwrap()), None);
        assert_eq!(name("100::51:ffff:0:0".parse().unwrap()), None);
        assert_eq!(name("2001:db8::1".parse().unwrap()), None);
    }
}
