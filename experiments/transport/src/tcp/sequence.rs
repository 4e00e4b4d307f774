// SPDX-License-Identifier: Apache-2.0
//! Conversion between sequence numbers, which wrap, and offsets, which do not.

/// The initial sequence number of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin(pub u32);

impl Origin {
    /// Converts an offset to a sequence number.
    pub fn number(self, offset: u64) -> u32 {
        self.0.wrapping_add(offset as u32)
    }

    /// Converts a sequence number to the offset nearest to `near`, within 2^31. Returns `None` if it precedes the SYN.
    pub fn offset(self, number: u32, near: u64) -> Option<u64> {
        let distance = number.wrapping_sub(self.number(near)) as i32;
        near.checked_add_signed(i64::from(distance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn offset_round_trips(origin: u32, near in 0u64..1 << 40, ahead in -0x8000_0000i64..0x8000_0000) {
            let origin = Origin(origin);
            match near.checked_add_signed(ahead) {
                Some(offset) => prop_assert_eq!(origin.offset(origin.number(offset), near), Some(offset)),
                None => {
                    let number = origin.number(near).wrapping_add(ahead as u32);
                    prop_assert_eq!(origin.offset(number, near), None);
                }
            }
        }
    }
}
