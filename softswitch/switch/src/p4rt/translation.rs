// SPDX-License-Identifier: Apache-2.0
//! Translated types, `@p4runtime_translation`, which the controller and the program represent differently
//! (specification, sections "User-defined types" and "PSA Metadata Translation").
//!
//! The mapping is not configurable. Numbers (`sdn_bitwidth`) are the same on both sides. A string (`sdn_string`) that is
//! a decimal numeral means that number; any other string gets the highest free number. Numbers without a string are
//! read back as numerals.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use prost::bytes::Bytes;
use softswitch_pipeline::Value;

use super::error::{P4Error, P4Result};
use super::value;
use crate::proto::p4::config::v1 as cfg;
use cfg::p4_new_type_spec::Representation;
use cfg::p4_new_type_translation::SdnType;

/// The controller's encoding of values of a field, parameter or member.
#[derive(Debug, Clone)]
pub struct Codec {
    /// Width in bits in the data plane.
    pub width: u32,
    form: Form,
}

#[derive(Debug, Clone)]
enum Form {
    Plain,
    /// A number of this many bits.
    Number(u32),
    Name(Arc<Names>),
}

/// P4Info's translated types, by name.
#[derive(Debug, Default)]
pub struct Translations(HashMap<String, Form>);

impl Translations {
    /// Returns the translated types of P4Info.
    ///
    /// # Errors
    /// A type with an incomplete translation.
    pub fn new(types: Option<&cfg::P4TypeInfo>) -> Result<Self, String> {
        let mut forms = HashMap::new();
        for (name, spec) in types.iter().flat_map(|t| &t.new_types) {
            if let Some(Representation::TranslatedType(t)) = &spec.representation {
                let form =
                    match &t.sdn_type {
                        Some(SdnType::SdnBitwidth(width)) => {
                            let width = u32::try_from(*width).ok().filter(|w| *w > 0);
                            Form::Number(width.ok_or_else(|| {
                                format!("type {name}: sdn_bitwidth must be positive")
                            })?)
                        }
                        Some(SdnType::SdnString(_)) => Form::Name(Arc::default()),
                        None => {
                            return Err(format!(
                                "type {name}: the translation must be to bits or to a string"
                            ));
                        }
                    };
                forms.insert(name.clone(), form);
            }
        }
        Ok(Self(forms))
    }

    /// Returns the encoding of a type if it is translated; the width in the data plane is not yet known.
    pub fn of(&self, name: &cfg::P4NamedType) -> Option<Codec> {
        let form = self.0.get(&name.name)?.clone();
        Some(Codec { width: 0, form })
    }

    /// Returns the encoding of values with `width` bits in the data plane. P4Info has `bits` (0 if unset) and perhaps the
    /// name of a type.
    ///
    /// # Errors
    /// If P4Info and the program differ.
    pub fn codec(
        &self,
        name: Option<&cfg::P4NamedType>,
        bits: i32,
        width: u32,
    ) -> Result<Codec, String> {
        let bits = u32::try_from(bits).map_err(|_| format!("the bit width {bits} is negative"))?;
        let form = match name.and_then(|n| self.0.get(&n.name)) {
            Some(form) => form.clone(),
            None => Form::Plain,
        };
        let expected = match form {
            Form::Plain => width,
            Form::Number(sdn) => sdn,
            Form::Name(_) => 0,
        };
        if bits != expected {
            return Err(format!(
                "the width is {bits} bits in P4Info, but {expected} in the program"
            ));
        }
        Ok(Codec { width, form })
    }
}

impl Codec {
    /// Creates the encoding of an untranslated type.
    pub fn plain(width: u32) -> Self {
        let form = Form::Plain;
        Self { width, form }
    }

    /// Width in bits of the controller's number, if it differs from the program's.
    pub fn translated_width(&self) -> Option<u32> {
        match self.form {
            Form::Number(width) => Some(width),
            Form::Plain | Form::Name(_) => None,
        }
    }

    /// Width in bits of the controller's number; of strings, that of the program's number.
    pub fn controller_width(&self) -> u32 {
        self.translated_width().unwrap_or(self.width)
    }

    /// Returns true if the controller uses strings.
    pub fn is_name(&self) -> bool {
        matches!(self.form, Form::Name(_))
    }

