//! From frames to segments.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use frontage_cookie::tcp::CK;
use frontage_transport::tcp::{Ecn, Flags, SackBlocks, Segment, Timestamps};

use super::checksum::{fold, pseudo_header, sum};
use super::{
    Contents, ETHERNET, IPV4, IPV4_HEADER, IPV6, IPV6_HEADER, TCP, TCP_HEADER, Way, option,
};

/// Why a frame carries no segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Something else than TCP over IP.
    NotTcp,
    /// It is cut short, or its lengths disagree.
    Malformed,
    /// A checksum is wrong.
    Checksum,
}

/// The segment in a frame.
///
/// # Errors
/// Says why there is none. Payloads are zeros, which add nothing to a checksum, and so are not looked at.
pub fn read(frame: &[u8]) -> Result<Contents, Fault> {
    let ethernet = frame.first_chunk::<ETHERNET>().ok_or(Fault::Malformed)?;
    let ip = &frame[ETHERNET..];
    let packet = match u16::from_be_bytes([ethernet[12], ethernet[13]]) {
        IPV4 => ipv4(ip)?,
        IPV6 => ipv6(ip)?,
        _ => return Err(Fault::NotTcp),
    };
    let tcp = packet.tcp;
    let fixed = tcp.first_chunk::<TCP_HEADER>().ok_or(Fault::Malformed)?;
    let header = usize::from(fixed[12] >> 4) * 4;
    if header < TCP_HEADER || header > tcp.len() {
        return Err(Fault::Malformed);
    }
    if fold(packet.pseudo + sum(&tcp[..header])) != [0, 0] {
        return Err(Fault::Checksum);
    }
    let word =
        |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let half = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let mut segment = Segment {
        seq: word(4),
        ack: word(8),
        flags: Flags(fixed[13]),
        window: half(14),
        window_scale: None,
        mss: None,
        sack_permitted: false,
        ts: None,
        sack: SackBlocks::default(),
        len: (tcp.len() - header) as u32,
        ecn: packet.ecn,
    };
    read_options(&tcp[TCP_HEADER..header], &mut segment)?;
    let mac = |at: usize| std::array::from_fn(|i| ethernet[at + i]);
    Ok(Contents {
        way: Way {
            from_mac: mac(6),
            to_mac: mac(0),
            from: SocketAddr::new(packet.from, half(0)),
            to: SocketAddr::new(packet.to, half(2)),
        },
        segment,
        ck: fixed[12] & CK != 0,
    })
}

struct Packet<'a> {
    from: IpAddr,
    to: IpAddr,
    ecn: Ecn,
    pseudo: u64,
    tcp: &'a [u8],
}

fn ipv4(ip: &[u8]) -> Result<Packet<'_>, Fault> {
    let header = ip.first_chunk::<IPV4_HEADER>().ok_or(Fault::Malformed)?;
    if header[0] != 0x45 || header[9] != TCP {
        return Err(Fault::NotTcp);
    }
    if fold(sum(header)) != [0, 0] {
        return Err(Fault::Checksum);
    }
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let tcp = ip.get(IPV4_HEADER..length).ok_or(Fault::Malformed)?;
    let address =
        |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
    Ok(Packet {
        from: address(12).into(),
        to: address(16).into(),
        ecn: ecn(header[1]),
        pseudo: pseudo_header(&header[12..], TCP, tcp.len()),
        tcp,
    })
}

fn ipv6(ip: &[u8]) -> Result<Packet<'_>, Fault> {
    let header = ip.first_chunk::<IPV6_HEADER>().ok_or(Fault::Malformed)?;
    if header[0] >> 4 != 6 || header[6] != TCP {
        return Err(Fault::NotTcp);
    }
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let tcp = ip
        .get(IPV6_HEADER..IPV6_HEADER + length)
        .ok_or(Fault::Malformed)?;
    let address = |at: usize| Ipv6Addr::from(std::array::from_fn::<u8, 16, _>(|i| header[at + i]));
    Ok(Packet {
        from: address(8).into(),
        to: address(24).into(),
        ecn: ecn(header[1] >> 4),
        pseudo: pseudo_header(&header[8..], TCP, length),
        tcp,
    })
}

fn ecn(bits: u8) -> Ecn {
    match bits & 3 {
        0 => Ecn::NotEct,
        3 => Ecn::Ce,
        _ => Ecn::Ect0,
    }
}

fn read_options(mut rest: &[u8], segment: &mut Segment) -> Result<(), Fault> {
    let number = |bytes: [u8; 4]| u32::from_be_bytes(bytes);
    while let [kind, tail @ ..] = rest {
        match *kind {
            option::END => return Ok(()),
            option::NOP => {
                rest = tail;
                continue;
            }
            _ => {}
        }
        let length = usize::from(*tail.first().ok_or(Fault::Malformed)?);
        let body = rest.get(2..length).ok_or(Fault::Malformed)?;
        match (*kind, body) {
            (option::TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
                let (val, ecr) = (number([a, b, c, d]), number([e, f, g, h]));
                segment.ts = Some(Timestamps { val, ecr });
            }
            (option::SACK, blocks) => {
                for block in blocks.chunks_exact(8) {
                    let word = |at: usize| {
                        number([block[at], block[at + 1], block[at + 2], block[at + 3]])
                    };
                    segment.sack.push(word(0), word(4));
                }
            }
            (option::MSS, &[high, low]) => segment.mss = Some(u16::from_be_bytes([high, low])),
            (option::SACK_PERMITTED, []) => segment.sack_permitted = true,
            (option::WINDOW_SCALE, &[shift]) => segment.window_scale = Some(shift),
            _ => {}
        }
        rest = &rest[length..];
    }
    Ok(())
}
