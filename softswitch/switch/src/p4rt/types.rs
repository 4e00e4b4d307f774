// SPDX-License-Identifier: Apache-2.0
//! P4 types of registers and digests, and their values as `P4Data`.

use prost::bytes::Bytes;
use softswitch_pipeline::Value;

use crate::proto::p4::config::v1 as cfg;
use crate::proto::p4::v1::{P4Data, P4Header, P4StructLike, p4_data::Data};
use cfg::p4_bitstring_like_type_spec::TypeSpec as BitsSpec;
use cfg::p4_data_type_spec::TypeSpec;

use super::error::{P4Error, P4Result};
use super::translation::{Codec, Translations};
use super::value;

/// Maximum nesting depth of a type, so that a type that contains itself is refused.
const MAX_DEPTH: u32 = 16;

/// BMv2's width of enum and error values.
const ENUM_WIDTH: u32 = 32;

/// A type with its names resolved.
#[derive(Debug, Clone)]
pub enum Shape {
    /// `bit<W>`.
    Bits(u32),
    /// `int<W>`.
    Int(u32),
    /// A translated type.
    Translated(Codec),
    /// `bool`.
    Bool,
    /// An enum without representation: its members.
    Enum(Vec<String>),
    /// `error`: its members.
    Error(Vec<String>),
    /// An enum with a representation of this many bits.
    SerializableEnum(u32),
    /// A struct.
    Struct(Vec<Shape>),
    /// A tuple.
    Tuple(Vec<Shape>),
    /// A header.
    Header(Vec<Shape>),
}

impl Shape {
    /// Resolves P4Info's description of a type.
    ///
    /// # Errors
    /// The missing or unsupported part.
    pub fn resolve(
        spec: Option<&cfg::P4DataTypeSpec>,
        types: Option<&cfg::P4TypeInfo>,
        translations: &Translations,
    ) -> Result<Self, String> {
        let nothing = cfg::P4TypeInfo::default();
        let types = Types {
            info: types.unwrap_or(&nothing),
            translations,
        };
        types.resolve(spec, MAX_DEPTH)
    }

    /// Checks that a value consists of fields of these widths, and stores the widths of translated members.
    pub fn fit(&mut self, widths: &[u32]) -> bool {
        let mut rest = widths.iter();
        self.fit_first(&mut rest) && rest.next().is_none()
    }

    fn fit_first(&mut self, rest: &mut std::slice::Iter<'_, u32>) -> bool {
        match self {
            Self::Translated(codec) => rest.next().map(|w| codec.width = *w).is_some(),
            Self::Bits(w) | Self::Int(w) | Self::SerializableEnum(w) => rest.next() == Some(w),
            Self::Bool => rest.next() == Some(&1),
            Self::Enum(_) | Self::Error(_) => rest.next() == Some(&ENUM_WIDTH),
            Self::Struct(m) | Self::Tuple(m) | Self::Header(m) => {
                m.iter_mut().all(|s| s.fit_first(rest))
            }
        }
    }

    /// Encodes `P4Data` of this type, and consumes as many field values as it needs.
    pub fn encode<'v>(&self, fields: &mut impl Iterator<Item = &'v Value>) -> P4Data {
        let zero = Value::from(0u32);
        let mut next = || fields.next().unwrap_or(&zero);
        let data = match self {
            Self::Bits(_) => Data::Bitstring(value::encode(next())),
            Self::Int(width) => Data::Bitstring(encode_int(next(), *width)),
            Self::Translated(codec) => Data::Bitstring(codec.encode(next())),
            Self::Bool => Data::Bool(next().to_u64() != Some(0)),
            Self::SerializableEnum(_) => Data::EnumValue(value::encode(next())),
            Self::Enum(names) => Data::Enum(member(names, next())),
            Self::Error(names) => Data::Error(member(names, next())),
            Self::Struct(m) => Data::Struct(encode_all(m, fields)),
            Self::Tuple(m) => Data::Tuple(encode_all(m, fields)),
            Self::Header(m) => {
                let strings = m.iter().map(|shape| match shape.encode(fields).data {
                    Some(Data::Bitstring(bytes)) => bytes,
                    _ => Bytes::new(),
                });
                Data::Header(P4Header {
                    is_valid: true,
                    bitstrings: strings.collect(),
                })
            }
        };
        P4Data { data: Some(data) }
    }

    /// Decodes the value of a type with one field.
    ///
    /// # Errors
    /// If the data is of another type, or does not fit.
    pub fn decode(&self, data: &P4Data, what: &str) -> P4Result<Value> {
        let wrong = || P4Error::invalid(format!("{what}: the data is not of type {self:?}"));
        match (self, data.data.as_ref().ok_or_else(wrong)?) {
            (Self::Bits(w), Data::Bitstring(b))
            | (Self::SerializableEnum(w), Data::EnumValue(b)) => {
                value::decode(b, *w, || what.into())
            }
            (Self::Int(w), Data::Bitstring(b)) => decode_int(b, *w, what),
            (Self::Translated(codec), Data::Bitstring(b)) => codec.decode(b, || what.into()),
            (Self::Bool, Data::Bool(b)) => Ok(Value::from(u32::from(*b))),
            (Self::Enum(names), Data::Enum(name)) | (Self::Error(names), Data::Error(name)) => {
                let position = names.iter().position(|n| n == name);
                position.map(|p| Value::from(p as u64)).ok_or_else(wrong)
            }
            _ => Err(wrong()),
        }
    }

    /// Decodes the values of a type's fields, in order.
    ///
    /// # Errors
    /// If the data is of another type, or does not fit.
    pub fn decode_all(&self, data: &P4Data, what: &str) -> P4Result<Vec<Value>> {
        let (Self::Struct(shapes), Some(Data::Struct(given))) = (self, &data.data) else {
            return Ok(vec![self.decode(data, what)?]);
        };
        if shapes.len() != given.members.len() {
            let (expected, found) = (shapes.len(), given.members.len());
            return Err(P4Error::invalid(format!(
                "{what}: the struct has {expected} members, not {found}"
            )));
        }
        let members = shapes.iter().zip(&given.members);
        let decoded = members.map(|(shape, data)| shape.decode_all(data, what));
        Ok(decoded.collect::<P4Result<Vec<_>>>()?.concat())
    }
}

