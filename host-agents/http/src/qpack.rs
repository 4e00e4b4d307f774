// SPDX-License-Identifier: Apache-2.0
//! Encoding of field sections with the static table only, and without Huffman coding (RFC 9204, section 4.5).

use http::HeaderValue;

/// Prefix of a field section that does not use the dynamic table (RFC 9204, section 4.5.1).
const PREFIX: [u8; 2] = [0, 0];

/// `:status: 200` as indexed field line (RFC 9204, section 4.5.2): entry 25 of the static table (appendix A).
const STATUS_200: u8 = INDEXED | 25;
/// `accept-ranges: bytes`.
const ACCEPT_RANGES_BYTES: u8 = INDEXED | 32;

/// Entries of the static table whose name a literal field line refers to.
const CONTENT_LENGTH: u8 = 4;
pub const DATE: u8 = 6;
const ETAG: u8 = 7;
const LAST_MODIFIED: u8 = 10;
const CONTENT_TYPE: u8 = 44;

/// First bits of an indexed field line of the static table.
const INDEXED: u8 = 0b1100_0000;
/// First bits of a literal field line whose name is in the static table (RFC 9204, section 4.5.4).
const LITERAL: u8 = 0b0101_0000;
const NAME_BITS: u32 = 4;
const VALUE_BITS: u32 = 7;

/// Append a literal field line with the name of the static table's entry `name`.
pub fn put(section: &mut Vec<u8>, name: u8, value: &[u8]) {
    put_integer(section, LITERAL, NAME_BITS, name.into());
    put_integer(section, 0, VALUE_BITS, value.len());
    section.extend_from_slice(value);
}

/// Append an integer whose first `bits` bits are in a byte that begins with the bits `first` (RFC 7541, section 5.1).
fn put_integer(out: &mut Vec<u8>, first: u8, bits: u32, value: usize) {
    let max = (1 << bits) - 1;
    if value < max {
        return out.push(first | value as u8);
    }
    out.push(first | max as u8);
    let mut rest = value - max;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Encode the fields of a file's response that do not depend on the request.
pub fn file_fields(
    length: u64,
    tag: &HeaderValue,
    last_modified: &HeaderValue,
    media_type: &HeaderValue,
) -> Vec<u8> {
    let mut fields = PREFIX.to_vec();
    fields.push(STATUS_200);
    fields.push(ACCEPT_RANGES_BYTES);
    let length = length.to_string();
    put(&mut fields, CONTENT_LENGTH, length.as_bytes());
    put(&mut fields, CONTENT_TYPE, media_type.as_bytes());
    put(&mut fields, ETAG, tag.as_bytes());
    put(&mut fields, LAST_MODIFIED, last_modified.as_bytes());
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 7541, appendix C.1.
    #[test]
    fn integers_have_the_length_that_they_need() {
        let encoded = |bits, value| {
            let mut out = Vec::new();
            put_integer(&mut out, 0, bits, value);
            out
        };
        assert_eq!(encoded(5, 10), [0b0000_1010]);
        assert_eq!(encoded(5, 1337), [0b0001_1111, 0b1001_1010, 0b0000_1010]);
        assert_eq!(encoded(8, 42), [0b0010_1010]);
        assert_eq!(encoded(7, 127), [0b0111_1111, 0]);
    }

    /// RFC 9204, appendix B.1, has such a line for `:path`.
    #[test]
    fn literal_refers_to_a_name_of_the_static_table() {
        let mut section = PREFIX.to_vec();
        put(&mut section, 1, b"/index.html");
        let expected = b"\x00\x00\x51\x0b/index.html";
        assert_eq!(section, expected);
        section.clear();
        put(&mut section, CONTENT_TYPE, b"a/b");
        assert_eq!(section, b"\x5f\x1d\x03a/b");
    }
}
