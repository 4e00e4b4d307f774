// SPDX-License-Identifier: Apache-2.0
//! Lookup keys: match fields packed into 64-bit words.

use smallvec::SmallVec;

use crate::error::StateError;
use crate::info::{KeyInfo, MatchKind};
use crate::phv::mask64;
use crate::value::Value;

/// The value of one field, most significant limb first.
pub(crate) type Limbs = SmallVec<[u64; 2]>;

/// Maximum width in bits of a key that serves as an array index.
const MAX_SHORT: u32 = 16;

/// The position of one field in the key.
#[derive(Debug, Clone)]
pub(crate) struct KeyField {
    pub(crate) info: KeyInfo,
    /// First word; a field of more than 64 bits has its most significant word first.
    pub(crate) word: usize,
    pub(crate) words: usize,
    /// Position of a field of up to 64 bits in its word.
    pub(crate) shift: u32,
    /// First limb of the lower bound among an entry's range limbs.
    pub(crate) range: usize,
    /// Limbs with all bits of the field set.
    pub(crate) full: Limbs,
}

/// The layout of a table's key, and the rules for its entries.
#[derive(Debug, Clone)]
pub(crate) struct KeyShape {
    pub(crate) table: String,
    pub(crate) fields: Vec<KeyField>,
    /// The range fields among them.
    ranged: Vec<KeyField>,
    /// Digits of the key, four bits each, that contain a part of a field, counted from the most significant end.
    pub(crate) digits: Vec<u16>,
    /// Number of words of the key.
    pub(crate) words: usize,
    /// Number of limbs of an entry's ranges: lower and upper bound of each range field.
    pub(crate) range_limbs: usize,
    pub(crate) needs_priority: bool,
    /// True if the priority is the prefix length.
    pub(crate) by_prefix: bool,
}

impl KeyField {
    /// Returns the limbs of a value that is not wider than the field.
    pub(crate) fn limbs(&self, v: &Value) -> Limbs {
        if self.words == 1 {
            let limb = v.to_u64().expect("the width was checked");
            return SmallVec::from_buf_and_len([limb, 0], 1);
        }
        let mut limbs: Limbs = v.limbs().collect();
        debug_assert!(limbs.len() <= self.words, "the width was checked");
        limbs.resize(self.words, 0);
        limbs.reverse();
        limbs
    }

    /// Writes limbs of this field into words of the key.
    pub(crate) fn place(&self, limbs: &[u64], into: &mut [u64]) {
        for (i, limb) in limbs.iter().enumerate() {
            into[self.word + i] |= limb << self.shift;
        }
    }

    pub(crate) fn pick(&self, from: &[u64]) -> Limbs {
        if self.words > 1 {
            return SmallVec::from_slice(&from[self.word..self.word + self.words]);
        }
        SmallVec::from_slice(&[from[self.word] >> self.shift & mask64(self.info.width)])
    }

    pub(crate) fn value(&self, limbs: &[u64]) -> Value {
        let bytes: SmallVec<[u8; 16]> = limbs.iter().flat_map(|l| l.to_be_bytes()).collect();
        Value::from_be_bytes(&bytes)
    }

    /// Returns limbs with the `len` most significant bits of the field set.
    pub(crate) fn prefix(&self, len: u32) -> Limbs {
        prefix(self.info.width, len, self.words)
    }

    /// Returns the position of the field's most significant bit, counted from the key's.
    fn first_bit(&self) -> usize {
        (self.word + self.words) * 64 - self.shift as usize - self.info.width as usize
    }

    /// Returns the lower and upper bound among an entry's range limbs.
    pub(crate) fn bounds<'a>(&self, ranges: &'a [u64]) -> (&'a [u64], &'a [u64]) {
        ranges[self.range..self.range + 2 * self.words].split_at(self.words)
    }
}

/// Returns `words` limbs with the `len` most significant of `width` bits set.
fn prefix(width: u32, len: u32, words: usize) -> Limbs {
    let low = width - len.min(width);
    let limb = |i: u32| {
        let (first, last) = (i * 64, ((i + 1) * 64).min(width.max(i * 64)));
        mask64(last - first) & !mask64_below(low.clamp(first, last) - first)
    };
    (0..words as u32).rev().map(limb).collect()
}

/// Returns a mask of the bits below `n`.
fn mask64_below(n: u32) -> u64 {
    if n >= 64 { u64::MAX } else { (1 << n) - 1 }
}

