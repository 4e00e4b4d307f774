// SPDX-License-Identifier: Apache-2.0
//! Values on the wire: how each type of the interface is read and written.

use thrift::protocol::{
    TFieldIdentifier, TInputProtocol, TListIdentifier, TOutputProtocol, TStructIdentifier, TType,
};

/// A type of the interface.
///
/// A field that a message lacks keeps the default value, as in Thrift's own C++ servers.
pub trait Wire: Default {
    /// The type's number on the wire.
    const TYPE: TType;

    /// Reads a value.
    ///
    /// # Errors
    /// If the connection fails, or the bytes are not a value of this type.
    fn read(input: &mut dyn TInputProtocol) -> thrift::Result<Self>;

    /// Writes the value.
    ///
    /// # Errors
    /// If the connection fails.
    fn write(&self, output: &mut dyn TOutputProtocol) -> thrift::Result<()>;
}

/// A field of a record: a value, or an optional one.
pub trait Field: Default {
    /// The type's number on the wire.
    const TYPE: TType;

    /// Reads the field's value.
    ///
    /// # Errors
    /// If the connection fails, or the bytes are not a value of this type.
    fn read_field(input: &mut dyn TInputProtocol) -> thrift::Result<Self>;

    /// Writes the field with its number, unless it is optional and unset.
    ///
    /// # Errors
    /// If the connection fails.
    fn write_field(&self, id: i16, output: &mut dyn TOutputProtocol) -> thrift::Result<()>;
}

impl<T: Wire> Field for T {
    const TYPE: TType = T::TYPE;

    fn read_field(input: &mut dyn TInputProtocol) -> thrift::Result<Self> {
        T::read(input)
    }

    fn write_field(&self, id: i16, output: &mut dyn TOutputProtocol) -> thrift::Result<()> {
        output.write_field_begin(&TFieldIdentifier::new("", T::TYPE, id))?;
        self.write(output)?;
        output.write_field_end()
    }
}

impl<T: Wire> Field for Option<T> {
    const TYPE: TType = T::TYPE;

    fn read_field(input: &mut dyn TInputProtocol) -> thrift::Result<Self> {
        T::read(input).map(Some)
    }

    fn write_field(&self, id: i16, output: &mut dyn TOutputProtocol) -> thrift::Result<()> {
        self.as_ref()
            .map_or(Ok(()), |value| value.write_field(id, output))
    }
}

macro_rules! scalars {
    ($($type:ty, $number:ident, $read:ident, $write:ident;)*) => {$(
        impl Wire for $type {
            const TYPE: TType = TType::$number;

            fn read(input: &mut dyn TInputProtocol) -> thrift::Result<Self> {
                input.$read()
            }

            fn write(&self, output: &mut dyn TOutputProtocol) -> thrift::Result<()> {
                output.$write(*self)
            }
        }
    )*};
}

scalars! {
    bool, Bool, read_bool, write_bool;
    i16, I16, read_i16, write_i16;
    i32, I32, read_i32, write_i32;
    i64, I64, read_i64, write_i64;
    f64, Double, read_double, write_double;
}

impl Wire for String {
    const TYPE: TType = TType::String;

    fn read(input: &mut dyn TInputProtocol) -> thrift::Result<Self> {
        input.read_string()
    }

    fn write(&self, output: &mut dyn TOutputProtocol) -> thrift::Result<()> {
        output.write_string(self)
    }
}

/// Bytes, which are Thrift's `binary`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Binary(pub Vec<u8>);

impl Wire for Binary {
    const TYPE: TType = TType::String;

    fn read(input: &mut dyn TInputProtocol) -> thrift::Result<Self> {
        input.read_bytes().map(Self)
    }

    fn write(&self, output: &mut dyn TOutputProtocol) -> thrift::Result<()> {
        output.write_bytes(&self.0)
    }
}

impl<T: Wire> Wire for Vec<T> {
    const TYPE: TType = TType::List;

