//! Expected packets.

/// An expected packet: nibbles, of which some may be anything.
#[derive(Debug, Clone, PartialEq)]
pub struct Pattern {
    nibbles: Vec<Option<u8>>,
    /// The packet ends where the pattern does.
    exact: bool,
}

impl Pattern {
    /// Hexadecimal digits, `*` for any, and `$` at the end of a packet that ends there.
    pub fn parse(text: &str) -> Result<Self, String> {
        let exact = text.ends_with('$');
        let nibbles = text.trim_end_matches('$').chars().map(|c| match c {
            '*' => Ok(None),
            c => c
                .to_digit(16)
                .map(|d| Some(d as u8))
                .ok_or_else(|| format!("{c:?} is no hex digit")),
        });
        Ok(Self {
            nibbles: nibbles.collect::<Result<_, _>>()?,
            exact,
        })
    }

    /// The byte where a packet first differs; one behind the end of either, if one is too short.
    pub fn differs_at(&self, packet: &[u8]) -> Option<usize> {
        (0..self.len().max(packet.len())).find(|&i| !self.agrees_at(i, packet))
    }

    /// Whether byte `i` of a packet, or its absence, is as it should be.
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

    /// Byte `i` in two characters, `*` where anything will do; none behind the end.
    pub fn byte(&self, i: usize) -> Option<String> {
        let digits = self.nibbles.chunks(2).nth(i)?;
        let digit =
            |n: &Option<u8>| n.map_or('*', |n| char::from_digit(n.into(), 16).unwrap_or('?'));
        Some(digits.iter().map(digit).collect())
    }

    /// Bytes, of which the last may be half.
    pub fn len(&self) -> usize {
        self.nibbles.len().div_ceil(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_differ_where_a_digit_or_the_end_does() {
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
