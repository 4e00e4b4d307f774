// SPDX-License-Identifier: Apache-2.0
//! Active measurement of round-trip times: ICMP echo (RFC 792; RFC 4443, section 4.1) to client addresses.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use foldhash::HashMap;
use socket2::{Domain, Protocol, Socket, Type};

use crate::measurements::RttMean;
use crate::regions::Prefix;

/// Maximum number of addresses for one probe.
pub const MAX_ADDRESSES: usize = 1024;
/// Time limit for replies. A client with a longer round-trip time is never best served from here.
const REPLY_TIMEOUT: Duration = Duration::from_secs(1);

/// Sends an echo request to each address, and returns the round-trip times of those that reply within [`REPLY_TIMEOUT`].
///
/// Blocks for up to that time.
///
/// # Errors
/// Returns an error if a raw socket cannot be opened.
pub fn probe(addresses: &BTreeSet<IpAddr>) -> io::Result<Vec<RttMean>> {
    let (v4, v6): (Vec<IpAddr>, Vec<IpAddr>) =
        addresses.iter().partition(|address| address.is_ipv4());
    std::thread::scope(|scope| {
        let v4 = scope.spawn(|| probe_family(&v4, &ECHO_V4));
        let mut measured = probe_family(&v6, &ECHO_V6)?;
        measured.extend(
            v4.join()
                .map_err(|_| io::Error::other("the probe thread panicked"))??,
        );
        Ok(measured)
    })
}

/// The ICMP echo messages of an address family.
struct EchoProtocol {
    domain: Domain,
    protocol: Protocol,
    request: u8,
    reply: u8,
}

const ECHO_V4: EchoProtocol = EchoProtocol {
    domain: Domain::IPV4,
    protocol: Protocol::ICMPV4,
    request: 8,
    reply: 0,
};
const ECHO_V6: EchoProtocol = EchoProtocol {
    domain: Domain::IPV6,
    protocol: Protocol::ICMPV6,
    request: 128,
    reply: 129,
};

fn probe_family(addresses: &[IpAddr], echo: &EchoProtocol) -> io::Result<Vec<RttMean>> {
    let mut measured = Vec::new();
    if addresses.is_empty() {
        return Ok(measured);
    }
    let socket = Socket::new(echo.domain, Type::RAW, Some(echo.protocol))?;
    let id: u16 = rand::random();
    let mut sent = HashMap::default();
    for (number, address) in (0_u16..).zip(addresses) {
        // Before the request is sent: a time after it would hide how long this thread waits for a core.
        let began = Instant::now();
        let destination = SocketAddr::new(*address, 0).into();
        // An address without a route only loses its own measurement.
        if socket
            .send_to(&encode_request(echo, id, number), &destination)
            .is_ok()
        {
            sent.insert(number, (*address, began));
        }
    }
    let end = Instant::now() + REPLY_TIMEOUT;
    let mut buffer = [MaybeUninit::uninit(); 256];
    while !sent.is_empty() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        socket.set_read_timeout(Some(left))?;
        let (n, from) = match socket.recv_from(&mut buffer) {
            Ok(received) => received,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                break;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let now = Instant::now();
        let bytes: Vec<u8> = buffer[..n]
            .iter()
            // SAFETY: recv_from initialized the first `n` bytes.
            .map(|byte| unsafe { byte.assume_init() })
            .collect();
        let number = parse_reply(echo, id, &bytes);
        let from = from.as_socket().map(|from| from.ip());
        if let Some(number) = number
            && let Some((address, at)) = sent.get(&number).copied()
            && from == Some(address)
        {
            sent.remove(&number);
            measured.push(RttMean {
                prefix: Prefix::host(address),
                rtt_us: (now - at).as_micros() as u64,
                count: 1,
            });
        }
    }
    Ok(measured)
}

/// Encodes an echo request. The kernel computes the ICMPv6 checksum (RFC 3542, section 3.1).
fn encode_request(echo: &EchoProtocol, id: u16, number: u16) -> [u8; 8] {
    let [i0, i1] = id.to_be_bytes();
    let [n0, n1] = number.to_be_bytes();
    let sum = u32::from(echo.request) * 256 + u32::from(id) + u32::from(number);
    let sum = (sum & 0xffff) + (sum >> 16);
    let [c0, c1] = (!(sum as u16)).to_be_bytes();
    [echo.request, 0, c0, c1, i0, i1, n0, n1]
}

/// Returns the sequence number of an echo reply. Over IPv4, `bytes` starts with the IP header.
fn parse_reply(echo: &EchoProtocol, id: u16, bytes: &[u8]) -> Option<u16> {
    let header = match echo.domain {
        Domain::IPV4 => usize::from(bytes.first()? & 0x0f) * 4,
        _ => 0,
    };
    let icmp: &[u8; 8] = bytes.get(header..)?.first_chunk()?;
    let is_ours = icmp[0] == echo.reply && u16::from_be_bytes([icmp[4], icmp[5]]) == id;
    is_ours.then(|| u16::from_be_bytes([icmp[6], icmp[7]]))
}
