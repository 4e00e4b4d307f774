// SPDX-License-Identifier: Apache-2.0
//! Completes in software the work that a sender offloaded to its network card: checksums and segmentation.
//!
//! On a veth pair there is no card to do it, so a P4 program would see packets of 64 KB with unfinished checksums.

use std::ops::Range;

/// `struct virtio_net_hdr`, which precedes each frame from the kernel (`linux/virtio_net.h`).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VnetHeader {
    pub flags: u8,
    pub gso_type: u8,
    pub header_len: u16,
    pub gso_size: u16,
    pub csum_start: u16,
    pub csum_offset: u16,
}

impl VnetHeader {
    /// Returns true if the frame is complete.
    pub fn is_whole(&self) -> bool {
        self.flags & NEEDS_CSUM == 0 && self.gso_type == 0
    }
}

const NEEDS_CSUM: u8 = 1;
const GSO_TCP_IPV4: u8 = 1;
const GSO_TCP_IPV6: u8 = 4;
const GSO_UDP: u8 = 5;
const GSO_ECN: u8 = 0x80;

const TCP: u8 = 6;
const UDP: u8 = 17;
const TCP_CHECKSUM: usize = 16;
const UDP_CHECKSUM: usize = 6;
const TCP_FIN: u8 = 0x01;
const TCP_PSH: u8 = 0x08;
const TCP_CWR: u8 = 0x80;
const UDP_HEADER: usize = 8;

/// Converts the frame to its form on a wire: with complete checksums, and in segments instead of one large frame.
/// A frame that contradicts its header is passed on unchanged.
pub fn finish(
    header: VnetHeader,
    frame: &mut [u8],
    scratch: &mut Vec<u8>,
    each: &mut dyn FnMut(&[u8]),
) {
    let gso = header.gso_type & !GSO_ECN;
    if gso != 0 && segment(header, gso, frame, scratch, each).is_some() {
        return;
    }
    if header.flags & NEEDS_CSUM != 0 {
        complete_checksum(header, frame);
    }
    each(frame);
}

/// Completes a checksum whose field contains the sum of the pseudo header.
fn complete_checksum(header: VnetHeader, frame: &mut [u8]) -> Option<()> {
    let start = usize::from(header.csum_start);
    let at = start + usize::from(header.csum_offset);
    let sum = transport_checksum(frame.get(start..)?, 0);
    let field = frame.get_mut(at..at + 2)?;
    field.copy_from_slice(&sum.to_be_bytes());
    Some(())
}

/// Completes the checksum of a TCP or UDP packet if its field contains the sum of the pseudo header only, as a sender leaves
/// it for its network card. For frames without a [`VnetHeader`].
pub fn finish_checksum(frame: &mut [u8]) -> Option<()> {
    let (l3, ipv6) = network_header(frame)?;
    let (protocol, l4) = if ipv6 {
        (*frame.get(l3 + 6)?, l3 + 40)
    } else {
        let is_fragment = [frame.get(l3 + 6)? & 0x3f, *frame.get(l3 + 7)?] != [0, 0];
        let header = usize::from(frame.get(l3)? & 15) * 4;
        let protocol = if is_fragment { 0 } else { *frame.get(l3 + 9)? };
        (protocol, l3 + header)
    };
    let length_at = if ipv6 { l3 + 4 } else { l3 + 2 };
    let length = usize::from(u16::from_be_bytes([
        *frame.get(length_at)?,
        *frame.get(length_at + 1)?,
    ]));
    let end = if ipv6 { l4 + length } else { l3 + length };
    let field = match protocol {
        TCP => l4 + TCP_CHECKSUM,
        UDP => l4 + UDP_CHECKSUM,
        _ => return None,
    };
    let given = u16::from_be_bytes([*frame.get(field)?, *frame.get(field + 1)?]);
    let transport = frame.get(l4..end)?;
    let pseudo = pseudo_header_sum(&frame[addresses(l3, ipv6)], protocol, transport.len());
    let is_unfinished = given == !checksum(&[], pseudo) && checksum(transport, pseudo) != 0;
    if is_unfinished {
        let sum = transport_checksum(transport, 0);
        frame[field..field + 2].copy_from_slice(&sum.to_be_bytes());
    }
    Some(())
}

