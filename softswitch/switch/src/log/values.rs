// SPDX-License-Identifier: Apache-2.0
//! Values of traces in the notation of BMv2's log: hexadecimal without prefix.

/// Returns all digits of a value of this width, in whole bytes, such as `0a000001`.
pub(super) fn digits(value: &str, width: u32) -> String {
    let count = 2 * width.div_ceil(8).max(1) as usize;
    match (value.strip_prefix("0x"), value.parse::<u32>()) {
        (Some(hex), _) => format!("{hex:0>count$}"),
        (None, Ok(number)) => format!("{number:0count$x}"),
        // The length of an empty variable-length field.
        (None, Err(_)) => value.to_owned(),
    }
}

/// Returns the value without leading zeros, such as `a000001`.
pub(super) fn number(value: &str) -> String {
    let digits = digits(value, 0);
    let short = digits.trim_start_matches('0');
    if short.is_empty() { "0" } else { short }.to_owned()
}

/// Returns the kind and the notation of a match on a field of this width.
pub(super) fn criterion(text: &str, width: u32) -> (&'static str, String) {
    let digits = |value: &str| digits(value, width);
    if let Some((value, mask)) = text.split_once(" &&& ") {
        ("TERNARY", format!("{} &&& {}", digits(value), digits(mask)))
    } else if let Some((low, high)) = text.split_once("..") {
        ("RANGE", format!("{} -> {}", digits(low), digits(high)))
    } else if let Some((prefix, length)) = text.split_once('/') {
        ("LPM", format!("{}/{length}", digits(prefix)))
    } else if text == "*" {
        let zeros = digits("0");
        ("TERNARY", format!("{zeros} &&& {zeros}"))
    } else {
        ("EXACT", digits(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_hexadecimal() {
        assert_eq!(digits("0x0800", 16), "0800");
        assert_eq!(digits("0x1ff00", 17), "01ff00");
        assert_eq!(digits("64", 8), "40");
        assert_eq!(digits("1", 9), "0001");
        assert_eq!(number("0x000a"), "a");
        assert_eq!(number("0"), "0");
    }

    #[test]
    fn criteria_show_their_kind() {
        for (text, kind, shown) in [
            ("0x0a000000/8", "LPM", "0a000000/8"),
            ("0x10 &&& 0xf0", "TERNARY", "10 &&& f0"),
            ("1..9", "RANGE", "01 -> 09"),
        ] {
            assert_eq!(criterion(text, 8), (kind, shown.into()));
        }
        assert_eq!(criterion("*", 9), ("TERNARY", "0000 &&& 0000".into()));
        assert_eq!(criterion("7", 9), ("EXACT", "0007".into()));
    }
}
