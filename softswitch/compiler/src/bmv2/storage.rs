// SPDX-License-Identifier: Apache-2.0
//! Emits headers, stacks, unions and value sets.

use serde_json::{Value, json};

use super::Emitter;
use crate::ir::{SCALARS, Scalar};

fn field(name: &str, ty: Scalar) -> Value {
    match ty {
        Scalar::Varbit(_) => json!([name, "*"]),
        Scalar::Int(w) => json!([name, w, true]),
        ty => json!([name, ty.width(), false]),
    }
}

/// Emits fields of metadata, padded to whole bytes.
fn padded(mut fields: Vec<Value>, bits: u32) -> Vec<Value> {
    if !bits.is_multiple_of(8) {
        fields.push(json!(["_padding", 8 - bits % 8, false]));
    }
    fields
}

impl Emitter<'_> {
    pub(super) fn header_types(&self) -> Vec<Value> {
        let storage = &self.ir.storage;
        let mut bits: u32 = storage.scalars.iter().map(|(_, t)| t.width()).sum();
        let mut fields: Vec<Value> = storage.scalars.iter().map(|(n, t)| field(n, *t)).collect();
        for (n, w) in &self.extra_scalars {
            fields.push(field(n, Scalar::Bit(*w)));
            bits += w;
        }
        let mut out = vec![json!({"name": "scalars_0", "id": 0, "fields": padded(fields, bits)})];
        for t in &storage.header_types {
            let mut fields: Vec<Value> = t.fields.iter().map(|(n, t)| field(n, *t)).collect();
            let fixed: u32 = t
                .fields
                .iter()
                .map(|(_, t)| {
                    if matches!(t, Scalar::Varbit(_)) {
                        0
                    } else {
                        t.width()
                    }
                })
                .sum();
            if t.is_metadata {
                fields = padded(fields, fixed);
            }
            let mut v = json!({"name": t.name, "id": out.len(), "fields": fields});
            if t.fields.iter().any(|(_, t)| matches!(t, Scalar::Varbit(_))) {
                let most: u32 = t.fields.iter().map(|(_, t)| t.width()).sum();
                v["max_length"] = json!(most.div_ceil(8));
            }
            out.push(v);
        }
        out
    }

    pub(super) fn headers(&self) -> Vec<Value> {
        let storage = &self.ir.storage;
        let mut out = vec![json!({
            "name": SCALARS, "id": 0, "header_type": "scalars_0", "metadata": true, "pi_omit": true,
        })];
        for h in &storage.headers {
            let ty = &storage.header_types[h.header_type];
            out.push(json!({
                "name": h.name,
                "id": out.len(),
                "header_type": ty.name,
                "metadata": ty.is_metadata,
                "pi_omit": true,
            }));
        }
        out
    }

    pub(super) fn header_stacks(&self) -> Vec<Value> {
        let storage = &self.ir.storage;
        storage
            .stacks
            .iter()
            .enumerate()
            .map(|(id, s)| {
                // Header 0 contains the variables.
                let ids: Vec<usize> = s.elements.iter().map(|h| h + 1).collect();
                json!({
                    "name": s.name,
                    "id": id,
                    "header_type": storage.header_types[s.header_type].name,
                    "size": ids.len(),
                    "header_ids": ids,
                })
            })
            .collect()
    }

    pub(super) fn header_union_types(&self) -> Vec<Value> {
        let storage = &self.ir.storage;
        storage
            .union_types
            .iter()
            .enumerate()
            .map(|(id, u)| {
                let headers: Vec<Value> = u
                    .members
                    .iter()
                    .map(|(n, t)| json!([n, storage.header_types[*t].name]))
                    .collect();
                json!({"name": u.name, "id": id, "headers": headers})
            })
            .collect()
    }

    pub(super) fn header_unions(&self) -> Vec<Value> {
        let storage = &self.ir.storage;
        storage
            .unions
            .iter()
            .enumerate()
            .map(|(id, u)| {
                let ids: Vec<usize> = u.headers.iter().map(|h| h + 1).collect();
                json!({
                    "name": u.name,
                    "id": id,
                    "union_type": storage.union_types[u.union_type].name,
                    "header_ids": ids,
                    "pi_omit": true,
                })
            })
            .collect()
    }

    pub(super) fn header_union_stacks(&self) -> Vec<Value> {
        let storage = &self.ir.storage;
        storage
            .union_stacks
            .iter()
            .enumerate()
            .map(|(id, s)| {
                json!({
                    "name": s.name,
                    "id": id,
                    "union_type": storage.union_types[s.union_type].name,
                    "header_union_ids": s.unions,
                })
            })
            .collect()
    }

    pub(super) fn value_sets(&self) -> Vec<Value> {
        self.ir
            .value_sets
            .iter()
            .enumerate()
            .map(|(id, v)| {
                let bits: u32 = v.fields.iter().map(|(_, t)| t.width()).sum();
                json!({
                    "name": v.name,
                    "id": id,
                    "source_info": self.source(v.decl.name.span),
                    "compressed_bitwidth": bits,
                })
            })
            .collect()
    }
}
