// SPDX-License-Identifier: Apache-2.0
//! The deparsers of TNA send mirrored and resubmitted packets, and digests, besides the packet.
//!
//! A field of the deparser's metadata selects each of them. On Tofino such a field is invalid until the program sets it, so
//! 0 is a selection like any other. Here, a variable beside the field tells whether the program has set it.

use super::tna_externs::Call;
use super::value::Val;
use super::{Lower, Place, fold};
use crate::ast::{BinOp, Expr};
use crate::diag::Span;
use crate::ir::{Arg, Ex, Scalar, StKind};

/// Fields of the deparser's metadata that select what it sends.
const SELECTORS: [&str; 3] = ["mirror_type", "resubmit_type", "digest_type"];

/// Bits of the longest header that the packet generator puts in front of a packet.
const MAX_GENERATOR_HEADER_BITS: u32 = 128;

impl<'a> Lower<'a> {
    pub(super) fn emit_mirror(&mut self, call: &Call<'a, '_>) -> Val {
        self.guarded(call, "mirror_type", |s| {
            let session = s.input(call.info, call.args, 0);
            let fields = s.prefix_fields(call.argument("hdr"));
            s.primitive("_Mirror_emit", vec![Arg::Ex(session), fields]);
        })
    }

    pub(super) fn emit_resubmit(&mut self, call: &Call<'a, '_>) -> Val {
        self.only_in_egress(false, call.e.span, "Resubmit.emit");
        self.guarded(call, "resubmit_type", |s| {
            let fields = s.prefix_fields(call.argument("hdr"));
            s.check_resubmitted(&fields, call.e.span);
            s.primitive("_Resubmit_emit", vec![fields]);
        })
    }

    pub(super) fn emit_generator_header(&mut self, call: &Call<'a, '_>) -> Val {
        self.allowed_in(call, &[Place::Deparser]);
        self.only_in_egress(false, call.e.span, "Pktgen.emit");
        let fields = self.prefix_fields(call.argument("hdr"));
        let bits = bits_of(&fields);
        if bits > MAX_GENERATOR_HEADER_BITS {
            self.diags.error_hint(
                call.e.span,
                format!(
                    "the header of a generated packet has at most {} bytes, not {}",
                    MAX_GENERATOR_HEADER_BITS / 8,
                    bits.div_ceil(8)
                ),
                "carry less, or put the rest into the buffer of the packet generator",
            );
        }
        self.primitive("_Pktgen_emit", vec![fields]);
        Val::Unit
    }

    /// Resubmitted data replaces the port metadata; on Tofino 2, 8 of their 24 bytes remain padding.
    fn check_resubmitted(&mut self, fields: &Arg, span: Span) {
        let bits = bits_of(fields);
        let most = match self.port_metadata_bits() {
            0..=64 => 64,
            _ => 128,
        };
        if bits > most {
            self.diags.error_hint(
                span,
                format!(
                    "a resubmitted packet carries at most {} bytes of data, not {}",
                    most / 8,
                    bits.div_ceil(8)
                ),
                "carry less, or recirculate the packet with a header for the data",
            );
        }
    }

    pub(super) fn pack_digest(&mut self, call: &Call<'a, '_>) -> Val {
        self.only_in_egress(false, call.e.span, "Digest.pack");
        self.guarded(call, "digest_type", |s| {
            s.pack(call.e, call.info, call.args, call.object);
        })
    }

    /// Returns the variable that tells whether a selector is set; `None` for other fields.
    pub(super) fn selection(&mut self, field: &Ex) -> Option<Ex> {
        let Ex::Field { header, field, .. } = field else {
            return None;
        };
        let is_selector = self.ir.architecture.is_tofino()
            && header.ends_with("_intr_md_for_dprsr")
            && SELECTORS.contains(&&**field);
        if !is_selector {
            return None;
        }
        let key = (header.clone(), field.clone());
        if let Some(known) = self.tofino.selections.get(&key) {
            return Some(known.clone());
        }
        let name = format!("{header}.{field}.is_set");
        let variable = self.scalar_variable(&name, Scalar::Bool);
        self.tofino.selections.insert(key, variable.clone());
        Some(variable)
    }

    /// Notes that the program sets a field, if it is a selector.
    pub(super) fn note_selection(&mut self, target: &Ex) {
        let field = match target {
            Ex::Slice { base, .. } => base,
            field => field,
        };
        if let Some(variable) = self.selection(field) {
            self.emit(StKind::Assign(variable, Ex::bool(true)));
        }
    }

    /// Lowers with `f`, which runs only if the field `selector` of the deparser's metadata is set, and contains the number
    /// of the instance if that has one.
    fn guarded(&mut self, call: &Call<'a, '_>, selector: &str, f: impl FnOnce(&mut Self)) -> Val {
        self.allowed_in(call, &[Place::Deparser]);
        let Some(field) = self.deparser_field(selector) else {
            return Val::Unit;
        };
        let mut selected = self.selection(&field).unwrap_or_else(|| Ex::bool(true));
        if let Some(number) = self.ir.objects[call.object].number(selector) {
            let wanted = fold::constant(number, field.ty());
            selected = fold::and(selected, fold::binary(BinOp::Eq, field, wanted));
        }
        let body = self.collect(f);
        self.emit(StKind::If(selected, body, Vec::new()));
        Val::Unit
    }

    /// Returns the bits that go in front of a packet: the fields of a header, with its padding.
    fn prefix_fields(&mut self, e: Option<&'a Expr>) -> Arg {
        let Some(e) = e else {
            return Arg::FieldList(Vec::new());
        };
        let value = self.eval(e);
        let inputs = self.calculation_inputs(&value);
        let mut fields: Vec<Ex> = inputs.into_iter().map(|e| self.in_field(e)).collect();
        let ty = match self.t.coercions.get(&e.id) {
            Some(ty) => self.subst(ty),
            None => self.type_of(e.id),
        };
        let padding = self.flexible_padding(&ty);
        if padding > 0 {
            fields.push(self.stored(Ex::bit(0, padding)));
        }
        Arg::FieldList(fields)
    }
}

/// Returns the number of bits of a list of fields.
fn bits_of(fields: &Arg) -> u32 {
    match fields {
        Arg::FieldList(fields) => fields.iter().map(|e| e.ty().width()).sum(),
        _ => 0,
    }
}
