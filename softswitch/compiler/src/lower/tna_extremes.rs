// SPDX-License-Identifier: Apache-2.0
//! The smallest and the largest part of a register's value, which actions of T2NA can find.

use super::tna_externs::Call;
use super::value::Val;
use super::{Lower, fold};
use crate::ast::BinOp;
use crate::ir::{Ex, Scalar, StKind};

impl<'a> Lower<'a> {
    /// Lowers `min8`, `max8`, `min16` and `max16` of a register action; `None` for other methods.
    pub(super) fn extreme(&mut self, call: &Call<'a, '_>) -> Option<Val> {
        let (width, better) = match call.method() {
            "min8" => (8, BinOp::Lt),
            "max8" => (8, BinOp::Gt),
            "min16" => (16, BinOp::Lt),
            "max16" => (16, BinOp::Gt),
            _ => return None,
        };
        self.tofino.has_special_units = true;
        if let Some(postmod) = call.argument("postmod") {
            self.diags.unsupported_hint(
                postmod.span,
                "this target does not change the found part of a value",
                "leave the argument out, and assign the changed value",
            );
        }
        let value = self.input(call.info, call.args, 0);
        let mask = self.input(call.info, call.args, 1);
        let parts = (value.ty().width() / width).min(mask.ty().width());
        let worst = match better {
            BinOp::Lt => super::ones(width),
            _ => 0.into(),
        };
        let best = self.stored(fold::constant(&worst, Scalar::Bit(width)));
        let index = self.stored(Ex::bit(0, 8));
        for i in 0..parts {
            let part = fold::slice(value.clone(), (i + 1) * width - 1, i * width);
            let selected = fold::slice(mask.clone(), i, i);
            let selected = fold::binary(BinOp::Eq, selected, Ex::bit(1, 1));
            let is_better = fold::binary(better, part.clone(), best.clone());
            let body = self.collect(|s| {
                s.emit(StKind::Assign(best.clone(), part));
                s.emit(StKind::Assign(index.clone(), Ex::bit(i, 8)));
            });
            match fold::and(selected, is_better) {
                never if never.as_bool() == Some(false) => {}
                condition => self.emit(StKind::If(condition, body, Vec::new())),
            }
        }
        if let Some(target) = call.argument("index") {
            let target = self.eval(target);
            self.assign(&target, Val::Scalar(index));
        }
        Some(Val::Scalar(best))
    }
}
