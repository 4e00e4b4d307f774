//! How an address tells a real server where a client is, if the balancer's packets have CloudCookies as sources: a switch translates them, so it matters
//! only whether the client is at the VIP, or at the address of which key's static cookie.

use std::net::{IpAddr, Ipv6Addr};

use frontage_quic::places::Place;
use frontage_quic::socket::{Carrier, address};

/// The interface id that stands for the balancer's own address, to which the switch sends what comes to the VIP.
const OWN: u64 = 0;

/// What a real server is told of a client at `place`; none if it cannot send from there.
pub fn address_of(carrier: &Carrier, place: Place) -> Option<Ipv6Addr> {
    let id = match place {
        Place::Vip => OWN,
        Place::Cookie(epoch) => carrier.keys.static_interface_id_of(epoch)?,
        Place::Plain(_) | Place::Detour(_) => return None,
    };
    Some(address(carrier.prefix, id))
}

/// Where a client is of which a real server is told `at`; none if it has no key for that.
pub fn place_of(carrier: &Carrier, at: IpAddr) -> Option<Place> {
    let IpAddr::V6(at) = at else {
        return None;
    };
    if (at.to_bits() >> 64) as u64 != carrier.prefix {
        return None;
    }
    match at.to_bits() as u64 {
        OWN => Some(Place::Vip),
        id => carrier.keys.epoch_of_static(id).map(Place::Cookie),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use frontage_cookie::{Secret, ipv6::Key};
    use frontage_quic::keys::Keys;
    use frontage_quic::meter::Loads;

    use super::*;

    fn carrier(ids: &[u32]) -> Carrier {
        let key = |id: &u32| Key::new(*id, &Secret::new(&[*id as u8; 16]).unwrap());
        Carrier {
            prefix: 0x2001_0db8_0000_0007,
            keys: Arc::new(Keys::new(7, ids.iter().map(key).collect()).unwrap()),
            loads: Arc::new(Loads::new(0)),
            bandwidth: 1,
        }
    }

    #[test]
    fn who_has_the_key_knows_the_place() {
        let (balancer, behind) = (carrier(&[4, 5]), carrier(&[4]));
        for (place, known) in [
            (Place::Vip, true),
            (Place::Cookie(0), true),
            (Place::Cookie(1), false),
        ] {
            let at = address_of(&balancer, place).unwrap().into();
            assert_eq!(place_of(&balancer, at), Some(place));
            assert_eq!(place_of(&behind, at), known.then_some(place));
        }
        assert_eq!(address_of(&behind, Place::Cookie(1)), None);
        for at in ["192.0.2.1", "2001:db8:0:8::", "2001:db8:0:7::1"] {
            let at: IpAddr = at.parse().unwrap();
            assert_eq!(place_of(&balancer, at), None);
            assert_eq!(address_of(&balancer, Place::Plain(at)), None);
        }
    }
}
