// SPDX-License-Identifier: Apache-2.0
//! Emits actions: statements become a list of primitive operations, and branches become jumps in it.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::Emitter;
use crate::diag::Span;
use crate::ir::{Arg, HeaderRef, Label, Scalar, St, StKind};

/// A list of operations with jumps whose targets may not be known yet.
#[derive(Default)]
struct Code {
    ops: Vec<Value>,
    /// Operations to patch: index of the operation, and the target.
    jumps: Vec<(usize, Goal)>,
    places: HashMap<Goal, usize>,
    next: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Goal {
    Label(Label),
    Local(u32),
    End,
}

impl Code {
    fn local(&mut self) -> Goal {
        self.next += 1;
        Goal::Local(self.next)
    }

    fn mark(&mut self, g: Goal) {
        self.places.insert(g, self.ops.len());
    }

    fn jump(&mut self, g: Goal) {
        self.jumps.push((self.ops.len(), g));
        self.ops.push(json!({"op": "_jump", "parameters": []}));
    }

    fn jump_if_zero(&mut self, cond: Value, g: Goal, source: Value) {
        self.jumps.push((self.ops.len(), g));
        self.ops.push(json!({
            "op": "_jump_if_zero",
            "parameters": [cond],
            "source_info": source,
        }));
    }

    pub(super) fn finish(mut self) -> Vec<Value> {
        self.mark(Goal::End);
        for (at, goal) in &self.jumps {
            let to = self.places.get(goal).copied().unwrap_or(self.ops.len());
            let parameter = json!({"type": "hexstr", "value": format!("{to:#x}")});
            if let Some(p) = self.ops[*at]["parameters"].as_array_mut() {
                p.push(parameter);
            }
        }
        self.ops
    }
}

impl Emitter<'_> {
    pub(super) fn action(
        &self,
        name: &str,
        id: usize,
        params: &[(String, Scalar)],
        body: &[St],
        span: Span,
    ) -> Value {
        let runtime_data: Vec<Value> = params
            .iter()
            .map(|(n, t)| json!({"name": n, "bitwidth": t.width()}))
            .collect();
        json!({
            "name": name,
            "id": id,
            "source_info": self.source(span),
            "runtime_data": runtime_data,
            "primitives": self.primitives(body),
        })
    }

    /// Returns the operations for a list of statements.
    pub(super) fn primitives(&self, body: &[St]) -> Vec<Value> {
        let mut code = Code::default();
        self.code(body, &mut code);
        code.finish()
    }

    fn code(&self, body: &[St], code: &mut Code) {
        for s in body {
            match &s.kind {
                StKind::If(cond, yes, no) => {
                    let (otherwise, end) = (code.local(), code.local());
                    code.jump_if_zero(self.parameter(cond), otherwise, self.source(s.span));
                    self.code(yes, code);
                    if !no.is_empty() {
                        code.jump(end);
                    }
                    code.mark(otherwise);
                    self.code(no, code);
                    code.mark(end);
                }
                StKind::Labelled(label, inner) => {
                    self.code(inner, code);
                    code.mark(Goal::Label(*label));
                }
                StKind::Loop { head, cond, body } => {
                    let (again, end) = (code.local(), code.local());
                    code.mark(again);
                    self.code(head, code);
                    code.jump_if_zero(self.parameter(cond), end, self.source(s.span));
                    self.code(body, code);
                    code.jump(again);
                    code.mark(end);
                }
                StKind::Leave(label) => code.jump(Goal::Label(*label)),
                StKind::Exit => {
                    code.ops.push(json!({"op": "exit", "parameters": []}));
                    code.jump(Goal::End);
                }
                _ => code.ops.extend(self.primitive(s)),
            }
        }
    }

    /// Returns the operation for a statement without branches.
    pub(super) fn primitive(&self, s: &St) -> Option<Value> {
        let (op, parameters): (&str, Vec<Value>) = match &s.kind {
            StKind::Assign(l, r) => {
                let op = if matches!(l.ty(), Scalar::Varbit(_)) {
                    "assign_VL"
                } else {
                    "assign"
                };
                (op, vec![self.parameter(l), self.parameter(r)])
            }
            StKind::AssignHeader(l, r) => (
                "assign_header",
                vec![self.header_parameter(l, s), self.header_parameter(r, s)],
            ),
            StKind::AssignStack(l, r) => ("assign_header_stack", vec![stack(l), stack(r)]),
            StKind::AssignUnion(l, r) => ("assign_union", vec![union(l), union(r)]),
            StKind::SetValid(h, valid) => (
                if *valid {
                    "add_header"
                } else {
                    "remove_header"
                },
                vec![self.header_parameter(h, s)],
            ),
            StKind::Shift {
                stack: name,
                count,
                push,
            } => {
                let is_union = self.ir.storage.union_stacks.iter().any(|u| u.name == *name);
                let place = if is_union {
                    json!({"type": "header_union_stack", "value": name})
                } else {
                    stack(name)
                };
                let count = json!({"type": "hexstr", "value": format!("{count:#x}")});
                (if *push { "push" } else { "pop" }, vec![place, count])
            }
            StKind::Primitive { op, args } => {
                (&**op, args.iter().map(|a| self.arg(op, a)).collect())
            }
            StKind::Checksum(_) => return None,
            _ => {
                self.diags
                    .unsupported(s.span, "this cannot be used here on this target");
                return None;
            }
        };
        Some(json!({"op": op, "parameters": parameters, "source_info": self.source(s.span)}))
    }

    fn header_parameter(&self, h: &HeaderRef, s: &St) -> Value {
        match h {
            HeaderRef::Static(_) => self.header(h),
            HeaderRef::Elem { .. } | HeaderRef::UnionElem { .. } => {
                json!({"type": "expression", "value": self.header(h)})
            }
            _ => {
                self.diags.unsupported_hint(
                    s.span,
                    "'next' and 'last' of a stack cannot be used like this on this target",
                    "extract into .next, and read fields of .last",
                );
                Value::Null
            }
        }
    }

    pub(super) fn arg(&self, op: &str, a: &Arg) -> Value {
        match a {
            // These two expect a Boolean as a number.
            Arg::Ex(e) if matches!(op, "assert" | "assume") => {
                let number = json!({"op": "b2d", "left": null, "right": self.boolean(e)});
                let value = json!({"type": "expression", "value": number});
                json!({"type": "expression", "value": value})
            }
            Arg::Ex(e) => self.parameter(e),
            Arg::Header(h) => self.header(h),
            Arg::Named(kind, name) => json!({"type": kind, "value": name}),
            Arg::Str(s) => json!({"type": "string", "value": s}),
            Arg::Vector(list) => {
                let values: Vec<Value> = list.iter().map(|e| self.parameter(e)).collect();
                json!({"type": "parameters_vector", "value": values})
            }
            Arg::FieldList(list) => {
                let values: Vec<Value> = list.iter().map(|e| self.data(e)).collect();
                json!({"type": "field_list", "value": values})
            }
        }
    }
}

fn stack(name: &str) -> Value {
    json!({"type": "header_stack", "value": name})
}

fn union(name: &str) -> Value {
    json!({"type": "header_union", "value": name})
}
