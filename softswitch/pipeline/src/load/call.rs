// SPDX-License-Identifier: Apache-2.0
//! A call of a primitive, with the objects that it can refer to.

use std::collections::HashMap;

use super::cursor::Cursor;
use super::expr::Scope;
use super::extern_objects::ExternObjects;
use super::headers::Names;
use crate::error::LoadError;
use crate::phv::Place;
use crate::program::architecture::Architecture;
use crate::program::op::Target;

type Result<T> = std::result::Result<T, LoadError>;

/// Indices of the objects that primitives refer to by name.
pub(crate) struct Objects<'a> {
    pub(crate) architecture: &'a Architecture,
    pub(crate) names: &'a Names,
    /// Index and width.
    pub(crate) registers: &'a HashMap<String, (u32, u32)>,
    /// Index and width.
    pub(crate) direct_registers: &'a HashMap<String, (u32, u32)>,
    pub(crate) counters: &'a HashMap<String, u32>,
    pub(crate) meters: &'a HashMap<String, u32>,
    pub(crate) calculations: &'a HashMap<String, u32>,
    /// Digest index by the learn list's id.
    pub(crate) digests: &'a HashMap<u64, u32>,
    pub(crate) externs: &'a ExternObjects,
}

/// A primitive and its arguments.
pub(crate) struct Call<'a> {
    pub(crate) objects: &'a Objects<'a>,
    pub(crate) scope: Scope<'a>,
    pub(crate) json: &'a Cursor<'a>,
    pub(crate) args: Vec<Cursor<'a>>,
    /// Number of primitives of the action.
    pub(crate) count: usize,
}

impl<'a> Call<'a> {
    pub(crate) fn arity<const N: usize>(&self) -> Result<&[Cursor<'a>; N]> {
        self.args.as_slice().try_into().map_err(|_| {
            self.json.get("parameters").error(format!(
                "expected {N} parameters, found {}",
                self.args.len()
            ))
        })
    }

    pub(crate) fn target(&self, c: &Cursor) -> Result<(Target, u32)> {
        let (place, shape) = self.scope.lvalue(c)?;
        let target = match place {
            Ok(f) => match f.place {
                Place::Word(w) => Target::Word(w, crate::phv::mask64(f.width)),
                _ => Target::Field(f),
            },
            Err(d) => Target::Dyn(Box::new(d)),
        };
        let width = match shape.place {
            Place::Varbit { max, .. } => max * 8,
            _ => shape.width,
        };
        Ok((target, width))
    }
}