impl KeyShape {
    /// Lays out the fields in the order of `key`, without gaps, so that they end at the last bit of the last word.
    /// A longest-prefix field comes last, so that an entry is a prefix of the key as a whole.
    pub(crate) fn new(table: &str, key: &[KeyInfo]) -> Self {
        let has = |kind| key.iter().any(|k| k.kind == kind);
        let needs_priority =
            has(MatchKind::Ternary) || has(MatchKind::Range) || has(MatchKind::Optional);
        let by_prefix = !needs_priority && has(MatchKind::Lpm);
        let mut fields: Vec<KeyField> = Vec::with_capacity(key.len());
        let mut range_limbs = 0;
        for info in key {
            let words = info.width.div_ceil(64).max(1) as usize;
            fields.push(KeyField {
                info: info.clone(),
                word: 0,
                words,
                shift: 0,
                range: range_limbs,
                full: prefix(info.width, info.width, words),
            });
            if info.kind == MatchKind::Range {
                range_limbs += 2 * words;
            }
        }
        let mut order: Vec<&mut KeyField> = fields.iter_mut().collect();
        order.sort_by_key(|f| by_prefix && f.info.kind == MatchKind::Lpm);
        // Counted from the end until the number of words is known.
        let (mut words, mut free) = (0, 0);
        for f in order.iter_mut().rev() {
            // A field of width 0 takes no bits, but needs a word for its shift.
            if f.words > 1 || f.info.width.max(1) > free {
                words += f.words;
                free = if f.words == 1 { 64 } else { 0 };
            }
            if f.words == 1 {
                f.shift = 64 - free;
                free -= f.info.width;
            }
            f.word = words;
        }
        for f in order {
            f.word = words - f.word;
        }
        let is_range = |f: &&KeyField| f.info.kind == MatchKind::Range;
        let mut shape = Self {
            table: table.to_owned(),
            ranged: fields.iter().filter(is_range).cloned().collect(),
            fields,
            digits: Vec::new(),
            words,
            range_limbs,
            needs_priority,
            by_prefix,
        };
        let full = shape.full_mask();
        let digits = 0..words as u16 * 16;
        shape.digits = digits.filter(|&n| digit(&full, n) != 0).collect();
        shape
    }

    /// Returns the mask of all bits of all fields.
    pub(crate) fn full_mask(&self) -> Vec<u64> {
        self.prefix_mask(u32::MAX)
    }

    /// Returns the mask of all bits of all fields, but only the first `len` of a longest-prefix field.
    pub(crate) fn prefix_mask(&self, len: u32) -> Vec<u64> {
        let mut mask = vec![0; self.words];
        for f in &self.fields {
            let is_lpm = f.info.kind == MatchKind::Lpm;
            f.place(&f.prefix(if is_lpm { len } else { u32::MAX }), &mut mask);
        }
        mask
    }

    /// Returns the width of a key that can serve as an array index: exact and short.
    pub(crate) fn short_bits(&self) -> Option<u32> {
        let exact = !self.needs_priority && !self.by_prefix;
        let bits = self.fields.iter().map(|f| f.info.width).sum();
        (exact && bits <= MAX_SHORT).then_some(bits)
    }

    /// Returns the first bit of the key that belongs to a field.
    pub(crate) fn first_bit(&self) -> usize {
        let bits = self.fields.iter().map(KeyField::first_bit);
        bits.min().unwrap_or(0)
    }

    /// Returns the first bit of the longest-prefix field, if there is one.
    pub(crate) fn prefix_bit(&self) -> Option<usize> {
        let lpm = self.fields.iter().find(|f| f.info.kind == MatchKind::Lpm);
        lpm.map(KeyField::first_bit)
    }

    /// Returns the position of field `i` in the key.
    pub(crate) fn slot(&self, i: usize) -> (usize, u32) {
        (self.fields[i].word, self.fields[i].shift)
    }

    pub(crate) fn bad(&self, f: &KeyField, reason: String) -> StateError {
        StateError::BadKey {
            table: self.table.clone(),
            field: f.info.name.clone(),
            reason,
        }
    }

    pub(crate) fn check_count(&self, given: usize) -> Result<(), StateError> {
        let declared = self.fields.len();
        if given == declared {
            return Ok(());
        }
        Err(StateError::BadKey {
            table: self.table.clone(),
            field: "key".to_owned(),
            reason: format!("{given} match fields given, but {declared} declared"),
        })
    }

    pub(crate) fn check_width(&self, f: &KeyField, v: &Value) -> Result<(), StateError> {
        if v.bits() <= f.info.width {
            return Ok(());
        }
        Err(StateError::TooWide {
            what: format!("table {}, match field {}", self.table, f.info.name),
            value: v.clone(),
            width: f.info.width,
        })
    }

    /// Packs these values of the fields into a key.
    pub(crate) fn pack(&self, values: &[Value]) -> Result<Vec<u64>, StateError> {
        self.check_count(values.len())?;
        let mut key = vec![0; self.words];
        for (f, v) in self.fields.iter().zip(values) {
            self.check_width(f, v)?;
            f.place(&f.limbs(v), &mut key);
        }
        Ok(key)
    }

    /// Unpacks the fields of a packet's key.
    pub(crate) fn key_values(&self, key: &[u64]) -> Vec<Value> {
        self.fields.iter().map(|f| f.value(&f.pick(key))).collect()
    }

