// SPDX-License-Identifier: Apache-2.0
//! Emits BMv2 JSON, for `simple_switch`. The documentation of behavioral-model describes the format in
//! `JSON_format.md`; the emitted version is 2.23.

mod action;
mod expr;
mod graph;
mod objects;
mod parser;
mod storage;
mod table;

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::diag::{Diagnostics, SourceMap, Span};
use crate::ir::{Ex, Lowered, ObjectArg, StKind};

/// Emits the JSON for a lowered program; reports errors to `diags`.
pub fn emit(program: &str, ir: &Lowered, diags: &Diagnostics, sources: &SourceMap) -> Value {
    let mut e = Emitter {
        ir,
        diags,
        sources,
        actions: Vec::new(),
        next_table: 0,
        next_conditional: 0,
        next_profile: 0,
        used_names: HashMap::new(),
        extra_scalars: Vec::new(),
    };
    e.program(program)
}

pub(crate) struct Emitter<'a> {
    ir: &'a Lowered<'a>,
    diags: &'a Diagnostics,
    sources: &'a SourceMap,
    /// Actions in order of their ids; the program's own come first.
    actions: Vec<Value>,
    next_table: usize,
    next_conditional: usize,
    next_profile: usize,
    used_names: HashMap<String, usize>,
    /// Variables of the back end: name and width.
    extra_scalars: Vec<(String, u32)>,
}

impl Emitter<'_> {
    fn program(&mut self, program: &str) -> Value {
        for t in &self.ir.tables {
            self.used_names.insert(t.name.clone(), 0);
        }
        for a in &self.ir.actions {
            self.used_names.insert(a.name.clone(), 0);
        }
        let ir = self.ir;
        for (id, a) in ir.actions.iter().enumerate() {
            let action = self.action(&a.name, id, &a.params, &a.body, a.decl.name.span);
            self.actions.push(action);
        }
        let parsers = self.parsers();
        let deparsers = self.deparsers();
        let ingress = self.pipeline(
            "ingress",
            0,
            &ir.ingress,
            ir.blocks.get(2).map(|d| d.name.span),
        );
        let egress = self.pipeline(
            "egress",
            1,
            &ir.egress,
            ir.blocks.get(3).map(|d| d.name.span),
        );
        let (calculations, checksums) = self.checksums();
        let errors: Vec<Value> = ir
            .errors
            .iter()
            .enumerate()
            .map(|(i, n)| json!([n, i]))
            .collect();
        let field_lists: Vec<Value> = ir
            .field_lists
            .iter()
            .map(|l| {
                let elements: Vec<Value> = l.elements.iter().map(|e| self.data(e)).collect();
                json!({"id": l.id, "name": l.name, "elements": elements})
            })
            .collect();
        let learn_lists: Vec<Value> = ir
            .digests
            .iter()
            .map(|d| {
                let elements: Vec<Value> = d.elements.iter().map(|e| self.data(e)).collect();
                json!({"id": d.id, "name": d.name, "source_info": self.source(d.span), "elements": elements})
            })
            .collect();
        json!({
            "header_types": self.header_types(),
            "headers": self.headers(),
            "header_stacks": self.header_stacks(),
            "header_union_types": self.header_union_types(),
            "header_unions": self.header_unions(),
            "header_union_stacks": self.header_union_stacks(),
            "field_lists": field_lists,
            "errors": errors,
            "enums": [],
            "parsers": parsers,
            "parse_vsets": self.value_sets(),
            "deparsers": deparsers,
            "meter_arrays": self.meters(),
            "counter_arrays": self.counters(),
            "register_arrays": self.registers(),
            "calculations": calculations,
            "learn_lists": learn_lists,
            "actions": self.actions,
            "pipelines": [ingress, egress],
            "checksums": checksums,
            "force_arith": [],
            "extern_instances": self.extern_instances(),
            "field_aliases": self.field_aliases(),
            "program": program,
            "__meta__": {"version": [2, 23], "compiler": concat!("softswitch-p4c ", env!("CARGO_PKG_VERSION"))},
        })
    }

    /// Emits the names that the target uses for fields of the standard metadata.
    fn field_aliases(&self) -> Vec<Value> {
        let aliases = self.ir.aliases.iter();
        aliases
            .map(|(target, field)| json!([target, [crate::ir::STANDARD_METADATA, field]]))
            .collect()
    }

    /// Emits a source position, for the target's traces.
    fn source(&self, span: Span) -> Value {
        let at = self.sources.line_col(span);
        let text = self.sources.snippet(span);
        let fragment: String = text.lines().next().unwrap_or("").chars().take(80).collect();
        json!({
            "filename": at.file,
            "line": at.line,
            "column": at.col - 1,
            "source_fragment": fragment.trim_end(),
        })
    }

    /// Returns a unique name.
    fn fresh_name(&mut self, base: &str) -> String {
        if !self.used_names.contains_key(base) {
            self.used_names.insert(base.to_string(), 0);
            return base.to_string();
        }
        loop {
            let n = self.used_names.entry(base.to_string()).or_insert(0);
            let name = format!("{base}_{n}");
            *n += 1;
            if !self.used_names.contains_key(&name) {
                self.used_names.insert(name.clone(), 0);
                return name;
            }
        }
    }

    fn deparsers(&mut self) -> Value {
        let mut order = Vec::new();
        let mut primitives = Vec::new();
        let ir = self.ir;
        for s in &ir.deparser {
            match &s.kind {
                StKind::Emit(h) => order.push(h.clone()),
                StKind::If(..)
                | StKind::Apply { .. }
                | StKind::Labelled(..)
                | StKind::Leave(_)
                | StKind::Exit => {
                    self.diags.unsupported_hint(
                        s.span,
                        "this cannot be used in a deparser on this target",
                        "use emit calls only; remove headers in egress, with setInvalid()",
                    );
                }
                _ => primitives.extend(self.primitive(s)),
            }
        }
        let span = ir.blocks.get(5).map(|d| d.name.span).unwrap_or_default();
        let mut d =
            json!({"name": "deparser", "id": 0, "source_info": self.source(span), "order": order});
        if !primitives.is_empty() {
            d["primitives"] = Value::Array(primitives);
        }
        json!([d])
    }
}

fn both(a: &Ex, b: &Ex) -> Ex {
    match (a.as_bool(), b.as_bool()) {
        (Some(true), _) => b.clone(),
        (_, Some(true)) => a.clone(),
        _ => Ex::Binary(
            crate::ast::BinOp::And,
            Box::new(a.clone()),
            Box::new(b.clone()),
            crate::ir::Scalar::Bool,
        ),
    }
}

/// Returns a compile-time number among an instance's arguments.
fn int(args: &[ObjectArg], i: usize) -> Value {
    use num_traits::ToPrimitive;
    match args.get(i) {
        Some(ObjectArg::Int(n)) => json!(n.to_u64().unwrap_or(u64::MAX)),
        _ => json!(0),
    }
}

fn member(args: &[ObjectArg], i: usize) -> Value {
    match args.get(i) {
        Some(ObjectArg::Enum(n)) => json!(n),
        _ => json!("packets"),
    }
}
