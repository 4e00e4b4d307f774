//! How an address tells a real server where a client is, if the balancer's packets have CloudCookies as sources: a switch translates them, so it matters
//! only whether the client is at the VIP, or at the address of which key's static cookie.

use std::net::{IpAddr, Ipv6Addr};

use frontage_quic::migration::LocalAddress;
use frontage_quic::socket::{CookiePrefix, join_address};

/// The interface id that stands for the balancer's own address, to which the switch sends what comes to the VIP.
const OWN: u64 = 0;

/// What a real server is told of a client at `place`; none if it cannot send from there.
pub fn address_of(cookie_prefix: &CookiePrefix, place: LocalAddress) -> Option<Ipv6Addr> {
    let id = match place {
        LocalAddress::Vip => OWN,
        LocalAddress::Cookie(epoch) => cookie_prefix.keys.static_interface_id_of(epoch)?,
        LocalAddress::Plain(_) | LocalAddress::Tunnel(_) => return None,
    };
    Some(join_address(cookie_prefix.prefix, id))
}

/// Where a client is of which a real server is told `at`; none if it has no key for that.
pub fn place_of(cookie_prefix: &CookiePrefix, at: IpAddr) -> Option<LocalAddress> {
    let IpAddr::V6(at) = at else {
        return None;
    };
    if (at.to_bits() >> 64) as u64 != cookie_prefix.prefix {
        return None;
    }
    match at.to_bits() as u64 {
        OWN => Some(LocalAddress::Vip),
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
    fn who_has_the_key_knows_the_place() {
        let (balancer, behind) = (cookie_prefix(&[4, 5]), cookie_prefix(&[4]));
        for (place, known) in [
            (LocalAddress::Vip, true),
            (LocalAddress::Cookie(0), true),
            (LocalAddress::Cookie(1), false),
        ] {
            let at = address_of(&balancer, place).unwrap().into();
            assert_eq!(place_of(&balancer, at), Some(place));
            assert_eq!(place_of(&behind, at), known.then_some(place));
        }
        assert_eq!(address_of(&behind, LocalAddress::Cookie(1)), None);
        for at in ["192.0.2.1", "2001:db8:0:8::", "2001:db8:0:7::1"] {
            let at: IpAddr = at.parse().unwrap();
            assert_eq!(place_of(&balancer, at), None);
            assert_eq!(address_of(&balancer, LocalAddress::Plain(at)), None);
        }
    }
}
