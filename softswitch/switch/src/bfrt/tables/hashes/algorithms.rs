// SPDX-License-Identifier: Apache-2.0
//! The algorithm of a hash: one with a name, or a CRC with parameters.

use softswitch_pipeline::{HashAlgorithm, HashFunction};

use crate::bfrt::data::{Data, FieldValue};
use crate::bfrt::schema::Table;
use crate::p4rt::error::{P4Error, P4Result};

/// A CRC: name, width, polynomial, whether it is reversed, initial remainder and final mask.
type Crc = (&'static str, u32, u64, bool, u64, u64);

const ONES: u64 = u64::MAX;

/// The CRCs with a name, as in the catalogue of parametrised CRC algorithms.
const CRCS: &[Crc] = &[
    ("CRC_8", 8, 0x07, false, 0, 0),
    ("CRC_8_DARC", 8, 0x39, true, 0, 0),
    ("CRC_8_I_CODE", 8, 0x1d, false, 0xfd, 0),
    ("CRC_8_ITU", 8, 0x07, false, 0, 0x55),
    ("CRC_8_MAXIM", 8, 0x31, true, 0, 0),
    ("CRC_8_ROHC", 8, 0x07, true, 0xff, 0),
    ("CRC_8_WCDMA", 8, 0x9b, true, 0, 0),
    ("CRC_16", 16, 0x8005, true, 0, 0),
    ("CRC_16_BYPASS", 16, 0x8005, false, 0, 0),
    ("CRC_16_DDS_110", 16, 0x8005, false, 0x800d, 0),
    ("CRC_16_DECT", 16, 0x0589, false, 0, 1),
    ("CRC_16_DECT_R", 16, 0x0589, false, 0, 1),
    ("CRC_16_DECT_X", 16, 0x0589, false, 0, 0),
    ("CRC_16_DNP", 16, 0x3d65, true, 0, 0xffff),
    ("CRC_16_EN_13757", 16, 0x3d65, false, 0, 0xffff),
    ("CRC_16_GENIBUS", 16, 0x1021, false, 0xffff, 0xffff),
    ("CRC_16_MAXIM", 16, 0x8005, true, 0, 0xffff),
    ("CRC_16_MCRF4XX", 16, 0x1021, true, 0xffff, 0),
    ("CRC_16_RIELLO", 16, 0x1021, true, 0xb2aa, 0),
    ("CRC_16_T10_DIF", 16, 0x8bb7, false, 0, 0),
    ("CRC_16_TELEDISK", 16, 0xa097, false, 0, 0),
    ("CRC_16_USB", 16, 0x8005, true, 0xffff, 0xffff),
    ("X_25", 16, 0x1021, true, 0xffff, 0xffff),
    ("XMODEM", 16, 0x1021, false, 0, 0),
    ("MODBUS", 16, 0x8005, true, 0xffff, 0),
    ("KERMIT", 16, 0x1021, true, 0, 0),
    ("CRC_CCITT_FALSE", 16, 0x1021, false, 0xffff, 0),
    ("CRC_AUG_CCITT", 16, 0x1021, false, 0x1d0f, 0),
    ("CRC_32", 32, 0x04c1_1db7, true, 0xffff_ffff, 0xffff_ffff),
    (
        "CRC_32_BZIP2",
        32,
        0x04c1_1db7,
        false,
        0xffff_ffff,
        0xffff_ffff,
    ),
    ("CRC_32C", 32, 0x1edc_6f41, true, 0xffff_ffff, 0xffff_ffff),
    ("CRC_32D", 32, 0xa833_982b, true, 0xffff_ffff, 0xffff_ffff),
    ("CRC_32_MPEG", 32, 0x04c1_1db7, false, 0xffff_ffff, 0),
    ("POSIX", 32, 0x04c1_1db7, false, 0, 0xffff_ffff),
    ("CRC_32Q", 32, 0x8141_41ab, false, 0, 0),
    ("JAMCRC", 32, 0x04c1_1db7, true, 0xffff_ffff, 0),
    ("XFER", 32, 0xaf, false, 0, 0),
    ("CRC_64", 64, 0x42f0_e1eb_a9ea_3693, false, 0, 0),
    ("CRC_64_GO_ISO", 64, 0x1b, true, ONES, ONES),
    ("CRC_64_WE", 64, 0x42f0_e1eb_a9ea_3693, false, ONES, ONES),
    ("CRC_64_JONES", 64, 0xad93_d235_94c9_35a9, true, ONES, 0),
];

/// Returns the function of a name.
fn by_name(name: &str) -> Option<HashFunction> {
    match name {
        "IDENTITY" => return Some(HashFunction::Identity),
        "RANDOM" => return Some(HashFunction::Random),
        "XOR" => return Some(HashFunction::Xor),
        _ => {}
    }
    let found = CRCS.iter().find(|crc| crc.0 == name);
    found.map(
        |&(_, width, polynomial, is_reversed, initial, final_xor)| HashFunction::Crc {
            width,
            polynomial,
            initial,
            final_xor,
            is_reversed,
        },
    )
}

/// Returns the algorithm of an entry for hashes of `result_bits` bits; `None` without an action.
///
/// # Errors
/// INVALID_ARGUMENT for an unknown name, or a CRC with a missing or invalid parameter.
pub fn algorithm(table: &Table, data: &Data, result_bits: u32) -> P4Result<Option<HashAlgorithm>> {
    let Some(action) = table.action(data.action) else {
        return Ok(None);
    };
    let fault = |reason: &str| P4Error::invalid(format!("table {}: {reason}", table.name));
    let value = |name: &str| {
        let field = action.fields.iter().find(|field| field.name == name)?;
        data.values.get(&field.id)
    };
    let number = |name: &str| match value(name) {
        Some(FieldValue::Number(value)) => value.to_u64(),
        _ => None,
    };
    let function = match action.name.as_str() {
        "user_defined" => {
            let polynomial = number("polynomial").ok_or_else(|| fault("missing polynomial"))?;
            let highest = u64::from(u64::BITS - polynomial.leading_zeros());
            let width = number("hash_bit_width").unwrap_or(highest);
            if !(1..=64).contains(&width) {
                return Err(fault("hash_bit_width must be from 1 to 64"));
            }
            let mask = ONES >> (64 - width);
            HashFunction::Crc {
                width: width as u32,
                polynomial: polynomial & mask,
                initial: number("init").unwrap_or(0) & mask,
                final_xor: number("final_xor").unwrap_or(0) & mask,
                is_reversed: value("reverse") == Some(&FieldValue::Bool(true)),
            }
        }
        _ => {
            let name = match value("algorithm_name") {
                Some(FieldValue::Text(name)) => name,
                _ => "RANDOM",
            };
            by_name(name).ok_or_else(|| fault(&format!("unknown algorithm {name}")))?
        }
    };
    let flag = |name| data.bool(table, name) == Some(true);
    Ok(Some(HashAlgorithm {
        function,
        result_bits,
        seed: data.number(table, "seed").unwrap_or(0),
        rotation: data.u32(table, "rotate").unwrap_or(0),
        takes_high_bits: flag("msb"),
        repeats: flag("extend"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_functions() {
        assert_eq!(by_name("RANDOM"), Some(HashFunction::Random));
        let crc = HashFunction::Crc {
            width: 16,
            polynomial: 0x1021,
            initial: 0,
            final_xor: 0,
            is_reversed: true,
        };
        assert_eq!(by_name("KERMIT"), Some(crc));
        assert_eq!(by_name("CRC"), None);
    }
}
