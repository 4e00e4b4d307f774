// SPDX-License-Identifier: Apache-2.0
//! The math unit of Tofino, which approximates powers and reciprocals with a table.

/// Number of the mantissa's bits, which index the table.
const MANTISSA_BITS: i32 = 4;

/// A math unit: the value of each mantissa, and what becomes of the exponent.
#[derive(Debug, Clone)]
pub(crate) struct MathUnit {
    /// True to negate the exponent.
    pub(crate) is_inverted: bool,
    /// 1 doubles the exponent, -1 halves it.
    pub(crate) shift: i32,
    /// Exponent of the result's factor.
    pub(crate) scale: i32,
    pub(crate) table: [u8; 16],
}

impl MathUnit {
    /// Returns `2^scale * table[m] * 2^g(e)` for an input of about `m / 8 * 2^e`. `g` multiplies the exponent by 2, 1 or
    /// 1/2, and may negate it. The mantissa has its highest bit set, except that it is half as large if an odd exponent
    /// is halved. The result saturates at `max`.
    pub(crate) fn execute(&self, input: u64, max: u64) -> u64 {
        let Some(highest) = input.checked_ilog2() else {
            return scaled(self.table[0].into(), self.scale, max);
        };
        let mut exponent = highest as i32;
        let is_odd = self.shift < 0 && exponent % 2 != 0;
        exponent += i32::from(is_odd);
        let mantissa = scaled(input, MANTISSA_BITS - 1 - exponent, u64::MAX);
        let exponent = match self.shift {
            1.. => exponent * 2,
            0 => exponent,
            _ => exponent / 2,
        };
        let exponent = if self.is_inverted {
            -exponent
        } else {
            exponent
        };
        let value = self.table[mantissa as usize & 0xf];
        scaled(value.into(), exponent + self.scale, max)
    }
}

/// Returns `value * 2^exponent`, rounded down, at most `max`.
fn scaled(value: u64, exponent: i32, max: u64) -> u64 {
    let by = exponent.unsigned_abs();
    if exponent < 0 {
        return value.checked_shr(by).unwrap_or(0).min(max);
    }
    match by < value.leading_zeros() || value == 0 {
        true if value == 0 => 0,
        true => (value << by).min(max),
        false => max,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(is_inverted: bool, shift: i32, scale: i32, f: impl Fn(f64) -> f64) -> MathUnit {
        let first = if shift < 0 { 4 } else { 8 };
        let value = |i: usize| match i >= first {
            true => f(i as f64 / 8.0).round() as u8,
            false => 0,
        };
        MathUnit {
            is_inverted,
            shift,
            scale,
            table: std::array::from_fn(value),
        }
    }

    #[test]
    fn powers_are_approximated() {
        // 2^-6 * (64 * x), then the square, the root and the reciprocal with a factor of 2^20.
        let same = unit(false, 0, -6, |x| 64.0 * x);
        assert_eq!(
            [0, 1, 2, 100, 1000].map(|x| same.execute(x, u64::MAX)),
            [0, 1, 2, 96, 960]
        );
        let square = unit(false, 1, -5, |x| 32.0 * x * x);
        assert_eq!(
            [1, 3, 8, 800].map(|x| square.execute(x, u64::MAX)),
            [1, 9, 64, 589_824]
        );
        let root = unit(false, -1, -6, |x| 64.0 * x.sqrt());
        assert_eq!(
            [1, 4, 64, 1 << 20].map(|x| root.execute(x, u64::MAX)),
            [1, 2, 8, 1 << 10]
        );
        assert_eq!(root.execute(2, u64::MAX), 1);
        assert_eq!(root.execute(200, u64::MAX), 13);
        let reciprocal = unit(true, 0, 13, |x| 128.0 / x);
        assert_eq!(
            [1, 2, 1024].map(|x| reciprocal.execute(x, u64::MAX)),
            [1 << 20, 1 << 19, 1 << 10]
        );
    }

    #[test]
    fn result_saturates() {
        let square = unit(false, 1, -5, |x| 32.0 * x * x);
        assert_eq!(square.execute(1 << 20, 0xffff_ffff), 0xffff_ffff);
        assert_eq!(square.execute(u64::MAX, u64::MAX), u64::MAX);
    }
}
