// SPDX-License-Identifier: Apache-2.0
//! The inputs of hashes of TNA, as the control plane sees them.

use super::Lower;
use super::tna_externs::Call;
use crate::ast::{BinOp, Expr, ExprKind};
use crate::ir::{HashCall, HashField};

impl<'a> Lower<'a> {
    /// Notes the fields of a hash's input.
    pub(super) fn note_hash_call(&mut self, call: &Call<'a, '_>, width: u32) {
        let mut fields = Vec::new();
        if let Some(data) = self.arg(call.info, call.args, 0)
            && let ExprKind::List { items, .. } = &data.kind
        {
            for item in items {
                if !self.hash_fields(item, &mut fields) {
                    return;
                }
            }
        }
        let noted = HashCall {
            call: call.e.id,
            object: call.object,
            fields,
            width,
            used: width,
        };
        let mut known = self.ir.hash_calls.iter();
        if !known.any(|known| (known.call, known.object) == (noted.call, noted.object)) {
            self.ir.hash_calls.push(noted);
        }
    }

    /// Notes that only the low bits of a call's result are used.
    pub(super) fn note_used_bits(&mut self, e: &'a Expr, bits: u32) {
        for call in self
            .ir
            .hash_calls
            .iter_mut()
            .filter(|call| call.call == e.id)
        {
            call.used = bits;
        }
    }

    /// Appends the fields of a part of the input. Returns false if it is not a number.
    fn hash_fields(&mut self, e: &'a Expr, fields: &mut Vec<HashField>) -> bool {
        if let ExprKind::Binary(BinOp::Concat, left, right) = &e.kind {
            return self.hash_fields(left, fields) && self.hash_fields(right, fields);
        }
        let ty = self.type_of(e.id);
        let Some(scalar) = self.scalar_of(&ty) else {
            return false;
        };
        fields.push(HashField {
            name: self.sources.snippet(e.span),
            width: scalar.width(),
            is_constant: self.number(e).is_some(),
        });
        true
    }
}
