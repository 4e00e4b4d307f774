//! Transport parameters as they are on the wire (RFC 9000, section 18).

use bytes::{BufMut, Bytes};

/// Ids and values, in order.
pub type Parameters = Vec<(u64, Bytes)>;

/// For how many seconds a client may use the preferred address for new connections, too: an integer (Artemis, section 3.5; docs/naming.md).
pub const SERVICE_TTL: u64 = 0xff00;

/// The value of a parameter that is an integer.
pub fn integer(value: u64) -> Bytes {
    let mut wire = Vec::new();
    put_varint(&mut wire, value);
    wire.into()
}

/// The integer that `value` is, if it is one and nothing else.
pub fn read_integer(mut value: &[u8]) -> Option<u64> {
    let integer = varint(&mut value)?;
    value.is_empty().then_some(integer)
}

/// Appends `parameters` to `wire`.
pub fn write(parameters: &Parameters, wire: &mut Vec<u8>) {
    for (id, value) in parameters {
        put_varint(wire, *id);
        put_varint(wire, value.len() as u64);
        wire.extend(value);
    }
}

/// Reads what `wire` holds, up to where it is malformed.
pub fn read(mut wire: &[u8]) -> Parameters {
    let mut parameters = Vec::new();
    while let Some((id, value)) = parameter(&mut wire) {
        parameters.push((id, value));
    }
    parameters
}

/// Reads `wire` if nothing of it is malformed.
pub fn read_whole(mut wire: &[u8]) -> Option<Parameters> {
    let mut parameters = Vec::new();
    while !wire.is_empty() {
        parameters.push(parameter(&mut wire)?);
    }
    Some(parameters)
}

fn parameter(wire: &mut &[u8]) -> Option<(u64, Bytes)> {
    let id = varint(wire)?;
    let length = varint(wire)?;
    let (value, rest) = wire.split_at_checked(usize::try_from(length).ok()?)?;
    *wire = rest;
    Some((id, Bytes::copy_from_slice(value)))
}

/// Takes a variable-length integer (RFC 9000, section 16).
#[inline]
pub fn varint(wire: &mut &[u8]) -> Option<u64> {
    // The first two bits say how long it is, which no branch could foresee: where there are eight bytes, they are read whatever it is.
    let length = 1 << (wire.first()? >> 6);
    let (here, rest) = wire.split_at_checked(length)?;
    let value = match wire.first_chunk() {
        Some(eight) => u64::from_be_bytes(*eight) >> (64 - 8 * length),
        None => here
            .iter()
            .fold(0, |value, octet| value << 8 | u64::from(*octet)),
    };
    *wire = rest;
    Some(value & (u64::MAX >> 2 >> (64 - 8 * length)))
}

/// Appends a variable-length integer, as short as it can be.
pub fn put_varint(wire: &mut impl BufMut, value: u64) {
    match value {
        0..0x40 => wire.put_u8(value as u8),
        0x40..0x4000 => wire.put_u16(value as u16 | 1 << 14),
        0x4000..0x4000_0000 => wire.put_u32(value as u32 | 2 << 30),
        _ => wire.put_u64(value | 3 << 62),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_written_is_read(ids in prop::collection::vec((0..1u64 << 62, any::<Vec<u8>>()), 0..4)) {
            let parameters: Parameters = ids.into_iter().map(|(id, value)| (id, value.into())).collect();
            let mut wire = Vec::new();
            write(&parameters, &mut wire);
            prop_assert_eq!(&read(&wire), &parameters);
            prop_assert_eq!(read_whole(&wire), Some(parameters));
            wire.push(0);
            prop_assert_eq!(read_whole(&wire), None);
        }
    }

    #[test]
    fn lengths_of_integers() {
        // RFC 9000, appendix A.1.
        for (value, wire) in [
            (37, vec![0x25]),
            (15_293, vec![0x7b, 0xbd]),
            (494_878_333, vec![0x9d, 0x7f, 0x3e, 0x7d]),
            (
                151_288_809_941_952_652,
                vec![0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c],
            ),
        ] {
            let mut written = Vec::new();
            put_varint(&mut written, value);
            assert_eq!(written, wire);
            assert_eq!(varint(&mut &wire[..]), Some(value));
            assert_eq!(integer(value), wire);
            assert_eq!(read_integer(&wire), Some(value));
            assert_eq!(read_integer(&[&wire[..], &[0]].concat()), None);
        }
    }
}
