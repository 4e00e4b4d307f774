// SPDX-License-Identifier: Apache-2.0
//! Emits registers.

use num_traits::Zero;
use serde_json::{Value, json};

use super::{Emitter, int};
use crate::ir::{ObjectArg, ObjectKind};
use crate::types::Type;

impl Emitter<'_> {
    pub(super) fn registers(&self) -> Vec<Value> {
        let mut out = Vec::new();
        if self.ir.architecture.is_tofino() {
            return self.tofino_registers();
        }
        for (_, o) in self.objects(ObjectKind::Register) {
            let Some(width) = o.targs.first().and_then(|t| self.register_width(t)) else {
                self.diags.unsupported_hint(
                    o.span,
                    format!("register '{}' does not hold numbers", o.name),
                    "the target's registers hold bit<W>, int<W> or bool; use one register for each field",
                );
                continue;
            };
            let size = match o.args.first() {
                Some(ObjectArg::Int(n)) => n.clone(),
                _ => 0.into(),
            };
            out.push(json!({
                "name": o.name,
                "id": out.len(),
                "source_info": self.source(o.span),
                "size": num_traits::ToPrimitive::to_u64(&size).unwrap_or(0),
                "bitwidth": width,
            }));
        }
        out
    }

    /// Emits the registers of TNA: arrays, single cells, and cells of tables' entries.
    fn tofino_registers(&self) -> Vec<Value> {
        let mut out: Vec<Value> = Vec::new();
        for (i, o) in self.ir.objects.iter().enumerate() {
            for cells in &o.cells {
                let mut register = json!({
                    "name": cells.name,
                    "id": out.len(),
                    "source_info": self.source(o.span),
                    "size": 1,
                    "bitwidth": cells.ty.width(),
                });
                if !cells.initial.is_zero() {
                    let unsigned = crate::check::wrap(&cells.initial, &Type::Bit(cells.ty.width()));
                    register["initial_value"] = json!(super::externs::hex(&unsigned));
                }
                match o.kind {
                    ObjectKind::Register => register["size"] = int(&o.args, 0),
                    ObjectKind::DirectRegister => {
                        let Some(table) = self.ir.tables.iter().find(|t| t.has_direct(i)) else {
                            continue;
                        };
                        register["size"] = json!(table.size);
                        register["is_direct"] = json!(true);
                        register["binding"] = json!(table.name);
                    }
                    _ => {}
                }
                out.push(register);
            }
        }
        out
    }

    fn register_width(&self, ty: &Type) -> Option<u32> {
        match ty {
            Type::Bool => Some(1),
            Type::Bit(w) | Type::SInt(w) => Some(*w),
            Type::Error => Some(32),
            Type::Named(id, _) => self.ir.named_widths.get(id).copied(),
            _ => None,
        }
    }
}
