// SPDX-License-Identifier: Apache-2.0
//! Small unsigned floating-point codes for loads and times (docs/cookie.md, "Quantisation").

/// A code of `width` bits whose mantissa has `mantissa` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantiser {
    /// Bits in a code (`w`).
    pub width: u32,
    /// Bits of mantissa (`m`).
    pub mantissa: u32,
}

/// N_AF and N_FF in the TCP form.
pub const TCP_COUNT: Quantiser = Quantiser {
    width: 5,
    mantissa: 2,
};
/// RPT in the TCP form.
pub const TCP_RPT: Quantiser = Quantiser {
    width: 6,
    mantissa: 2,
};
/// RPT, N_AF and N_FF in the IPv6 form.
pub const IPV6: Quantiser = Quantiser {
    width: 8,
    mantissa: 3,
};

/// Unit of RPT in microseconds.
pub const RPT_UNIT_US: u64 = 8;

impl Quantiser {
    /// Return the largest code, to which larger values are clipped.
    pub const fn max_code(self) -> u32 {
        (1 << self.width) - 1
    }

    /// Return the code of the interval that contains `value`.
    pub const fn encode(self, value: u64) -> u32 {
        let m = self.mantissa;
        if value < 1 << m {
            return value as u32;
        }
        let exponent = value.ilog2() - m;
        let code = ((exponent + 1) << m) + ((value >> exponent) as u32 & ((1 << m) - 1));
        if code > self.max_code() {
            self.max_code()
        } else {
            code
        }
    }

    /// Return the lower end of the interval of `code`. Bits above `width` are ignored.
    pub const fn decode(self, code: u32) -> u64 {
        let m = self.mantissa;
        let code = code & self.max_code();
        if code < 1 << m {
            return code as u64;
        }
        let exponent = (code >> m) - 1;
        (((1 << m) + (code & ((1 << m) - 1))) as u64) << exponent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_match_the_specification() {
        for (q, exact_below, largest) in [
            (TCP_COUNT, 8, 448),
            (TCP_RPT, 8, 114_688),
            (IPV6, 16, 15u64 << 30),
        ] {
            assert!((0..exact_below).all(|v| q.decode(q.encode(v)) == v));
            assert_eq!(q.decode(q.max_code()), largest);
            assert_eq!(q.encode(u64::MAX), q.max_code());
        }
    }

    proptest! {
        #[test]
        fn decoded_value_is_low_by_less_than_one_step(v in 0u64..16 << 30, small in 0u64..512) {
            for q in [TCP_COUNT, TCP_RPT, IPV6] {
                for v in [v, small] {
                    let v = v.min(q.decode(q.max_code()));
                    let back = q.decode(q.encode(v));
                    prop_assert!(back <= v);
                    prop_assert!((v - back) << q.mantissa < v.max(1));
                }
            }
        }

        #[test]
        fn codes_are_monotone(a: u64, b: u64) {
            for q in [TCP_COUNT, TCP_RPT, IPV6] {
                prop_assert_eq!(a.min(b) == a, q.encode(a.min(b)) <= q.encode(a.max(b)) && a <= b);
            }
        }
    }
}