    /// Decodes a value of the controller.
    pub fn decode(&self, bytes: &[u8], what: impl Fn() -> String) -> P4Result<Value> {
        match &self.form {
            Form::Plain => value::decode(bytes, self.width, what),
            Form::Number(sdn) => {
                let number = value::decode(bytes, *sdn, &what)?;
                if number.bits() > self.width {
                    return Err(P4Error::out_of_range(format!(
                        "{}: {number} does not fit the {} bits of the data plane",
                        what(),
                        self.width
                    )));
                }
                Ok(number)
            }
            Form::Name(names) => {
                if bytes.is_empty() {
                    return Err(P4Error::out_of_range(format!(
                        "{}: the string is empty",
                        what()
                    )));
                }
                let number = names.0.lock().number(bytes, self.width);
                number.map(Value::from).ok_or_else(|| {
                    P4Error::resource_exhausted(format!(
                        "{}: all values of {} bits are in use for other strings",
                        what(),
                        self.width
                    ))
                })
            }
        }
    }

    /// Encodes a value for the controller.
    pub fn encode(&self, value: &Value) -> Bytes {
        match &self.form {
            Form::Plain | Form::Number(_) => value::encode(value),
            Form::Name(names) => {
                let number = value.to_u64().unwrap_or(u64::MAX);
                let known = names.0.lock().names.get(&number).cloned();
                known.unwrap_or_else(|| number.to_string().into())
            }
        }
    }
}

/// The strings of one type.
#[derive(Debug, Default)]
struct Names(Mutex<NameTable>);

#[derive(Debug, Default)]
struct NameTable {
    numbers: HashMap<Bytes, u64>,
    names: HashMap<u64, Bytes>,
    /// Number of the highest values that have been searched for a free one.
    sought: u64,
}

impl NameTable {
    /// Returns the number of a string, assigning one if needed; `None` if all are in use.
    fn number(&mut self, name: &[u8], width: u32) -> Option<u64> {
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        let highest = u64::MAX >> (64 - width.clamp(1, 64));
        let own = numeral(name).filter(|n| *n <= highest && !self.names.contains_key(n));
        let number = match own {
            Some(number) => number,
            None => loop {
                let number = highest.checked_sub(self.sought)?;
                self.sought += 1;
                if !self.names.contains_key(&number) {
                    break number;
                }
            },
        };
        let name = Bytes::copy_from_slice(name);
        self.numbers.insert(name.clone(), number);
        self.names.insert(number, name);
        Some(number)
    }
}

/// Parses a decimal numeral without leading zeros.
fn numeral(name: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(name).ok()?;
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(width: u32) -> Codec {
        let form = Form::Name(Arc::default());
        Codec { width, form }
    }

    fn number(codec: &Codec, name: &str) -> Option<u64> {
        codec.decode(name.as_bytes(), || "f".into()).ok()?.to_u64()
    }

    #[test]
    fn numerals_keep_their_number_and_names_get_highest_free_one() {
        let codec = named(9);
        assert_eq!(number(&codec, "511"), Some(511));
        assert_eq!(number(&codec, "eth0"), Some(510));
        assert_eq!(number(&codec, "eth0"), Some(510));
        assert_eq!(number(&codec, "007"), Some(509));
        assert_eq!(number(&codec, "510"), Some(508), "its number is in use");
        assert_eq!(number(&codec, "512"), Some(507), "the number is too large");
        for name in ["511", "eth0", "007", "510", "512"] {
            let value = Value::from(number(&codec, name).unwrap());
            assert_eq!(codec.encode(&value), name);
        }
        assert_eq!(codec.encode(&Value::from(3u32)), "3");
    }

    #[test]
    fn new_strings_fail_when_all_numbers_are_in_use() {
        let codec = named(1);
        assert_eq!(number(&codec, "a"), Some(1));
        assert_eq!(number(&codec, "b"), Some(0));
        assert_eq!(number(&codec, "c"), None);
        assert_eq!(number(&codec, ""), None);
        assert_eq!(number(&codec, "a"), Some(1));
    }

    #[test]
    fn numbers_must_fit_both_sides() {
        let form = Form::Number(32);
        let codec = Codec { width: 9, form };
        let decode = |bytes: &[u8]| codec.decode(bytes, || "f".into()).is_ok();
        assert!(decode(b"\x00\x00\x01\xff"));
        assert!(!decode(b"\x02\x00") && !decode(b"\x01\x00\x00\x00\x00") && !decode(b""));
    }
}