/// Splits a TCP or UDP frame into segments of `gso_size` payload bytes.
fn segment(
    header: VnetHeader,
    gso: u8,
    frame: &[u8],
    segment: &mut Vec<u8>,
    each: &mut dyn FnMut(&[u8]),
) -> Option<()> {
    let l4 = usize::from(header.csum_start);
    let (l3, ipv6) = network_header(frame)?;
    let tcp = match gso {
        GSO_TCP_IPV4 | GSO_TCP_IPV6 => true,
        GSO_UDP => false,
        _ => return None,
    };
    let l4_len = match tcp {
        true => usize::from(*frame.get(l4 + 12)? >> 4) * 4,
        false => UDP_HEADER,
    };
    let payload_at = l4 + l4_len;
    let size = usize::from(header.gso_size);
    if size == 0 || l4 < l3 + 20 || l4_len < UDP_HEADER || frame.len() <= payload_at {
        return None;
    }
    let payload = &frame[payload_at..];
    let count = payload.len().div_ceil(size);
    for (n, part) in payload.chunks(size).enumerate() {
        segment.clear();
        segment.extend_from_slice(&frame[..payload_at]);
        segment.extend_from_slice(part);
        let l4_bytes = (l4_len + part.len()) as u16;
        if ipv6 {
            let payload_len = (segment.len() - l3 - 40) as u16;
            segment[l3 + 4..l3 + 6].copy_from_slice(&payload_len.to_be_bytes());
        } else {
            let total = (segment.len() - l3) as u16;
            segment[l3 + 2..l3 + 4].copy_from_slice(&total.to_be_bytes());
            let id = u16::from_be_bytes([segment[l3 + 4], segment[l3 + 5]]).wrapping_add(n as u16);
            segment[l3 + 4..l3 + 6].copy_from_slice(&id.to_be_bytes());
            segment[l3 + 10..l3 + 12].fill(0);
            let sum = checksum(&segment[l3..l4], 0);
            segment[l3 + 10..l3 + 12].copy_from_slice(&sum.to_be_bytes());
        }
        let checksum_at = if tcp {
            let seq = l4 + 4..l4 + 8;
            let first = u32::from_be_bytes(segment[seq.clone()].try_into().ok()?);
            let own = first.wrapping_add((n * size) as u32);
            segment[seq].copy_from_slice(&own.to_be_bytes());
            if n + 1 < count {
                segment[l4 + 13] &= !(TCP_FIN | TCP_PSH);
            }
            if n > 0 {
                segment[l4 + 13] &= !TCP_CWR;
            }
            l4 + TCP_CHECKSUM
        } else {
            segment[l4 + 4..l4 + 6].copy_from_slice(&l4_bytes.to_be_bytes());
            l4 + UDP_CHECKSUM
        };
        segment[checksum_at..checksum_at + 2].fill(0);
        let protocol = if tcp { TCP } else { UDP };
        let pseudo = pseudo_header_sum(&segment[addresses(l3, ipv6)], protocol, l4_bytes.into());
        let sum = transport_checksum(&segment[l4..], pseudo);
        segment[checksum_at..checksum_at + 2].copy_from_slice(&sum.to_be_bytes());
        each(segment);
    }
    Some(())
}

/// Returns the offset of the IP header behind any VLAN tags, and true for IPv6.
fn network_header(frame: &[u8]) -> Option<(usize, bool)> {
    let mut at = 12;
    loop {
        match [*frame.get(at)?, *frame.get(at + 1)?] {
            [0x81, 0x00] | [0x88, 0xa8] => at += 4,
            [0x08, 0x00] => return Some((at + 2, false)),
            [0x86, 0xdd] => return Some((at + 2, true)),
            _ => return None,
        }
    }
}

/// Returns the bytes of source and destination in a frame with this IP header.
fn addresses(l3: usize, ipv6: bool) -> Range<usize> {
    if ipv6 {
        l3 + 8..l3 + 40
    } else {
        l3 + 12..l3 + 20
    }
}

/// Returns the sum of the pseudo header of a packet with `length` bytes behind the IP header, not folded.
fn pseudo_header_sum(addresses: &[u8], protocol: u8, length: usize) -> u64 {
    partial_sum(addresses) + u64::from(protocol) + length as u64
}