/// The named types of P4Info.
struct Types<'a> {
    info: &'a cfg::P4TypeInfo,
    translations: &'a Translations,
}

impl Types<'_> {
    fn resolve(&self, spec: Option<&cfg::P4DataTypeSpec>, depth: u32) -> Result<Shape, String> {
        let spec = spec
            .and_then(|s| s.type_spec.as_ref())
            .ok_or("missing type")?;
        let depth = depth
            .checked_sub(1)
            .ok_or("the type is nested too deeply")?;
        let named = |name: &str| format!("type '{name}' is not in P4Info");
        match spec {
            TypeSpec::Bitstring(bits) => resolve_bits(bits),
            TypeSpec::Bool(_) => Ok(Shape::Bool),
            TypeSpec::Tuple(tuple) => {
                let members = tuple.members.iter().map(|m| self.resolve(Some(m), depth));
                Ok(Shape::Tuple(members.collect::<Result<_, _>>()?))
            }
            TypeSpec::Struct(n) => {
                let spec = self.info.structs.get(&n.name);
                let members = spec.ok_or_else(|| named(&n.name))?.members.iter();
                let members = members.map(|m| self.resolve(m.type_spec.as_ref(), depth));
                Ok(Shape::Struct(members.collect::<Result<_, _>>()?))
            }
            TypeSpec::Header(n) => {
                let spec = self.info.headers.get(&n.name);
                let members = spec.ok_or_else(|| named(&n.name))?.members.iter();
                let members = members.map(|m| match &m.type_spec {
                    Some(bits) => resolve_bits(bits),
                    None => Err(format!(
                        "missing type of field {} of header {}",
                        m.name, n.name
                    )),
                });
                Ok(Shape::Header(members.collect::<Result<_, _>>()?))
            }
            TypeSpec::Enum(n) => {
                let spec = self.info.enums.get(&n.name).ok_or_else(|| named(&n.name))?;
                let names = spec.members.iter().map(|m| m.name.clone());
                Ok(Shape::Enum(names.collect()))
            }
            TypeSpec::Error(_) => {
                let names = self.info.error.as_ref().map(|e| e.members.clone());
                Ok(Shape::Error(names.unwrap_or_default()))
            }
            TypeSpec::SerializableEnum(n) => {
                let spec = self.info.serializable_enums.get(&n.name);
                let spec = spec.ok_or_else(|| named(&n.name))?;
                let width = spec.underlying_type.as_ref().map_or(0, |t| t.bitwidth);
                Ok(Shape::SerializableEnum(positive(width)?))
            }
            TypeSpec::NewType(n) => {
                use cfg::p4_new_type_spec::Representation::OriginalType;
                if let Some(codec) = self.translations.of(n) {
                    return Ok(Shape::Translated(codec));
                }
                match self.info.new_types.get(&n.name).map(|t| &t.representation) {
                    Some(Some(OriginalType(t))) => self.resolve(Some(t), depth),
                    _ => Err(named(&n.name)),
                }
            }
            TypeSpec::HeaderUnion(_) | TypeSpec::HeaderStack(_) | TypeSpec::HeaderUnionStack(_) => {
                Err("header unions and stacks are not supported here".into())
            }
        }
    }
}

