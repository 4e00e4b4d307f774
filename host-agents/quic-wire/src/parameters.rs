// SPDX-License-Identifier: Apache-2.0
//! Transport parameters (RFC 9000, section 18).

use bytes::Bytes;

use crate::{Reader, read_varint, write_varint};

/// Ids and values, in wire order.
pub type Parameters = Vec<(u64, Bytes)>;

/// Id of the parameter that tells a client for how many seconds it may use the preferred address for new connections,
/// too: an integer (Artemis, section 3.5; docs/naming.md).
pub const SERVICE_TTL: u64 = 0xff00;

/// Return the value of an integer parameter.
pub fn encode_integer(value: u64) -> Bytes {
    let mut wire = Vec::new();
    write_varint(&mut wire, value);
    wire.into()
}

/// Return the integer in the `value` of a parameter, or `None` if `value` is anything else.
pub fn decode_integer(mut value: &[u8]) -> Option<u64> {
    let integer = read_varint(&mut value)?;
    value.is_empty().then_some(integer)
}

/// Append `parameters` to `wire`.
pub fn write(parameters: &Parameters, wire: &mut Vec<u8>) {
    for (id, value) in parameters {
        write_varint(wire, *id);
        write_varint(wire, value.len() as u64);
        wire.extend(value);
    }
}

/// Return the parameters in `wire`, up to the first malformed one.
pub fn read(wire: &[u8]) -> Parameters {
    let mut reader = Reader(wire);
    std::iter::from_fn(|| read_one(&mut reader)).collect()
}

/// Return the parameters in `wire`, or `None` if one is malformed.
pub fn read_strict(wire: &[u8]) -> Option<Parameters> {
    let mut reader = Reader(wire);
    let mut parameters = Vec::new();
    while !reader.0.is_empty() {
        parameters.push(read_one(&mut reader)?);
    }
    Some(parameters)
}

fn read_one(reader: &mut Reader<'_>) -> Option<(u64, Bytes)> {
    let id = reader.varint()?;
    let value = reader.length_prefixed()?;
    Some((id, Bytes::copy_from_slice(value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parameters_survive_a_round_trip(ids in prop::collection::vec((0..1u64 << 62, any::<Vec<u8>>()), 0..4)) {
            let parameters: Parameters = ids.into_iter().map(|(id, value)| (id, value.into())).collect();
            let mut wire = Vec::new();
            write(&parameters, &mut wire);
            prop_assert_eq!(&read(&wire), &parameters);
            prop_assert_eq!(read_strict(&wire), Some(parameters.clone()));
            wire.push(0);
            prop_assert_eq!(read(&wire), parameters);
            prop_assert_eq!(read_strict(&wire), None);
        }
    }

    #[test]
    fn integers_fill_their_parameter() {
        for value in [0, 37, 15_293, (1 << 62) - 1] {
            let wire = encode_integer(value);
            assert_eq!(decode_integer(&wire), Some(value));
            assert_eq!(decode_integer(&[&wire[..], &[0]].concat()), None);
        }
        assert_eq!(decode_integer(&[]), None);
    }
}