/// Returns the checksum of a TCP or UDP packet, starting with a given sum. It is never 0, which would mean "not computed" in
/// UDP (RFC 768). To receivers, 0xffff is the same sum.
fn transport_checksum(bytes: &[u8], initial: u64) -> u16 {
    match checksum(bytes, initial) {
        0 => 0xffff,
        sum => sum,
    }
}

/// Returns the sum of 16-bit words, not folded.
fn partial_sum(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(2);
    let sum: u64 = words
        .by_ref()
        .map(|w| u64::from(u16::from_be_bytes([w[0], w[1]])))
        .sum();
    sum + words.remainder().first().map_or(0, |b| u64::from(*b) << 8)
}

/// Returns the Internet checksum (RFC 1071) of bytes, starting with a given sum.
fn checksum(bytes: &[u8], initial: u64) -> u16 {
    let mut sum = partial_sum(bytes) + initial;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(header: VnetHeader, frame: &[u8]) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        finish(header, &mut frame.to_vec(), &mut Vec::new(), &mut |f| {
            out.push(f.to_vec());
        });
        out
    }

    /// Builds an IPv4 or IPv6 TCP frame with a TCP header of 32 bytes.
    fn tcp_frame(ipv6: bool, payload: usize) -> (Vec<u8>, usize, usize) {
        let mut f = vec![2; 12];
        let (l3, l4) = if ipv6 {
            f.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 6, 64]);
            f.extend((0..32).collect::<Vec<u8>>());
            (14, 54)
        } else {
            f.extend([8, 0, 0x45, 0, 0, 0, 0xff, 0xff, 0x40, 0, 64, 6, 0, 0]);
            f.extend([10, 0, 0, 1, 10, 0, 0, 2]);
            (14, 34)
        };
        f.extend([
            0, 80, 0x1f, 0x90, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 9, 0x80, 0x99, 1, 0, 0, 0, 0, 0,
        ]);
        f.extend([1; 12]);
        f.extend((0..payload).map(|i| i as u8));
        (f, l3, l4)
    }

    fn checksum_is_right(f: &[u8], l3: usize, l4: usize) -> bool {
        let v6 = f[l3] >> 4 == 6;
        let pseudo = pseudo_header_sum(&f[addresses(l3, v6)], TCP, f.len() - l4);
        checksum(&f[l4..], pseudo) == 0 && (v6 || checksum(&f[l3..l4], 0) == 0)
    }

    #[test]
    fn tcp_segments_have_correct_headers() {
        for ipv6 in [false, true] {
            let (frame, l3, l4) = tcp_frame(ipv6, 2500);
            let header = VnetHeader {
                flags: NEEDS_CSUM,
                gso_type: if ipv6 { GSO_TCP_IPV6 } else { GSO_TCP_IPV4 },
                gso_size: 1000,
                csum_start: l4 as u16,
                csum_offset: 16,
                ..Default::default()
            };
            let out = run(header, &frame);
            let lens: Vec<_> = out.iter().map(|f| f.len() - l4 - 32).collect();
            assert_eq!(lens, [1000, 1000, 500]);
            assert!(out.iter().all(|f| checksum_is_right(f, l3, l4)));
            // Sequence numbers wrap; CWR is set only in the first segment, FIN and PSH in the last.
            let seqs: Vec<_> = out.iter().map(|f| f[l4 + 4..l4 + 8].to_vec()).collect();
            assert_eq!(seqs[1], 999u32.to_be_bytes());
            let flags: Vec<_> = out.iter().map(|f| f[l4 + 13]).collect();
            assert_eq!(flags, [0x90, 0x10, 0x19]);
            let rejoined: Vec<u8> = out.iter().flat_map(|f| f[l4 + 32..].to_vec()).collect();
            assert_eq!(rejoined, frame[l4 + 32..]);
        }
    }

    #[test]
    fn partial_checksum_is_completed() {
        let (mut frame, l3, l4) = tcp_frame(true, 33);
        let pseudo = pseudo_header_sum(&frame[addresses(l3, true)], TCP, frame.len() - l4);
        let folded = !checksum(&[], pseudo);
        frame[l4 + 16..l4 + 18].copy_from_slice(&folded.to_be_bytes());
        let header = VnetHeader {
            flags: NEEDS_CSUM,
            csum_start: l4 as u16,
            csum_offset: 16,
            ..Default::default()
        };
        let out = run(header, &frame);
        assert!(out.len() == 1 && checksum_is_right(&out[0], l3, l4));
    }

    #[test]
    fn checksum_of_zero_is_written_as_0xffff() {
        let (mut frame, l3, l4) = tcp_frame(true, 2);
        let at = l4 + TCP_CHECKSUM;
        let length = (frame.len() - l4) as u16;
        frame[l3 + 4..l3 + 6].copy_from_slice(&length.to_be_bytes());
        let pseudo = pseudo_header_sum(&frame[addresses(l3, true)], TCP, frame.len() - l4);
        // Choose a payload with which the checksum is 0.
        frame[at..at + 2].fill(0);
        let payload = frame.len() - 2;
        frame[payload..].fill(0);
        let rest = checksum(&frame[l4..], pseudo);
        frame[payload..].copy_from_slice(&rest.to_be_bytes());
        assert_eq!(checksum(&frame[l4..], pseudo), 0);
        frame[at..at + 2].copy_from_slice(&(!checksum(&[], pseudo)).to_be_bytes());
        let header = VnetHeader {
            flags: NEEDS_CSUM,
            csum_start: l4 as u16,
            csum_offset: TCP_CHECKSUM as u16,
            ..Default::default()
        };
        assert_eq!(run(header, &frame)[0][at..at + 2], [0xff, 0xff]);
        finish_checksum(&mut frame);
        assert_eq!(frame[at..at + 2], [0xff, 0xff]);
    }

    #[test]
    fn unfinished_checksum_is_recognized() {
        for ipv6 in [false, true] {
            let (mut frame, l3, l4) = tcp_frame(ipv6, 33);
            let whole = (frame.len() - if ipv6 { l4 } else { l3 }) as u16;
            let length_at = if ipv6 { l3 + 4 } else { l3 + 2 };
            frame[length_at..length_at + 2].copy_from_slice(&whole.to_be_bytes());
            if !ipv6 {
                frame[l3 + 6..l3 + 8].fill(0);
                let sum = checksum(&frame[l3..l4], 0);
                frame[l3 + 10..l3 + 12].copy_from_slice(&sum.to_be_bytes());
            }
            let pseudo = pseudo_header_sum(&frame[addresses(l3, ipv6)], TCP, frame.len() - l4);
            let mut unfinished = frame.clone();
            unfinished[l4 + 16..l4 + 18].copy_from_slice(&(!checksum(&[], pseudo)).to_be_bytes());
            let mut wrong = frame;
            wrong[l4 + 16..l4 + 18].copy_from_slice(&[0x12, 0x34]);
            let wrong_before = wrong.clone();
            // Ethernet pads short frames.
            unfinished.extend([0xee; 3]);
            finish_checksum(&mut unfinished);
            let end = unfinished.len() - 3;
            assert!(checksum_is_right(&unfinished[..end], l3, l4));
            let finished = unfinished.clone();
            finish_checksum(&mut unfinished);
            finish_checksum(&mut wrong);
            assert_eq!((unfinished, wrong), (finished, wrong_before));
        }
        for length in 0..60 {
            let (mut frame, ..) = tcp_frame(true, 0);
            finish_checksum(&mut frame[..length]);
        }
    }

    #[test]
    fn contradictory_headers_do_not_panic() {
        let (frame, ..) = tcp_frame(false, 100);
        for csum_start in [0, 13, 14, 33, 60, 165, 166, u16::MAX] {
            for (gso_type, gso_size) in [(0, 0), (1, 0), (1, 1), (4, 9), (5, 1000), (77, 1)] {
                let header = VnetHeader {
                    flags: NEEDS_CSUM,
                    gso_type,
                    gso_size,
                    csum_start,
                    csum_offset: 16,
                    ..Default::default()
                };
                assert!(!run(header, &frame).is_empty());
                run(header, &frame[..20]);
                run(header, &[]);
            }
        }
    }
}