fn resolve_bits(bits: &cfg::P4BitstringLikeTypeSpec) -> Result<Shape, String> {
    match &bits.type_spec {
        Some(BitsSpec::Bit(t)) => Ok(Shape::Bits(positive(t.bitwidth)?)),
        Some(BitsSpec::Int(t)) => Ok(Shape::Int(positive(t.bitwidth)?)),
        Some(BitsSpec::Varbit(_)) => Err("varbit is not supported here".into()),
        None => Err("missing type".into()),
    }
}

fn positive(width: i32) -> Result<u32, String> {
    let width = u32::try_from(width).ok().filter(|w| *w > 0);
    width.ok_or_else(|| "the bit width must be positive".into())
}

fn member(names: &[String], value: &Value) -> String {
    let index = value.to_u64().and_then(|n| usize::try_from(n).ok());
    index
        .and_then(|i| names.get(i))
        .cloned()
        .unwrap_or_default()
}

fn encode_all<'v>(members: &[Shape], fields: &mut impl Iterator<Item = &'v Value>) -> P4StructLike {
    // Behind a pointer, because the iterator's type would otherwise nest with the shape's depth.
    let fields: &mut dyn Iterator<Item = &'v Value> = fields;
    let mut fields = fields;
    P4StructLike {
        members: members.iter().map(|m| m.encode(&mut fields)).collect(),
    }
}

/// Encodes the low `width` bits as the shortest two's complement string.
fn encode_int(value: &Value, width: u32) -> Bytes {
    let mut bytes = value
        .to_padded(width.div_ceil(8) as usize)
        .unwrap_or_else(|| value.as_bytes().to_vec());
    let top_bits = (width - 1) % 8; // position of the sign bit in the first byte
    let negative = bytes[0] >> top_bits & 1 == 1;
    if negative {
        bytes[0] |= 0xffu8 << top_bits;
    }
    let fill = if negative { 0xff } else { 0 };
    let redundant = bytes
        .windows(2)
        .take_while(|pair| pair[0] == fill && (pair[1] & 0x80 != 0) == negative)
        .count();
    Bytes::copy_from_slice(&bytes[redundant..])
}

/// Decodes a two's complement string, modulo `2^width`.
fn decode_int(bytes: &[u8], width: u32, what: &str) -> P4Result<Value> {
    let bad = |reason: &str| P4Error::out_of_range(format!("{what}: {reason}"));
    let first = *bytes.first().ok_or_else(|| bad("the value is empty"))?;
    let negative = first & 0x80 != 0;
    let fill = if negative { 0xff } else { 0 };
    let redundant = bytes
        .windows(2)
        .take_while(|pair| pair[0] == fill && (pair[1] & 0x80 != 0) == negative)
        .count();
    let shortest = &bytes[redundant..];
    let sign_bits = match negative {
        true => shortest[0].leading_ones(),
        false => shortest[0].leading_zeros(),
    };
    if shortest.len() as u32 * 8 - (sign_bits - 1) > width {
        return Err(bad(&format!("the value does not fit int<{width}>")));
    }
    let len = width.div_ceil(8) as usize;
    let mut extended = vec![fill; len.saturating_sub(shortest.len())];
    extended.extend_from_slice(&shortest[shortest.len().saturating_sub(len)..]);
    extended[0] &= 0xffu8 >> (len as u32 * 8 - width);
    Ok(Value::from_be_bytes(&extended))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_values_match_specification_examples() {
        // The specification's tables of valid and invalid encodings.
        for (width, bytes, canonical) in [
            (8, &b"\x63"[..], &b"\x63"[..]),
            (8, b"\x9d", b"\x9d"),
            (8, b"\xff\x9d", b"\x9d"),
            (12, b"\xfd\x1d", b"\xfd\x1d"),
            (16, b"\x00\x00", b"\x00"),
            (16, b"\x00", b"\x00"),
            (12, b"\xff\xff\xff", b"\xff"),
        ] {
            let value = decode_int(bytes, width, "r").unwrap();
            assert_eq!(
                encode_int(&value, width),
                canonical,
                "int<{width}> {bytes:?}"
            );
        }
        for (width, bytes) in [(8, &b"\x00\x9d"[..]), (12, b"\x8d\x1d"), (16, b"")] {
            assert!(
                decode_int(bytes, width, "r").is_err(),
                "int<{width}> {bytes:?}"
            );
        }
    }

    #[test]
    fn rejects_type_that_contains_itself() {
        let spec = cfg::P4DataTypeSpec {
            type_spec: Some(TypeSpec::Struct(cfg::P4NamedType { name: "s".into() })),
        };
        let member = cfg::p4_struct_type_spec::Member {
            name: "again".into(),
            type_spec: Some(spec.clone()),
        };
        let mut types = cfg::P4TypeInfo::default();
        let s = cfg::P4StructTypeSpec {
            members: vec![member],
            ..Default::default()
        };
        types.structs.insert("s".into(), s);
        let translations = Translations::default();
        assert!(Shape::resolve(Some(&spec), Some(&types), &translations).is_err());
    }
}
