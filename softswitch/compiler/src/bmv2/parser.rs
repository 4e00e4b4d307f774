// SPDX-License-Identifier: Apache-2.0
//! Emits parsers.

use num_bigint::BigInt;
use num_traits::{One, Zero};
use serde_json::{Value, json};

use super::Emitter;
use super::expr::hexstr;
use crate::ir::{Ex, HeaderRef, KeySet, Parser, ParserState, St, StKind, Target};

/// Maximum number of transitions for the ranges of one case.
const MAX_ALTERNATIVES: usize = 4096;

impl Emitter<'_> {
    pub(super) fn parser(&self, id: usize) -> Value {
        let ir = self.ir;
        let parser = &ir.parsers[id];
        let reachable = self.reachable_states(parser);
        let mut states = Vec::new();
        for (i, s) in ir.states.iter().enumerate() {
            if !reachable[i] {
                continue;
            }
            let ops: Vec<Value> = s.ops.iter().filter_map(|op| self.parser_op(op)).collect();
            let keys: Vec<Value> = s.keys.iter().map(|k| self.data(k)).collect();
            states.push(json!({
                "name": s.name,
                "id": states.len(),
                "source_info": self.source(s.span),
                "parser_ops": ops,
                "transitions": self.transitions(s),
                "transition_key": keys,
            }));
        }
        let init = ir.states.get(parser.start_state);
        let init = init.map_or("start", |s| &s.name);
        json!({"name": parser.name, "id": id, "init_state": init, "parse_states": states})
    }

    fn reachable_states(&self, parser: &Parser) -> Vec<bool> {
        let mut seen = vec![false; self.ir.states.len()];
        let mut todo = vec![parser.start_state];
        while let Some(i) = todo.pop() {
            if i >= seen.len() || std::mem::replace(&mut seen[i], true) {
                continue;
            }
            for case in &self.ir.states[i].cases {
                if let Target::State(j) = &case.target {
                    todo.push(*j);
                }
            }
        }
        seen
    }

    fn parser_op(&self, s: &St) -> Option<Value> {
        let (op, parameters) = match &s.kind {
            StKind::Extract { header, var_bits } => {
                let place = match header {
                    HeaderRef::Static(h) => json!({"type": "regular", "value": h}),
                    HeaderRef::Next(stack) => json!({"type": "stack", "value": stack}),
                    HeaderRef::UnionNext { stack, member } => {
                        json!({"type": "union_stack", "value": [stack, member]})
                    }
                    _ => return None,
                };
                match var_bits {
                    None => ("extract", vec![place]),
                    Some(e) => (
                        "extract_VL",
                        vec![place, json!({"type": "expression", "value": self.data(e)})],
                    ),
                }
            }
            StKind::Assign(l @ Ex::Field { .. }, r)
                if !matches!(l.ty(), crate::ir::Scalar::Varbit(_)) =>
            {
                ("set", vec![self.data(l), self.parameter(r)])
            }
            StKind::Verify(cond, error) => ("verify", vec![self.boolean(cond), self.data(error)]),
            StKind::Advance(bits) => ("advance", vec![self.parameter(bits)]),
            _ => ("primitive", vec![self.primitive(s)?]),
        };
        Some(json!({"op": op, "parameters": parameters, "source_info": self.source(s.span)}))
    }

    fn transitions(&self, s: &ParserState) -> Vec<Value> {
        let mut out = Vec::new();
        for case in &s.cases {
            let (sets, source) = (&case.sets, self.source(case.span));
            let next = match &case.target {
                Target::State(i) => json!(self.ir.states[*i].name),
                Target::Reject if self.ir.architecture.is_tofino() => json!("reject"),
                Target::Accept | Target::Reject => Value::Null,
            };
            let transition = |kind: &str, value: Value, mask: Value| {
                json!({
                    "type": kind,
                    "value": value,
                    "mask": mask,
                    "next_state": next,
                    "source_info": source,
                })
            };
            if sets.iter().all(|k| matches!(k, KeySet::Any)) {
                out.push(transition("default", Value::Null, Value::Null));
                break; // nothing after it can match
            }
            if let [KeySet::Set(name)] = &sets[..] {
                out.push(transition("parse_vset", json!(name), Value::Null));
                continue;
            }
            if sets.iter().any(|k| matches!(k, KeySet::Set(_))) {
                self.diags.unsupported_hint(
                    s.span,
                    "on this target, a value set must cover all keys of the select",
                    "declare it as a value set of a tuple of all the keys",
                );
                continue;
            }
            let mut alternatives: Vec<Vec<(BigInt, BigInt)>> = vec![Vec::new()];
            for (set, key) in sets.iter().zip(&s.keys) {
                let parts = masks(set, key.ty().width());
                alternatives = alternatives
                    .iter()
                    .flat_map(|a| {
                        parts
                            .iter()
                            .map(move |p| a.iter().cloned().chain([p.clone()]).collect())
                    })
                    .collect();
                if alternatives.len() > MAX_ALTERNATIVES {
                    self.diags.unsupported(
                        s.span,
                        "the ranges of this select need too many transitions",
                    );
                    break;
                }
            }
            for a in alternatives {
                let (value, mask) = joined(&a, s);
                out.push(transition("hexstr", value, mask));
            }
        }
        out
    }
}

/// Joins the values and masks of a case's keys; the mask is null if all bits must match.
fn joined(parts: &[(BigInt, BigInt)], s: &ParserState) -> (Value, Value) {
    let (mut value, mut mask, mut bits, mut exact) = (BigInt::zero(), BigInt::zero(), 0, true);
    for ((v, m), key) in parts.iter().zip(&s.keys) {
        let width = key.ty().width();
        let bytes = width.div_ceil(8) * 8;
        value = (value << bytes) | v;
        mask = (mask << bytes) | m;
        bits += bytes;
        exact &= *m == ones(width);
    }
    let digits = |n: &BigInt| hexstr(n, bits)["value"].clone();
    let mask = if exact { Value::Null } else { digits(&mask) };
    (digits(&value), mask)
}

fn ones(width: u32) -> BigInt {
    (BigInt::one() << width) - 1
}

/// Converts a set to values with masks; a range becomes the prefixes that cover it.
fn masks(set: &KeySet, width: u32) -> Vec<(BigInt, BigInt)> {
    match set {
        KeySet::Any | KeySet::Set(_) => vec![(BigInt::zero(), BigInt::zero())],
        KeySet::Value(v) => vec![(v.clone(), ones(width))],
        KeySet::Mask(v, m) => vec![(v.clone(), m.clone())],
        KeySet::Range(lo, hi) => {
            let mut out = Vec::new();
            let mut at = lo.clone();
            while at <= *hi && out.len() <= MAX_ALTERNATIVES {
                let mut size = BigInt::one();
                loop {
                    let double: BigInt = &size * 2;
                    let low_bits: BigInt = &at & (&double - 1);
                    let last: BigInt = &at + &double - 1;
                    if !low_bits.is_zero() || last > *hi {
                        break;
                    }
                    size = double;
                }
                out.push((at.clone(), ones(width) ^ (&size - 1)));
                at += size;
            }
            out
        }
    }
}
