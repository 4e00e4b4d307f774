// SPDX-License-Identifier: Apache-2.0
//! Properties of tables.

use num_traits::ToPrimitive;

use super::Lower;
use super::value::Val;
use crate::annotation::name_annotation;
use crate::ast::{Expr, ExprKind, Property, TableDecl};
use crate::diag::Warning;
use crate::ir::{Ex, ObjectKind, Table};

/// Properties without effect on this target, besides those of PSA.
const IGNORED: [&str; 5] = [
    "largest_priority_wins",
    "priority_delta",
    "default_idle_timeout_for_data_plane_added_entries",
    "add_on_miss",
    "pna_idle_timeout",
];

/// Properties of TNA that choose how a table is stored.
const IGNORED_TOFINO: [&str; 4] = ["alpm", "atcam", "proxy_hash", "requires_versioning"];

/// The objects that a property may name.
struct Objects {
    kinds: &'static [ObjectKind],
    /// The names of their types.
    names: &'static str,
    /// Kinds of objects that the property may name in vain: they do not belong to a single table.
    shared: &'static [ObjectKind],
}

impl<'a> Lower<'a> {
    pub(super) fn properties(&mut self, t: &'a TableDecl, index: usize) {
        for p in &t.properties {
            self.property(p, index);
        }
        self.implementation(t, index);
        self.priorities(t, index);
    }

    fn property(&mut self, p: &'a Property, index: usize) {
        let is_tofino = self.ir.architecture.is_tofino();
        if let Some(objects) = objects(&p.name.name, is_tofino) {
            self.object_property(p, index, &objects);
            return;
        }
        match &*p.name.name {
            "size" => match self.number(&p.value).and_then(|n| n.to_u64()) {
                Some(0) => {}
                Some(n) => self.ir.tables[index].size = n,
                None => self.error(
                    p.value.span,
                    "the size must be a number known at compile time",
                ),
            },
            "support_timeout" | "idle_timeout_with_control" => self.timeout_property(p, index),
            "idle_timeout" if is_tofino => self.timeout_property(p, index),
            "psa_idle_timeout" => {
                let value = self.scalar(&p.value);
                let ty = self.type_of(p.value.id);
                if let Ex::Const(n, _) = value {
                    self.ir.tables[index].support_timeout =
                        self.enum_member(&ty, &n).as_deref() == Some("NOTIFY_CONTROL");
                }
            }
            other if other.starts_with("psa_") || IGNORED.contains(&other) => {}
            other if is_tofino && IGNORED_TOFINO.contains(&other) => {}
            other => self.diags.warn(
                Warning::Ignored,
                p.name.span,
                format!("unknown table property '{other}' is ignored"),
            ),
        }
    }

    fn timeout_property(&mut self, p: &'a Property, index: usize) {
        if self.scalar(&p.value).as_bool() == Some(true) {
            self.ir.tables[index].support_timeout = true;
        }
    }

    fn object_property(&mut self, p: &'a Property, index: usize, objects: &Objects) {
        let o = match self.eval(&p.value) {
            Val::Object(o) if objects.kinds.contains(&self.ir.objects[o].kind) => o,
            Val::Object(o) if objects.shared.contains(&self.ir.objects[o].kind) => return,
            _ => {
                self.unsupported(
                    p.value.span,
                    format!("the {} must be of {}", p.name.name, objects.names),
                );
                return;
            }
        };
        let others = &self.ir.tables[..index];
        if others.iter().any(|t| t.has_direct(o)) {
            self.error(p.value.span, "this already belongs to another table");
        }
        if self.ir.objects[o].name.is_empty() {
            // Written into the table: named after it.
            match name_annotation(&p.annos) {
                Some(name) => self.ir.objects[o].name = name,
                None => self.diags.error_hint(
                    p.name.span,
                    format!("the {} of the table needs a name", p.name.name),
                    "write @name(\"...\") before it, for the control plane",
                ),
            }
        }
        attach(&mut self.ir.tables[index], o, self.ir.objects[o].kind);
    }

    /// Checks the action profile or selector of a table.
    fn implementation(&mut self, t: &'a TableDecl, index: usize) {
        let Some(o) = self.ir.tables[index].implementation else {
            return;
        };
        let default = t.default_action.as_ref();
        let is_tofino = self.ir.architecture.is_tofino();
        if !is_tofino && default.is_some_and(|d| !is_no_action(&d.expr)) {
            self.diags.warn_hint(
                Warning::Unsupported,
                self.ir.tables[index].decl.name.span,
                "the target does not run default actions in a table with an action profile",
                "run the action after apply(), on a miss",
            );
        }
        let selector = self.ir.objects[o].kind == ObjectKind::ActionSelector;
        if !selector && !self.ir.tables[index].selector_inputs.is_empty() {
            self.diags.warn(
                Warning::Invalid,
                t.keys
                    .iter()
                    .flatten()
                    .next()
                    .map_or(self.span, |k| k.expr.span),
                "selector keys need an action_selector implementation",
            );
        }
    }
}

fn attach(table: &mut Table, object: usize, kind: ObjectKind) {
    match kind {
        ObjectKind::ActionProfile | ObjectKind::ActionSelector => {
            table.implementation = Some(object);
        }
        ObjectKind::DirectCounter => table.counter = Some(object),
        ObjectKind::DirectMeter => table.meter = Some(object),
        _ => table.attached.push(object),
    }
}

/// Returns the objects that a property with this name takes; `None` if it takes other values.
fn objects(property: &str, is_tofino: bool) -> Option<Objects> {
    use ObjectKind as K;
    let with = |kinds, names| Objects {
        kinds,
        names,
        shared: &[],
    };
    Some(match (property, is_tofino) {
        ("implementation", false) => with(
            &[K::ActionProfile, K::ActionSelector],
            "action_profile or action_selector",
        ),
        ("counters", false) => with(&[K::DirectCounter], "direct_counter"),
        ("meters", false) => with(&[K::DirectMeter], "direct_meter"),
        ("psa_implementation", _) => with(
            &[K::ActionProfile, K::ActionSelector],
            "ActionProfile or ActionSelector",
        ),
        ("psa_direct_counter", _) => with(&[K::DirectCounter], "DirectCounter"),
        ("psa_direct_meter", _) => with(&[K::DirectMeter], "DirectMeter"),
        ("implementation", true) => Objects {
            kinds: &[K::ActionProfile, K::ActionSelector],
            names: "ActionProfile, ActionSelector, Alpm or Atcam",
            shared: &[K::MatchAlgorithm],
        },
        ("counters", true) => Objects {
            kinds: &[K::DirectCounter],
            names: "DirectCounter or Counter",
            shared: &[K::Counter],
        },
        ("meters" | "filters", true) => Objects {
            kinds: &[K::DirectMeter, K::DirectLpf, K::DirectWred],
            names: "DirectMeter, DirectLpf, DirectWred, or one of them with an index",
            shared: &[K::Meter, K::Lpf, K::Wred],
        },
        ("registers", true) => Objects {
            kinds: &[K::DirectRegister],
            names: "DirectRegister or Register",
            shared: &[K::Register],
        },
        _ => return None,
    })
}

fn is_no_action(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Name { name, .. } => &**name == "NoAction",
        ExprKind::Call { callee, .. } => is_no_action(callee),
        _ => false,
    }
}
