// SPDX-License-Identifier: Apache-2.0
//! Emits BMv2 JSON, for `simple_switch`. The documentation of behavioral-model describes the format in
//! `JSON_format.md`; the emitted version is 2.23.

mod action;
mod expr;
mod externs;
mod graph;
mod objects;
mod parser;
mod register;
mod storage;
mod table;
mod tofino;

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::diag::{Diagnostics, SourceMap, Span};
use crate::ir::{Architecture, Ex, Lowered, ObjectArg, St, StKind};

/// Maximum number of characters of a source position's text, so that nested statements do not repeat whole programs.
const MAX_FRAGMENT: usize = 80;

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
        let parsers: Vec<Value> = (0..ir.parsers.len()).map(|i| self.parser(i)).collect();
        let deparsers: Vec<Value> = (0..ir.deparsers.len()).map(|i| self.deparser(i)).collect();
        let pipelines: Vec<Value> = (0..ir.pipelines.len()).map(|i| self.pipeline(i)).collect();
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
        let mut meta = json!({"version": [2, 23], "compiler": concat!("softswitch-p4c ", env!("CARGO_PKG_VERSION"))});
        if ir.architecture.is_tofino() {
            meta["architecture"] = json!(ir.architecture.name());
            if !ir.pipes.is_empty() {
                meta["pipes"] = json!(ir.pipes);
            }
        }
        json!({
            "header_types": self.header_types(),
            "headers": self.headers(),
            "header_stacks": self.header_stacks(),
            "header_union_types": self.header_union_types(),
            "header_unions": self.header_unions(),
            "header_union_stacks": self.header_union_stacks(),
            "field_lists": field_lists,
            "errors": errors,
            "enums": self.enums(),
            "parsers": parsers,
            "parse_vsets": self.value_sets(),
            "deparsers": deparsers,
            "meter_arrays": self.meters(),
            "counter_arrays": self.counters(),
            "register_arrays": self.registers(),
            "calculations": calculations,
            "learn_lists": learn_lists,
            "actions": self.actions,
            "pipelines": pipelines,
            "checksums": checksums,
            "force_arith": [],
            "extern_instances": self.extern_instances(),
            "field_aliases": self.field_aliases(),
            "program": program,
            "__meta__": meta,
        })
    }

    /// Emits the enumerations that PSA's metadata use.
    fn enums(&self) -> Vec<Value> {
        let enums = self.ir.enums.iter().map(|(name, members)| {
            let entries: Vec<Value> = (0..)
                .zip(members)
                .map(|(i, m): (u32, _)| json!([m, i]))
                .collect();
            json!({"name": name, "entries": entries})
        });
        enums.collect()
    }

    /// Emits the names that the target uses for fields of the standard metadata.
    fn field_aliases(&self) -> Vec<Value> {
        let aliases = self.ir.aliases.iter();
        aliases
            .map(|(target, field)| json!([target, [crate::ir::STANDARD_METADATA, field]]))
            .collect()
    }

    /// Emits a source position, for the target's traces. The text is the first line at most, without the final
    /// semicolon.
    fn source(&self, span: Span) -> Value {
        let at = self.sources.line_col(span);
        let text = self.sources.snippet(span);
        let text = text.trim_end().trim_end_matches(';');
        let first = text.lines().next().unwrap_or_default();
        let mut fragment: String = first.chars().take(MAX_FRAGMENT).collect();
        if fragment.len() < text.len() {
            fragment.truncate(fragment.trim_end().len());
            fragment.push_str(" ...");
        }
        json!({
            "filename": at.file,
            "line": at.line,
            "column": at.col - 1,
            "source_fragment": fragment,
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

    fn deparser(&mut self, id: usize) -> Value {
        let deparser = &self.ir.deparsers[id];
        let may_branch = self.ir.architecture != Architecture::V1Model;
        let (mut order, mut others) = (Vec::new(), Vec::new());
        for s in &deparser.body {
            let is_allowed = match &s.kind {
                StKind::Emit(h) => {
                    order.push(h.clone());
                    continue;
                }
                StKind::If(..) | StKind::Labelled(..) => may_branch && !emits(s),
                StKind::Apply { .. } | StKind::Leave(_) | StKind::Exit => false,
                _ => true,
            };
            if is_allowed {
                others.push(s.clone());
            } else {
                self.diags.unsupported_hint(
                    s.span,
                    "this cannot be used in a deparser on this target",
                    "use emit calls only; remove headers in egress, with setInvalid()",
                );
            }
        }
        let primitives = self.primitives(&others);
        let mut d = json!({
            "name": deparser.name,
            "id": id,
            "source_info": self.source(deparser.span),
            "order": order,
        });
        if !primitives.is_empty() {
            d["primitives"] = Value::Array(primitives);
        }
        d
    }
}

/// Returns whether a statement emits headers.
fn emits(s: &St) -> bool {
    match &s.kind {
        StKind::Emit(_) => true,
        StKind::If(_, yes, no) => yes.iter().chain(no).any(emits),
        StKind::Labelled(_, inner) => inner.iter().any(emits),
        _ => false,
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

/// Returns a unit among an instance's arguments, as BMv2 writes it.
fn member(args: &[ObjectArg], i: usize) -> Value {
    match args.get(i) {
        Some(ObjectArg::Enum(n)) => json!(n.to_ascii_lowercase()),
        _ => json!("packets"),
    }
}

/// Returns a hash algorithm among an instance's arguments, as BMv2 names it.
fn algorithm(args: &[ObjectArg], i: usize) -> Value {
    let Some(ObjectArg::Enum(name)) = args.get(i) else {
        return json!("crc16");
    };
    json!(match name.as_str() {
        "ONES_COMPLEMENT16" => "csum16".to_owned(),
        "TARGET_DEFAULT" => "crc32".to_owned(),
        other => other.to_ascii_lowercase(),
    })
}
