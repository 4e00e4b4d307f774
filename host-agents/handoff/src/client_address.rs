// SPDX-License-Identifier: Apache-2.0
//! Encoding of the balancer's address as a client knows it, for balancers whose packets have CloudCookie source addresses.
//!
//! A switch translates those addresses, so only one thing matters: whether the client sends to the VIP, or to the address
//! with the static cookie of a certain key.

use std::net::{IpAddr, Ipv6Addr};

use frontage_quic::migration::LocalAddress;
use frontage_quic::socket::{CookiePrefix, join_address};

/// Interface id for the balancer's own address, to which the switch forwards packets for the VIP.
const VIP_INTERFACE_ID: u64 = 0;

/// Encode the address to which a client sends; `None` if real servers cannot send from there.
pub fn encode(cookie_prefix: &CookiePrefix, place: LocalAddress) -> Option<Ipv6Addr> {
    let id = match place {
        LocalAddress::Vip => VIP_INTERFACE_ID,
        LocalAddress::Cookie(epoch) => cookie_prefix.keys.static_interface_id_of(epoch)?,
        LocalAddress::Plain(_) | LocalAddress::Tunnel(_) => return None,
    };
    Some(join_address(cookie_prefix.prefix, id))
}

/// Decode an address; `None` if this server lacks the key of its cookie.
pub fn decode(cookie_prefix: &CookiePrefix, at: IpAddr) -> Option<LocalAddress> {
    let IpAddr::V6(at) = at else {
        return None;
    };
    if (at.to_bits() >> 64) as u64 != cookie_prefix.prefix {
        return None;
    }
    match at.to_bits() as u64 {
        VIP_INTERFACE_ID => Some(LocalAddress::Vip),
        id => cookie_prefix
            .keys
            .epoch_of_static(id)
            .map(LocalAddress::Cookie),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use frontage_cookie::{Secret, ipv6::Key};
    use frontage_quic::keys::Keys;
    use frontage_quic::meter::Loads;

    use super::*;

    fn cookie_prefix(ids: &[u32]) -> CookiePrefix {
        let key = |id: &u32| Key::new(*id, &Secret::new(&[*id as u8; 16]).unwrap());
        CookiePrefix {
            prefix: 0x2001_0db8_0000_0007,
            keys: Arc::new(Keys::new(7, ids.iter().map(key).collect()).unwrap()),
            loads: Arc::new(Loads::new(0)),
            bandwidth: 1,
        }
    }

    #[test]
    fn address_decodes_only_with_its_key() {
        let (balancer, real_server) = (cookie_prefix(&[4, 5]), cookie_prefix(&[4]));
        for (place, known) in [
            (LocalAddress::Vip, true),
            (LocalAddress::Cookie(0), true),
            (LocalAddress::Cookie(1), false),
        ] {
            let at = encode(&balancer, place).unwrap().into();
            assert_eq!(decode(&balancer, at), Some(place));
            assert_eq!(decode(&real_server, at), known.then_some(place));
        }
        assert_eq!(encode(&real_server, LocalAddress::Cookie(1)), None);
        for at in ["192.0.2.1", "2001:db8:0:8::", "2001:db8:0:7::1"] {
            let at: IpAddr = at.parse().unwrap();
            assert_eq!(decode(&balancer, at), None);
            assert_eq!(encode(&balancer, LocalAddress::Plain(at)), None);
        }
    }
}
