// SPDX-License-Identifier: Apache-2.0
//! Results of functions on the wire.

use thrift::protocol::{TInputProtocol, TMessageIdentifier, TMessageType, TOutputProtocol, TType};

use crate::wire::{Field, Wire, read_record, write_record};

/// An error code of an exception, which is a record whose field 1 is the code.
pub trait Code: Copy {
    /// Returns the code's number.
    fn number(self) -> i32;

    /// Returns the code with this number.
    fn from_number(number: i32) -> Option<Self>;
}

impl Code for std::convert::Infallible {
    fn number(self) -> i32 {
        match self {}
    }

    fn from_number(_: i32) -> Option<Self> {
        None
    }
}

/// A function's result, if it returns one.
pub trait Returned: Default {
    /// Writes the result's field, whose number is 0.
    ///
    /// # Errors
    /// If the connection fails.
    fn write_returned(&self, output: &mut dyn TOutputProtocol) -> thrift::Result<()>;

    /// Reads the field's value, if its type is right.
    ///
    /// # Errors
    /// If the connection fails, or the bytes are not a value of this type.
    fn read_returned(kind: TType, input: &mut dyn TInputProtocol) -> thrift::Result<Option<Self>>;
}

impl Returned for () {
    fn write_returned(&self, _: &mut dyn TOutputProtocol) -> thrift::Result<()> {
        Ok(())
    }

    fn read_returned(_: TType, _: &mut dyn TInputProtocol) -> thrift::Result<Option<Self>> {
        Ok(None)
    }
}

impl<T: Wire> Returned for T {
    fn write_returned(&self, output: &mut dyn TOutputProtocol) -> thrift::Result<()> {
        self.write_field(0, output)
    }

    fn read_returned(kind: TType, input: &mut dyn TInputProtocol) -> thrift::Result<Option<Self>> {
        (kind == T::TYPE).then(|| T::read(input)).transpose()
    }
}

/// Writes the reply to a call.
///
/// # Errors
/// If the connection fails.
pub fn reply<T: Returned, E: Code>(
    name: &str,
    sequence: i32,
    result: &Result<T, E>,
    output: &mut dyn TOutputProtocol,
) -> thrift::Result<()> {
    let message = TMessageIdentifier::new(name, TMessageType::Reply, sequence);
    output.write_message_begin(&message)?;
    write_record(output, |output| match result {
        Ok(value) => value.write_returned(output),
        Err(code) => Exception {
            code: code.number(),
        }
        .write_field(1, output),
    })?;
    output.write_message_end()?;
    output.flush()
}

crate::wire::records! {
    /// An exception.
    Exception {
        /// The code.
        1 code: i32,
    }
}

/// Reads a reply's result.
///
/// # Errors
/// If the connection fails, or the bytes are not a reply of this function.
pub fn read_reply<T: Returned, E: Code>(
    input: &mut dyn TInputProtocol,
) -> thrift::Result<Result<T, E>> {
    let (mut value, mut exception) = (None, None);
    read_record(input, &mut |id, kind, input| {
        Ok(match (id, kind) {
            (0, kind) => {
                value = T::read_returned(kind, input)?;
                value.is_some()
            }
            (1, TType::Struct) => {
                exception = Some(Exception::read(input)?);
                true
            }
            _ => false,
        })
    })?;
    Ok(match exception {
        None => Ok(value.unwrap_or_default()),
        Some(exception) => {
            let unknown = || format!("unknown error code {}", exception.code);
            Err(E::from_number(exception.code).ok_or_else(unknown)?)
        }
    })
}
