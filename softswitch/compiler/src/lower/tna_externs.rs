// SPDX-License-Identifier: Apache-2.0
//! Methods of TNA's externs.

use super::value::Val;
use super::{Lower, Place, fold};
use crate::ast::{Arg as AstArg, BinOp, Expr, Method};
use crate::diag::Warning;
use crate::ir::{Arg, Ex, ObjectKind, Scalar};
use crate::types::CallInfo;

/// A call of a method of an instance.
pub(super) struct Call<'a, 'c> {
    pub e: &'a Expr,
    pub object: usize,
    pub m: &'c Method,
    pub info: &'a CallInfo,
    pub args: &'a [AstArg],
}

impl<'a> Call<'a, '_> {
    pub(super) fn method(&self) -> &str {
        &self.m.name.name
    }

    /// Returns the argument for the method's parameter with this name.
    pub(super) fn argument(&self, parameter: &str) -> Option<&'a Expr> {
        let params = &self.m.sig.params;
        let i = params.iter().position(|p| &*p.name.name == parameter)?;
        let position = self.info.args.get(i).copied().flatten()?;
        self.args.get(position).map(|a| &a.expr)
    }
}

impl<'a> Lower<'a> {
    /// Lowers the call of a method of TNA; `None` if the method is unknown.
    pub(super) fn tofino_method(&mut self, call: &Call<'a, '_>) -> Option<Val> {
        use ObjectKind as K;
        let object = &self.ir.objects[call.object];
        let this = Arg::Named("extern", object.name.clone());
        let (e, info, args) = (call.e, call.info, call.args);
        Some(match (object.kind, call.method()) {
            (K::Counter, "count") => {
                let index = self.input(info, args, 0);
                let index = self.snapshot(index);
                let cell = vec![this, Arg::Ex(index)];
                self.primitive("_Counter_count", cell.clone());
                self.correct_count(call, "_Counter_correct", &cell);
                Val::Unit
            }
            // Direct counters count by themselves whenever their table hits.
            (K::DirectCounter, "count") => {
                self.correct_count(call, "_DirectCounter_correct", &[]);
                self.note_direct_call(e, call.object);
                Val::Unit
            }
            (K::Meter, "execute") => self.execute_meter(call, this),
            (K::DirectMeter, "execute") => {
                self.whole_packets(call);
                self.note_direct_call(e, call.object);
                if call.argument("color").is_some() {
                    self.colour_blind(e);
                }
                let color = self.direct_color(e, call.object);
                self.color_value(call.object, color)
            }
            (K::Register | K::DirectRegister, "clear") => {
                self.clear(call);
                Val::Unit
            }
            (K::Register | K::DirectRegister | K::RegisterParam, _) => {
                return self.register_method(call);
            }
            (K::RegisterAction, _) => return self.register_action(call),
            (K::Lpf | K::Wred | K::DirectLpf | K::DirectWred, "execute") => self.filter(call, this),
            (K::MathUnit, "execute") => {
                let value = self.input(info, args, 0);
                let result = self.result(e);
                let parameters = vec![this, Arg::Ex(value), Arg::Ex(result.clone())];
                self.primitive("_MathUnit_execute", parameters);
                Val::Scalar(result)
            }
            (K::Random, "get") => {
                let result = self.result(e);
                let width = result.ty().width();
                let bounds = [Ex::bit(0, width), Ex::bit(super::ones(width), width)];
                let parameters = std::iter::once(result.clone()).chain(bounds);
                let parameters = parameters.map(Arg::Ex).collect();
                self.primitive("modify_field_rng_uniform", parameters);
                Val::Scalar(result)
            }
            (K::Hash, "get") => self.tofino_hash(call, this),
            (K::Checksum, _) => return self.tofino_checksum(call, this),
            (K::ParserCounter, _) => return self.parser_counter(call),
            (K::ParserPriority, "set") => {
                // The priority decides which packets the parser's buffer drops; this target does not have one.
                self.allowed_in(call, &[Place::Parser]);
                self.input(info, args, 0);
                Val::Unit
            }
            (K::Mirror, "emit") => self.emit_mirror(call),
            (K::Resubmit, "emit") => self.emit_resubmit(call),
            (K::Pktgen, "emit") => self.emit_generator_header(call),
            (K::Digest, "pack") => self.pack_digest(call),
            _ => return None,
        })
    }

    /// Refuses a call outside these places.
    pub(super) fn allowed_in(&self, call: &Call<'a, '_>, places: &[Place]) {
        let owner = &self.ir.objects[call.object].extern_name;
        let what = format!("{owner}.{}", call.method());
        self.only_in(places, call.e.span, &what);
    }

    /// Corrects the number of bytes that a counter counts for the packet.
    fn correct_count(&mut self, call: &Call<'a, '_>, primitive: &'static str, cell: &[Arg]) {
        let object = &self.ir.objects[call.object];
        let counts_leaving = object.number("true_egress_accounting");
        if counts_leaving.is_some_and(num_traits::One::is_one) {
            self.primitive(primitive, cell.to_vec());
        }
        if let Some(bytes) = call.argument("adjust_byte_count") {
            let bytes = self.scalar(bytes);
            let mut parameters = cell.to_vec();
            parameters.push(Arg::Ex(bytes));
            self.primitive(primitive, parameters);
        }
    }

