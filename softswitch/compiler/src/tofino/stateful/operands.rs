// SPDX-License-Identifier: Apache-2.0
//! The operands of a register's ALU.

use std::collections::HashMap;

use num_traits::Zero;

use super::super::fields::{Field, field};
use crate::ast::BinOp;
use crate::ir::{Ex, HeaderRef, SCALARS};

/// The kind of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A word of the register, by its position.
    Word(usize),
    /// Some bits of a word.
    WordSlice,
    /// A field of the packet or its metadata, or bits of several.
    Packet,
    /// A number of the program.
    Constant,
    /// The value of a `RegisterParam`.
    Parameter,
    /// The result of a `MathUnit`.
    Math,
    /// An operation on operands.
    Operation,
}

/// The words of a register, and the variables that hold results of units.
#[derive(Default)]
pub(super) struct Operands {
    /// Variables that hold the words.
    pub words: Vec<Ex>,
    /// Names of the words in messages.
    pub names: Vec<String>,
    /// Variables with a `RegisterParam`, or with the result of a `MathUnit` and its input.
    pub units: HashMap<Field, Option<Ex>>,
}

impl Operands {
    /// Returns the position of the word that an expression is.
    pub fn word(&self, e: &Ex) -> Option<usize> {
        self.words.iter().position(|word| word == e)
    }

    /// Returns true if an expression reads the register, or a unit's result.
    pub fn uses_register(&self, e: &Ex) -> bool {
        let mut found = false;
        e.visit(&mut |e| {
            let unit = field(e).is_some_and(|f| self.units.contains_key(&f));
            found |= unit || self.word(e).is_some();
        });
        found
    }

    pub fn kind(&self, e: &Ex) -> Kind {
        match e {
            Ex::Const(..) => Kind::Constant,
            Ex::Cast(inner, ty) => self.part(inner, ty.width()),
            Ex::Slice { base, .. } => self.part(base, 0),
            Ex::Binary(BinOp::Concat, high, low, _) if is_zero(high) => self.kind(low),
            Ex::Binary(BinOp::Concat, ..) if !self.uses_register(e) => Kind::Packet,
            Ex::Unary(..) | Ex::Binary(..) | Ex::Cond(..) => Kind::Operation,
            e => self.variable(e),
        }
    }

    /// Returns the kind of an expression of which only this number of bits remains.
    fn part(&self, e: &Ex, width: u32) -> Kind {
        match self.kind(e) {
            Kind::Word(_) if width < e.ty().width() => Kind::WordSlice,
            Kind::Operation if !self.uses_register(e) => Kind::Packet,
            kind => kind,
        }
    }

    fn variable(&self, e: &Ex) -> Kind {
        if let Some(word) = self.word(e) {
            return Kind::Word(word);
        }
        match field(e).and_then(|f| self.units.get(&f)) {
            Some(None) => Kind::Parameter,
            Some(Some(_)) => Kind::Math,
            None => Kind::Packet,
        }
    }

    /// Adds the packet operands of an expression to those that are known.
    pub fn packets(&self, e: &Ex, known: &mut Vec<Ex>) {
        match e {
            Ex::Cast(inner, _) | Ex::Unary(_, inner, _) => self.packets(inner, known),
            Ex::Slice { base, .. } => self.packets(base, known),
            Ex::Binary(BinOp::Concat, a, b, _) if !a.is_const() && !b.is_const() => {
                if !self.uses_register(e) && !known.contains(e) {
                    known.push(e.clone());
                }
            }
            Ex::Binary(_, a, b, _) => {
                self.packets(a, known);
                self.packets(b, known);
            }
            Ex::Cond(_, a, b, _) => {
                self.packets(a, known);
                self.packets(b, known);
            }
            e => match self.kind(e) {
                Kind::Packet if !known.contains(e) => known.push(e.clone()),
                Kind::Math => {
                    let input = field(e).and_then(|f| self.units.get(&f)?.as_ref());
                    if let Some(input) = input {
                        self.packets(input, known);
                    }
                }
                _ => {}
            },
        }
    }
}

/// Returns the operands of a minimum or a maximum, which one unit computes.
pub(super) fn extreme(e: &Ex) -> Option<(&Ex, &Ex)> {
    let Ex::Cond(cond, a, b, _) = e else {
        return None;
    };
    match &**cond {
        Ex::Binary(BinOp::Le | BinOp::Ge, x, y, _) if x == a && y == b => Some((a, b)),
        _ => None,
    }
}

pub(super) fn is_zero(e: &Ex) -> bool {
    matches!(e, Ex::Const(value, _) if value.is_zero())
}

/// Returns the name of a packet operand in messages.
pub(super) fn name(e: &Ex) -> String {
    match e {
        Ex::Field { header, field, .. } if header == SCALARS => field.clone(),
        Ex::Field { header, field, .. } => format!("{header}.{field}"),
        Ex::FieldOf { field, .. } => field.clone(),
        Ex::Valid(HeaderRef::Static(header)) => format!("{header}.isValid()"),
        Ex::Binary(BinOp::Concat, a, b, _) => format!("{} ++ {}", name(a), name(b)),
        Ex::Slice { base, hi, lo } => format!("{}[{hi}:{lo}]", name(base)),
        Ex::Cast(inner, _) => name(inner),
        Ex::Const(value, _) => value.to_string(),
        _ => "an expression".to_owned(),
    }
}
