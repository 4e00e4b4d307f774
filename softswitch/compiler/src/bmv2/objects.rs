// SPDX-License-Identifier: Apache-2.0
//! Emits checksums, counters and meters.

use serde_json::{Value, json};

use super::{Emitter, both, int, member};
use crate::ir::{Architecture, Ex, ObjectKind, St, StKind};

impl Emitter<'_> {
    /// Emits the calculations: first those of hashes, then those of checksums.
    pub(super) fn checksums(&mut self) -> (Vec<Value>, Vec<Value>) {
        let ir = self.ir;
        let mut calculations = Vec::new();
        for c in &ir.calculations {
            let input = self.calculation_input(&c.inputs, c.payload);
            calculations.push(json!({"name": c.name, "id": calculations.len(), "algo": c.algorithm, "input": input}));
        }
        let mut checksums = Vec::new();
        for list in [&ir.update, &ir.verify] {
            self.checksum_list(list, &Ex::bool(true), &mut calculations, &mut checksums);
        }
        (calculations, checksums)
    }

    pub(super) fn checksum_list(
        &mut self,
        list: &[St],
        when: &Ex,
        calculations: &mut Vec<Value>,
        checksums: &mut Vec<Value>,
    ) {
        for s in list {
            match &s.kind {
                StKind::Checksum(c) => {
                    let name = format!("calc_cksum_{}", checksums.len());
                    let input = self.calculation_input(&c.inputs, c.payload);
                    calculations.push(json!({
                        "name": name,
                        "id": calculations.len(),
                        "source_info": self.source(s.span),
                        "algo": c.algorithm,
                        "input": input,
                    }));
                    let condition = both(when, &c.condition);
                    let Ex::Field { header, field, .. } = &c.target else {
                        continue;
                    };
                    let n = checksums.len();
                    checksums.push(json!({
                        "name": if n == 0 { "cksum".to_string() } else { format!("cksum_{}", n - 1) },
                        "id": n,
                        "source_info": self.source(s.span),
                        "target": [header, field],
                        "type": "generic",
                        "calculation": name,
                        "verify": !c.update,
                        "update": c.update,
                        "if_cond": self.boolean(&condition),
                    }));
                }
                StKind::If(cond, yes, no) => {
                    let not = Ex::Unary(
                        crate::ast::UnOp::Not,
                        Box::new(cond.clone()),
                        crate::ir::Scalar::Bool,
                    );
                    self.checksum_list(yes, &both(when, cond), calculations, checksums);
                    self.checksum_list(no, &both(when, &not), calculations, checksums);
                }
                StKind::Labelled(_, inner) => {
                    self.checksum_list(inner, when, calculations, checksums)
                }
                StKind::Leave(_) => {}
                // The validity of unused locals.
                StKind::SetValid(_, false) => {}
                _ => self.diags.unsupported_hint(
                    s.span,
                    "this cannot be used in a checksum control on this target",
                    "use only calls of verify_checksum and update_checksum",
                ),
            }
        }
    }

    pub(super) fn calculation_input(&self, inputs: &[Ex], payload: bool) -> Vec<Value> {
        let mut list: Vec<Value> = inputs
            .iter()
            .map(|e| {
                let mut v = self.data(e);
                if let Ex::Const(_, ty) = e {
                    v["bitwidth"] = json!(ty.width());
                }
                v
            })
            .collect();
        if payload {
            list.push(json!({"type": "payload", "value": null}));
        }
        list
    }

    pub(super) fn objects(
        &self,
        kind: ObjectKind,
    ) -> impl Iterator<Item = (usize, &crate::ir::Object<'_>)> {
        self.ir
            .objects
            .iter()
            .enumerate()
            .filter(move |(_, o)| o.kind == kind && !o.name.is_empty())
    }

    /// Returns the name of the table that uses a direct counter, meter or the like.
    pub(super) fn bound_table(&self, object: usize) -> Option<&str> {
        self.ir
            .tables
            .iter()
            .find(|t| t.has_direct(object))
            .map(|t| t.name.as_str())
    }

    pub(super) fn counters(&self) -> Vec<Value> {
        let mut out = Vec::new();
        for (_, o) in self.objects(ObjectKind::Counter) {
            out.push(json!({
                "name": o.name,
                "id": out.len(),
                "source_info": self.source(o.span),
                "size": int(&o.args, 0),
                "is_direct": false,
            }));
        }
        for (i, o) in self.objects(ObjectKind::DirectCounter) {
            let Some(table) = self.bound_table(i) else {
                continue;
            };
            out.push(json!({
                "name": o.name,
                "id": out.len(),
                "source_info": self.source(o.span),
                "is_direct": true,
                "binding": table,
            }));
        }
        out
    }

    pub(super) fn meters(&self) -> Vec<Value> {
        let mut out = Vec::new();
        // In other architectures they are extern instances only.
        let arrays = self.objects(ObjectKind::Meter);
        for (_, o) in arrays.filter(|_| self.ir.architecture == Architecture::V1Model) {
            out.push(json!({
                "name": o.name,
                "id": out.len(),
                "source_info": self.source(o.span),
                "is_direct": false,
                "size": int(&o.args, 0),
                "rate_count": 2,
                "type": member(&o.args, 1),
            }));
        }
        for (i, o) in self.objects(ObjectKind::DirectMeter) {
            let Some(table) = self.bound_table(i) else {
                continue;
            };
            let target = match &o.meter_target {
                Some(Ex::Field { header, field, .. }) => json!([header, field]),
                _ => {
                    self.diags.unsupported_hint(
                        o.span,
                        format!("direct meter '{}' is never read", o.name),
                        "call its read() in the actions of the table",
                    );
                    Value::Null
                }
            };
            out.push(json!({
                "name": o.name,
                "id": out.len(),
                "source_info": self.source(o.span),
                "is_direct": true,
                "rate_count": 2,
                "type": member(&o.args, 0),
                "size": self.ir.tables.iter().find(|t| t.meter == Some(i)).map_or(0, |t| t.size),
                "binding": table,
                "result_target": target,
            }));
        }
        out
    }
}
