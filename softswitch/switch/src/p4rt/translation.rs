//! Types that the controller sees otherwise than the program does: `@p4runtime_translation`
//! (specification, sections "User-defined types" and "PSA Metadata Translation").
//!
//! No mapping is configured from outside. Numbers (`sdn_bitwidth`) are the same on both sides. A
//! string (`sdn_string`) that is a decimal numeral means that number, any other one gets the
//! highest number that is free; numbers that have no string are read as numerals.

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

/// How the controller writes values of a field, parameter or member.
#[derive(Debug, Clone)]
pub struct Codec {
    /// Bits in the data plane.
    pub width: u32,
    form: Form,
}

#[derive(Debug, Clone)]
enum Form {
    Plain,
    /// Bits of the controller's number.
    Number(u32),
    Name(Arc<Names>),
}

/// P4Info's translated types, by name.
#[derive(Debug, Default)]
pub struct Translations(HashMap<String, Form>);

impl Translations {
    /// Those that P4Info declares.
    ///
    /// # Errors
    /// Names a type whose translation is not complete.
    pub fn new(types: Option<&cfg::P4TypeInfo>) -> Result<Self, String> {
        let mut forms = HashMap::new();
        for (name, spec) in types.iter().flat_map(|t| &t.new_types) {
            if let Some(Representation::TranslatedType(t)) = &spec.representation {
                let form = match &t.sdn_type {
                    Some(SdnType::SdnBitwidth(width)) => {
                        let width = u32::try_from(*width).ok().filter(|w| *w > 0);
                        Form::Number(width.ok_or_else(|| {
                            format!("type {name}: its sdn_bitwidth is not positive")
                        })?)
                    }
                    Some(SdnType::SdnString(_)) => Form::Name(Arc::default()),
                    None => {
                        return Err(format!(
                            "type {name}: its translation is neither to bits nor to a string"
                        ));
                    }
                };
                forms.insert(name.clone(), form);
            }
        }
        Ok(Self(forms))
    }

    /// How values of the type are written if it is translated. Their width in the data plane is not
    /// known here.
    pub fn of(&self, name: &cfg::P4NamedType) -> Option<Codec> {
        let form = self.0.get(&name.name)?.clone();
        Some(Codec { width: 0, form })
    }

    /// How values of `width` bits in the data plane are written, of which P4Info gives `bits` (0 if
    /// it gives none) and perhaps the name of a type.
    ///
    /// # Errors
    /// If P4Info and the program differ.
    pub fn codec(
        &self,
        name: Option<&cfg::P4NamedType>,
        bits: i32,
        width: u32,
    ) -> Result<Codec, String> {
        let bits = u32::try_from(bits).map_err(|_| format!("its bit width {bits} is negative"))?;
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
            return Err(format!("P4Info says {bits} bits, the program {expected}"));
        }
        Ok(Codec { width, form })
    }
}

impl Codec {
    /// Of a type that is the same on both sides.
    pub fn plain(width: u32) -> Self {
        let form = Form::Plain;
        Self { width, form }
    }

    /// Bits of the controller's number, if that is not the program's.
    pub fn translated_width(&self) -> Option<u32> {
        match self.form {
            Form::Number(width) => Some(width),
            Form::Plain | Form::Name(_) => None,
        }
    }

    /// The controller sees strings.
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
                        "{}: {number} has no counterpart in the {} bits of the data plane",
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
                        "{}: all values of {} bits stand for other strings",
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
    /// How far from the top free numbers have been sought.
    sought: u64,
}

impl NameTable {
    /// The number of a string, which gets one if it has none; `None` if all are taken.
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

/// The number that a decimal numeral without leading zeros means.
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
    fn numerals_are_numbers_and_names_get_the_highest_free_ones() {
        let codec = named(9);
        assert_eq!(number(&codec, "511"), Some(511));
        assert_eq!(number(&codec, "eth0"), Some(510));
        assert_eq!(number(&codec, "eth0"), Some(510));
        assert_eq!(number(&codec, "007"), Some(509));
        assert_eq!(number(&codec, "510"), Some(508), "its number is taken");
        assert_eq!(number(&codec, "512"), Some(507), "too high a number");
        for name in ["511", "eth0", "007", "510", "512"] {
            let value = Value::from(number(&codec, name).unwrap());
            assert_eq!(codec.encode(&value), name);
        }
        assert_eq!(codec.encode(&Value::from(3u32)), "3");
    }

    #[test]
    fn strings_run_out() {
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