    /// Warns of an adjustment of the number of bytes that a direct meter counts.
    fn whole_packets(&mut self, call: &Call<'a, '_>) {
        if let Some(e) = call.argument("adjust_byte_count") {
            self.diags.warn_hint(
                Warning::Unsupported,
                e.span,
                "the target ignores adjustments of byte counts: it counts whole packets",
                "leave the argument out",
            );
        }
    }

    fn execute_meter(&mut self, call: &Call<'a, '_>, this: Arg) -> Val {
        let index = self.input(call.info, call.args, 0);
        let before = call.argument("color").map(|e| self.scalar(e));
        let less = call.argument("adjust_byte_count").map(|e| self.scalar(e));
        let color = self.result(call.e);
        let name = match less {
            Some(_) => "_Meter_execute_adjusted",
            None => "_Meter_execute",
        };
        let mut parameters = vec![this, Arg::Ex(index), Arg::Ex(color.clone())];
        parameters.extend(less.into_iter().chain(before).map(Arg::Ex));
        self.primitive(name, parameters);
        self.color_value(call.object, color)
    }

    /// Returns the number for a colour, which the constructor of a meter may choose.
    fn color_value(&mut self, object: usize, color: Ex) -> Val {
        let object = &self.ir.objects[object];
        let chosen = ["green", "yellow", "red"].map(|name| object.number(name).cloned());
        let [Some(green), Some(yellow), Some(red)] = chosen else {
            return Val::Scalar(color);
        };
        let ty = color.ty();
        let is =
            |code: u32| fold::binary(BinOp::Eq, color.clone(), Ex::Const(code.into(), color.ty()));
        let not_green = fold::cond(is(1), fold::constant(&yellow, ty), fold::constant(&red, ty));
        Val::Scalar(fold::cond(is(0), fold::constant(&green, ty), not_green))
    }

    /// Lowers a low-pass filter, or random early detection.
    fn filter(&mut self, call: &Call<'a, '_>, this: Arg) -> Val {
        let object = &self.ir.objects[call.object];
        let op = format!("_{}_execute", object.extern_name);
        let is_direct = matches!(object.kind, ObjectKind::DirectLpf | ObjectKind::DirectWred);
        let value = self.input(call.info, call.args, 0);
        let mut parameters = vec![this];
        if is_direct {
            self.note_direct_call(call.e, call.object);
        } else {
            let index = self.input(call.info, call.args, 1);
            parameters.push(Arg::Ex(index));
        }
        let result = self.result(call.e);
        parameters.extend([Arg::Ex(value), Arg::Ex(result.clone())]);
        self.primitive(op, parameters);
        Val::Scalar(result)
    }

    fn tofino_hash(&mut self, call: &Call<'a, '_>, this: Arg) -> Val {
        let data = match self.symmetric_fields(call) {
            Some(fields) => Arg::FieldList(fields),
            None => self.fields(call.info, call.args, 0),
        };
        let result = self.result(call.e);
        self.note_hash_call(call, result.ty().width());
        let parameters = vec![this, Arg::Ex(result.clone()), data];
        self.primitive("_Hash_get_hash", parameters);
        Val::Scalar(result)
    }

    /// Returns the fields of a hash with annotations `@symmetric("a", "b")`: in each of these pairs, the smaller value comes
    /// first. `None` without such annotations.
    fn symmetric_fields(&mut self, call: &Call<'a, '_>) -> Option<Vec<Ex>> {
        let annotations = self.ir.objects[call.object].annos.iter();
        let pairs: Vec<[String; 2]> = annotations
            .filter(|a| &*a.name.name == "symmetric")
            .filter_map(crate::annotation::two_strings)
            .collect();
        if pairs.is_empty() {
            return None;
        }
        let data = self.arg(call.info, call.args, 0)?;
        let crate::ast::ExprKind::List { items, .. } = &data.kind else {
            self.diags.unsupported_hint(
                data.span,
                "a symmetric hash needs a list of its fields",
                "write {a, b, ...}, with the fields that @symmetric names",
            );
            return None;
        };
        let value = self.eval(data);
        let inputs = self.calculation_inputs(&value);
        let mut fields: Vec<Ex> = inputs.into_iter().map(|e| self.in_field(e)).collect();
        let texts: Vec<String> = items.iter().map(|i| self.sources.snippet(i.span)).collect();
        if fields.len() != texts.len() {
            return Some(fields);
        }
        for pair in pairs {
            let [a, b] = pair.map(|name| texts.iter().position(|t| *t == name));
            if let (Some(a), Some(b)) = (a, b) {
                self.order(&mut fields, a, b);
            }
        }
        Some(fields)
    }

    /// Puts the smaller of two fields first.
    fn order(&mut self, fields: &mut [Ex], a: usize, b: usize) {
        let (first, second) = (fields[a].clone(), fields[b].clone());
        let sorted = fold::binary(BinOp::Le, first.clone(), second.clone());
        let smaller = fold::cond(sorted.clone(), first.clone(), second.clone());
        let larger = fold::cond(sorted, second, first);
        fields[a] = self.stored(smaller);
        fields[b] = self.stored(larger);
    }

    /// Returns a field with the value of `e`.
    pub(super) fn in_field(&mut self, e: Ex) -> Ex {
        match e {
            Ex::Field { .. } => e,
            e => self.stored(e),
        }
    }

    /// Returns the number of a scalar type with all bits set.
    pub(super) fn all_ones(ty: Scalar) -> Ex {
        fold::constant(&super::ones(ty.width()), ty)
    }
}
