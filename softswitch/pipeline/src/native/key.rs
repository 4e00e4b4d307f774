// SPDX-License-Identifier: Apache-2.0
//! Generates code for the keys of tables and `select`.

use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, Value};

use super::generator::{Gen, Result, Unsupported};
use crate::phv::{Field, Place};
use crate::program::control::CompiledTable;
use crate::program::key_part::KeyPart;

impl Gen<'_, '_> {
    /// Compiles a table's lookup key into words; `None` if the interpreter must build it.
    pub(super) fn key(&mut self, table: &CompiledTable) -> Result<Option<Vec<Value>>> {
        if !table.computed_key.is_empty() || !table.key.iter().all(|p| self.loads(p)) {
            return Ok(None);
        }
        let mut key = vec![None; table.shape.words];
        for part in &table.key {
            self.key_part(part, &mut key)?;
        }
        let zero = self.int(0);
        Ok(Some(key.into_iter().map(|v| v.unwrap_or(zero)).collect()))
    }

    /// Stores a key in the place where callouts expect it.
    pub(super) fn store_key(&mut self, key: &[Value]) -> Result<Value> {
        let bytes = u32::try_from(key.len() * 8).map_err(|_| Unsupported)?;
        let slot = self.buffer(bytes.max(64));
        for (i, &v) in key.iter().enumerate() {
            self.b.ins().stack_store(v, slot, i as i32 * 8);
        }
        Ok(self.b.ins().stack_addr(I64, slot, 0))
    }

    /// Returns true if native code can load this part of a key.
    pub(super) fn loads(&self, part: &KeyPart) -> bool {
        self.reads(Field {
            signed: false,
            ..part.field
        })
    }

    /// Adds a part that native code [can load](Self::loads) to the key.
    pub(super) fn key_part(&mut self, part: &KeyPart, key: &mut [Option<Value>]) -> Result<()> {
        // Least significant first.
        let limbs = match part.field.place {
            Place::Word(w) => vec![self.get(w)?],
            _ => self
                .field128(Field {
                    signed: false,
                    ..part.field
                })?
                .to_vec(),
        };
        for (i, limb) in limbs.iter().enumerate() {
            let mask = part.mask.as_ref();
            let mask = mask.map_or(u64::MAX, |m| m.get(i).copied().unwrap_or(0));
            let v = self.mask(*limb, mask);
            let v = self.shift_left(v, part.shift);
            put(self, &mut key[part.word + limbs.len() - 1 - i], v);
        }
        Ok(())
    }
}

/// Adds bits to a word of a key.
pub(super) fn put(g: &mut Gen, word: &mut Option<Value>, v: Value) {
    *word = Some(match *word {
        Some(old) => g.b.ins().bor(old, v),
        None => v,
    });
}
