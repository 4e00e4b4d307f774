// SPDX-License-Identifier: Apache-2.0
//! Descriptions of functions.

/// A function of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    /// The name after the service and a colon, as in messages.
    pub name: &'static str,
    /// The arguments, in order.
    pub arguments: &'static [Argument],
}

/// An argument of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Argument {
    /// The number of the field.
    pub id: i16,
    /// The name in the interface.
    pub name: &'static str,
    /// The type in Rust's notation.
    pub kind: &'static str,
}
