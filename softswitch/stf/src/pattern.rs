// SPDX-License-Identifier: Apache-2.0
//! Expected packets.

/// An expected packet: nibbles, some of which are wildcards.
#[derive(Debug, Clone, PartialEq)]
pub struct Pattern {
    nibbles: Vec<Option<u8>>,
    /// True if the packet must end with the pattern.
    exact: bool,
}

impl Pattern {
    /// Parses hexadecimal digits, with `*` for any digit, and `$` if the packet must end there.
    pub fn parse(text: &str) -> Result<Self, String> {
        let exact = text.ends_with('$');
        let nibbles = text.trim_end_matches('$').chars().map(|c| match c {
            '*' => Ok(None),
            c => c
                .to_digit(16)
                .map(|d| Some(d as u8))
                .ok_or_else(|| format!("invalid hex digit {c:?}")),
        });
        Ok(Self {
            nibbles: nibbles.collect::<Result<_, _>>()?,
            exact,
        })
    }

    /// Returns the index of the first different byte, or the length of the shorter one.
    pub fn differs_at(&self, packet: &[u8]) -> Option<usize> {
        (0..self.len().max(packet.len())).find(|&i| !self.agrees_at(i, packet))
    }

    /// Returns true if byte `i` of a packet, or its absence, matches.
    pub fn agrees_at(&self, i: usize, packet: &[u8]) -> bool {
        match (self.nibbles.chunks(2).nth(i), packet.get(i)) {
            (Some(want), Some(have)) => {
                let have = [have >> 4, have & 15];
                want.iter().zip(have).all(|(w, h)| w.is_none_or(|w| w == h))
            }
            (Some(_), None) => false,
            (None, _) => !self.exact,
        }
    }

    /// Formats byte `i` in two characters, with `*` for wildcards; `None` behind the end.
    pub fn byte(&self, i: usize) -> Option<String> {
        let digits = self.nibbles.chunks(2).nth(i)?;
        let digit =
            |n: &Option<u8>| n.map_or('*', |n| char::from_digit(n.into(), 16).unwrap_or('?'));
        Some(digits.iter().map(digit).collect())
    }

    /// Returns the number of bytes; the last one may have only one nibble.
    pub fn len(&self) -> usize {
        self.nibbles.len().div_ceil(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_reports_first_different_digit_or_end() {
        let p = Pattern::parse("0**1ff$").unwrap();
        assert_eq!(p.differs_at(&[0x0f, 0xf1, 0xff]), None);
        assert_eq!(p.differs_at(&[0x0f, 0xf1, 0xff, 0]), Some(3));
        assert_eq!(p.differs_at(&[0x0f, 0xf2, 0xff]), Some(1));
        assert_eq!(p.differs_at(&[0x0f, 0xf1]), Some(2));
        let open = Pattern::parse("0**").unwrap();
        assert_eq!(open.differs_at(&[0x0f, 0xf1, 0xff]), None);
        assert_eq!(open.differs_at(&[0x10]), Some(0));
        assert!(Pattern::parse("0g").is_err());
    }
}
