// SPDX-License-Identifier: Apache-2.0
//! The checksum of TNA's parsers and deparsers.

use super::tna_externs::Call;
use super::value::Val;
use super::{Lower, Place};
use crate::ir::{Arg, Ex};

impl<'a> Lower<'a> {
    /// Lowers the methods of `Checksum`; `None` if there is no such method.
    pub(super) fn tofino_checksum(&mut self, call: &Call<'a, '_>, this: Arg) -> Option<Val> {
        let method = call.method();
        let allowed = match method {
            "update" => [Place::Deparser],
            _ => [Place::Parser],
        };
        self.allowed_in(call, &allowed);
        let op = format!("_Checksum_{method}");
        match method {
            "add" | "subtract" => {
                let data = self.summands(call);
                self.primitive(op, vec![this, data]);
                Some(Val::Unit)
            }
            "get" | "verify" => {
                let result = self.result(call.e);
                self.primitive(op, vec![this, Arg::Ex(result.clone())]);
                Some(Val::Scalar(result))
            }
            "update" => Some(self.checksum_update(call, this)),
            "subtract_all_and_deposit" => {
                self.checksum_deposit(call, this);
                Some(Val::Unit)
            }
            _ => None,
        }
    }

    /// Returns the fields of a checksum. The target takes fields of invalid headers as zeros, as Tofino does.
    fn summands(&mut self, call: &Call<'a, '_>) -> Arg {
        let data = self.arg(call.info, call.args, 0);
        let data = data.map_or(Val::Unit, |x| self.eval(x));
        let leaves = self.leaves(&data);
        Arg::FieldList(leaves.into_iter().map(|e| self.in_field(e)).collect())
    }

    fn checksum_update(&mut self, call: &Call<'a, '_>, this: Arg) -> Val {
        let data = self.summands(call);
        let zeros_as_ones = match call.argument("zeros_as_ones") {
            Some(e) => self.scalar(e).as_bool().unwrap_or_else(|| {
                let message = "zeros_as_ones must be known at compile time";
                self.error(e.span, message);
                false
            }),
            None => false,
        };
        let result = self.result(call.e);
        let flag = Arg::Ex(Ex::bit(u32::from(zeros_as_ones), 8));
        let parameters = vec![this, Arg::Ex(result.clone()), data, flag];
        self.primitive("_Checksum_update", parameters);
        Val::Scalar(result)
    }

    /// The target writes the residual when the parser ends, so it must go to a field.
    fn checksum_deposit(&mut self, call: &Call<'a, '_>, this: Arg) {
        let Some(target) = self.arg(call.info, call.args, 0) else {
            return;
        };
        match self.eval(target) {
            Val::Scalar(field @ Ex::Field { .. }) => {
                let op = "_Checksum_subtract_all_and_deposit";
                self.primitive(op, vec![this, Arg::Ex(field)]);
            }
            _ => self.diags.unsupported_hint(
                target.span,
                "the residual must be stored in a field on this target",
                "use a field of a header or of metadata, without a slice",
            ),
        }
    }
}