    /// Returns true if all range fields of the key are within an entry's bounds.
    #[inline]
    pub(crate) fn in_ranges(&self, key: &[u64], ranges: &[u64]) -> bool {
        self.ranged.iter().all(|f| {
            let (low, high) = f.bounds(ranges);
            if f.words == 1 {
                let v = key[f.word] >> f.shift & mask64(f.info.width);
                low[0] <= v && v <= high[0]
            } else {
                let v = &key[f.word..f.word + f.words];
                low <= v && v <= high
            }
        })
    }

    /// Returns the set of values, one bit each, that an entry's values, masks and ranges allow for a digit of the key. For
    /// ranges, the set may be too large, because digits are considered one by one.
    pub(crate) fn allowed(&self, record: &[u64], n: u16) -> u16 {
        let (values, rest) = record.split_at(self.words);
        let (masks, ranges) = rest.split_at(self.words);
        let (word, shift) = place(n);
        let within = |f: &&KeyField| {
            let end = f.shift + f.info.width;
            f.words == 1 && f.word == word && f.shift <= shift && shift + 4 <= end
        };
        if let Some(f) = self.ranged.iter().find(within) {
            let (low, high) = f.bounds(ranges);
            let (low, high) = (low[0] >> (shift - f.shift), high[0] >> (shift - f.shift));
            if low >> 4 != high >> 4 {
                return u16::MAX;
            }
            return ((2_u32 << (high & 15)) - (1 << (low & 15))) as u16;
        }
        let mask = digit(masks, n);
        (0..4)
            .filter(|bit| mask >> bit & 1 == 0)
            .fold(1 << digit(values, n), |set, bit| set | set << (1 << bit))
    }
}

/// Returns the word and the shift of a digit.
#[inline]
fn place(n: u16) -> (usize, u32) {
    (usize::from(n / 16), 60 - u32::from(n % 16) * 4)
}

/// Returns a digit of a key.
#[inline]
pub(crate) fn digit(key: &[u64], n: u16) -> usize {
    let (word, shift) = place(n);
    (key[word] >> shift & 15) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(key: &[(MatchKind, u32)]) -> KeyShape {
        let info = |&(kind, width)| KeyInfo {
            name: "f".to_owned(),
            kind,
            width,
        };
        KeyShape::new("t", &key.iter().map(info).collect::<Vec<_>>())
    }

    #[test]
    fn prefix_starts_at_most_significant_bit() {
        let shape = shape(&[(MatchKind::Lpm, 100)]);
        assert_eq!(shape.fields[0].prefix(100)[..], [mask64(36), u64::MAX]);
        assert_eq!(shape.fields[0].prefix(1)[..], [1 << 35, 0]);
        assert_eq!(shape.fields[0].prefix(37)[..], [mask64(36), 1 << 63]);
        assert_eq!(shape.fields[0].prefix(0)[..], [0, 0]);
    }

    #[test]
    fn prefix_field_is_last_without_gap() {
        let shape = shape(&[(MatchKind::Lpm, 128), (MatchKind::Exact, 16)]);
        assert_eq!(
            (shape.words, shape.slot(0), shape.slot(1)),
            (3, (1, 0), (0, 0))
        );
        assert_eq!((shape.first_bit(), shape.prefix_bit()), (48, Some(64)));
    }

    #[test]
    fn fields_share_words_and_end_at_last_bit() {
        let shape = shape(&[
            (MatchKind::Exact, 9),
            (MatchKind::Ternary, 60),
            (MatchKind::Lpm, 4),
            (MatchKind::Exact, 65),
        ]);
        let slots: Vec<_> = (0..4).map(|i| shape.slot(i)).collect();
        assert_eq!(slots, [(0, 0), (1, 4), (1, 0), (2, 0)]);
        assert_eq!(shape.full_mask(), [mask64(9), u64::MAX, 1, u64::MAX]);
    }

    #[test]
    fn digits_allow_values_of_mask_and_range() {
        use crate::entry::{EntryKey, MatchField};
        let shape = shape(&[(MatchKind::Ternary, 8), (MatchKind::Range, 8)]);
        let (value, mask) = (0x21u64.into(), 0xa3u64.into());
        let (low, high) = (0x35u64.into(), 0x4au64.into());
        let fields = vec![
            MatchField::Ternary { value, mask },
            MatchField::Range { low, high },
        ];
        let c = shape
            .encode(&EntryKey {
                fields,
                priority: 1,
            })
            .unwrap();
        let record = [&c.values[..], &c.masks, &c.ranges].concat();
        // {2, 3, 6, 7}, {1, 5, 9, 13}, {3, 4}; the last digit of a range is free where the one before is.
        let digits: Vec<u16> = (12..16).map(|n| shape.allowed(&record, n)).collect();
        assert_eq!(
            digits,
            [
                0b1100_1100,
                1 << 1 | 1 << 5 | 1 << 9 | 1 << 13,
                0b11000,
                u16::MAX
            ]
        );
        assert_eq!(shape.digits, [12, 13, 14, 15]);
    }
}