    fn read(input: &mut dyn TInputProtocol) -> thrift::Result<Self> {
        let list = input.read_list_begin()?;
        if list.element_type != T::TYPE && list.size != 0 {
            return Err(unexpected(T::TYPE, list.element_type));
        }
        // Memory grows with the elements that arrive, not with the announced number.
        let mut values = Vec::new();
        for _ in 0..list.size {
            values.push(T::read(input)?);
        }
        input.read_list_end()?;
        Ok(values)
    }

    fn write(&self, output: &mut dyn TOutputProtocol) -> thrift::Result<()> {
        let size = i32::try_from(self.len()).unwrap_or(i32::MAX);
        output.write_list_begin(&TListIdentifier::new(T::TYPE, size))?;
        self.iter().try_for_each(|value| value.write(output))?;
        output.write_list_end()
    }
}

/// A map from strings to strings, in order.
impl Wire for std::collections::BTreeMap<String, String> {
    const TYPE: TType = TType::Map;

    fn read(input: &mut dyn TInputProtocol) -> thrift::Result<Self> {
        let map = input.read_map_begin()?;
        let mut values = Self::new();
        for _ in 0..map.size {
            values.insert(input.read_string()?, input.read_string()?);
        }
        input.read_map_end()?;
        Ok(values)
    }

    fn write(&self, output: &mut dyn TOutputProtocol) -> thrift::Result<()> {
        let size = i32::try_from(self.len()).unwrap_or(i32::MAX);
        let types = thrift::protocol::TMapIdentifier::new(TType::String, TType::String, size);
        output.write_map_begin(&types)?;
        for (key, value) in self {
            output.write_string(key)?;
            output.write_string(value)?;
        }
        output.write_map_end()
    }
}

/// Returns the error for a value of another type.
fn unexpected(expected: TType, found: TType) -> thrift::Error {
    let message = format!("expected a value of type {expected}, found {found}");
    thrift::Error::Protocol(thrift::ProtocolError::new(
        thrift::ProtocolErrorKind::InvalidData,
        message,
    ))
}

/// Reads a record. `field` reads the field with a number and a type, and returns false for an unknown one, which is then
/// skipped, as Thrift demands.
///
/// # Errors
/// If the connection fails, or the bytes are not a record.
pub fn read_record(
    input: &mut dyn TInputProtocol,
    field: &mut dyn FnMut(i16, TType, &mut dyn TInputProtocol) -> thrift::Result<bool>,
) -> thrift::Result<()> {
    input.read_struct_begin()?;
    loop {
        let found = input.read_field_begin()?;
        if found.field_type == TType::Stop {
            break;
        }
        let known = field(found.id.unwrap_or(0), found.field_type, input)?;
        if !known {
            input.skip(found.field_type)?;
        }
        input.read_field_end()?;
    }
    input.read_struct_end()
}

/// Writes a record with the fields that `fields` writes.
///
/// # Errors
/// If the connection fails.
pub fn write_record(
    output: &mut dyn TOutputProtocol,
    fields: impl FnOnce(&mut dyn TOutputProtocol) -> thrift::Result<()>,
) -> thrift::Result<()> {
    output.write_struct_begin(&TStructIdentifier::new(""))?;
    fields(output)?;
    output.write_field_stop()?;
    output.write_struct_end()
}

/// Declares records: each field with its number.
macro_rules! records {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $id:literal $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }

        impl $crate::wire::Wire for $name {
            const TYPE: thrift::protocol::TType = thrift::protocol::TType::Struct;

            fn read(input: &mut dyn thrift::protocol::TInputProtocol) -> thrift::Result<Self> {
                let mut record = Self::default();
                $crate::wire::read_record(input, &mut |id, kind, input| Ok(match id {
                    $($id if kind == <$type as $crate::wire::Field>::TYPE => {
                        record.$field = $crate::wire::Field::read_field(input)?;
                        true
                    })*
                    _ => false,
                }))?;
                Ok(record)
            }

            fn write(&self, output: &mut dyn thrift::protocol::TOutputProtocol) -> thrift::Result<()> {
                $crate::wire::write_record(output, |output| {
                    $($crate::wire::Field::write_field(&self.$field, $id, output)?;)*
                    Ok(())
                })
            }
        }
    )*};
}

pub(crate) use records;
