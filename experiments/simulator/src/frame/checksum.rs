// SPDX-License-Identifier: Apache-2.0
//! The Internet checksum (RFC 1071), whose sum can be computed in any byte order.

/// Returns the sum of 16-bit words in native byte order, before folding. A last odd byte is padded with zero.
pub fn sum(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(4);
    let mut sum = 0;
    for word in words.by_ref() {
        sum += u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
    }
    let mut last = [0; 4];
    let rest = words.remainder();
    last[..rest.len()].copy_from_slice(rest);
    sum + u64::from(u32::from_ne_bytes(last))
}

/// Folds a sum and returns the two bytes of the checksum.
pub fn fold(mut sum: u64) -> [u8; 2] {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_ne_bytes()
}

/// Returns the sum of the pseudo-header: addresses, protocol and length.
pub fn pseudo_header(addresses: &[u8], protocol: u8, length: usize) -> u64 {
    let [high, low] = (length as u16).to_be_bytes();
    sum(addresses) + sum(&[0, protocol, high, low])
}
