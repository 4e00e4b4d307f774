// SPDX-License-Identifier: Apache-2.0
//! Emits the program's tables and their action profiles.

use std::collections::HashMap;

use num_bigint::BigInt;
use num_traits::ToPrimitive;
use serde_json::{Map, Value, json};

use super::expr::hex;
use super::graph::After;
use super::{Emitter, algorithm, int};
use crate::ir::{Ex, KeyMatch, ObjectArg, ObjectKind, Table};

/// The match kinds in ascending order: a table has the highest kind of its keys.
const KINDS: [&str; 4] = ["exact", "lpm", "ternary", "range"];

/// Maps match kinds that the target lacks: `optional` is a ternary match with an all-or-nothing mask, and the kinds of TNA
/// that only choose a memory are exact.
fn target_kind(match_kind: &str) -> &str {
    match match_kind {
        "optional" => "ternary",
        "atcam_partition_index" | "dleft_hash" => "exact",
        kind => kind,
    }
}

impl Emitter<'_> {
    pub(super) fn table_node(&self, index: usize, after: &After) -> Value {
        let t = &self.ir.tables[index];
        let keys: Vec<Value> = t
            .keys
            .iter()
            .map(|k| {
                let target = match &k.target {
                    Ex::Field { header, field, .. } => json!([header, field]),
                    _ => Value::Null,
                };
                json!({
                    "match_type": target_kind(&k.match_kind),
                    "name": k.name,
                    "target": target,
                    "mask": null,
                })
            })
            .collect();
        let names: Vec<&str> = t
            .actions
            .iter()
            .map(|a| self.ir.actions[a.action].name.as_str())
            .collect();
        let ids: Vec<usize> = t.actions.iter().map(|a| a.action).collect();
        let implementation = t.implementation.map(|o| &self.ir.objects[o]);
        let mut v = json!({
            "name": t.name,
            "id": 0,
            "source_info": self.source(t.decl.name.span),
            "key": keys,
            "match_type": self.match_type(t),
            "type": match implementation {
                None => "simple",
                Some(o) if o.kind == ObjectKind::ActionSelector => "indirect_ws",
                Some(_) => "indirect",
            },
        });
        if let Some(o) = t.implementation {
            v["action_profile"] = json!(self.ir.objects[self.ir.listed_profile(o)].name);
        }
        v["max_size"] = json!(t.size);
        v["with_counters"] = json!(t.counter.is_some());
        v["support_timeout"] = json!(t.support_timeout);
        v["direct_meters"] = json!(t.meter.map(|o| self.ir.objects[o].name.clone()));
        v["action_ids"] = json!(ids);
        v["actions"] = json!(names);
        let mut next = Map::new();
        let base = match after {
            After::Always(n) => {
                for name in &names {
                    next.insert((*name).to_string(), json!(n));
                }
                json!(n)
            }
            After::HitMiss(hit, miss) => {
                next.insert("__HIT__".into(), json!(hit));
                next.insert("__MISS__".into(), json!(miss));
                Value::Null
            }
            After::Actions(list) => {
                for (name, n) in names.iter().zip(list) {
                    next.insert((*name).to_string(), json!(n));
                }
                t.default
                    .as_ref()
                    .map_or(Value::Null, |d| json!(list[d.action]))
            }
        };
        v["base_default_next"] = base;
        v["next_tables"] = Value::Object(next);
        if (implementation.is_none() || self.ir.architecture.is_tofino())
            && let Some(d) = &t.default
        {
            v["default_entry"] = json!({
                "action_id": t.actions[d.action].action,
                "action_const": d.is_const,
                "action_data": d.args.iter().map(plain_hex).collect::<Vec<_>>(),
                "action_entry_const": d.is_const,
            });
        }
        if !t.entries.is_empty() {
            v["entries"] = self.entries(t);
        }
        v
    }

    fn match_type(&self, t: &Table) -> &'static str {
        let rank = t
            .keys
            .iter()
            .filter_map(|k| KINDS.iter().position(|n| *n == target_kind(&k.match_kind)))
            .max()
            .unwrap_or(0);
        let prefixes = t.keys.iter().filter(|k| k.match_kind == "lpm").count();
        if prefixes > 1 {
            self.diags.unsupported_hint(
                t.decl.name.span,
                format!(
                    "table '{}' has {prefixes} lpm keys: this target allows one",
                    t.name
                ),
                "make the others ternary",
            );
        }
        KINDS[rank]
    }

    fn entries(&self, t: &Table) -> Value {
        // On the target the smallest number wins; in the program the largest may win.
        let mut order: Vec<BigInt> = t
            .entries
            .iter()
            .filter_map(|e| e.priority.clone())
            .collect();
        order.sort();
        order.dedup();
        if self.largest_wins(t) {
            order.reverse();
        }
        let list: Vec<Value> = t
            .entries
            .iter()
            .enumerate()
            .map(|(i, e)| {
                let rank = match &e.priority {
                    Some(p) if !t.const_entries => order.iter().position(|o| o == p).unwrap_or(i),
                    _ => i,
                };
                let keys: Vec<Value> = e
                    .matches
                    .iter()
                    .zip(&t.keys)
                    .map(|(m, k)| {
                        let w = k.target.ty().width();
                        match m {
                            KeyMatch::Exact(v) => json!({"match_type": "exact", "key": hex(v, w)}),
                            KeyMatch::Lpm(v, len) => {
                                json!({"match_type": "lpm", "key": hex(v, w), "prefix_length": len})
                            }
                            KeyMatch::Ternary(v, m) => {
                                json!({"match_type": "ternary", "key": hex(v, w), "mask": hex(m, w)})
                            }
                            KeyMatch::Range(a, b) => {
                                json!({"match_type": "range", "start": hex(a, w), "end": hex(b, w)})
                            }
                        }
                    })
                    .collect();
                json!({
                    "source_info": self.source(e.span),
                    "match_key": keys,
                    "action_entry": {
                        "action_id": t.actions[e.action].action,
                        "action_data": e.args.iter().map(plain_hex).collect::<Vec<_>>(),
                    },
                    "priority": e.annotated_priority.as_ref().and_then(ToPrimitive::to_u64).unwrap_or(rank as u64 + 1),
                })
            })
            .collect();
        Value::Array(list)
    }

    fn largest_wins(&self, t: &Table) -> bool {
        let crate::ast::DeclKind::Table(d) = &t.decl.kind else {
            return true;
        };
        !d.properties.iter().any(|p| {
            &*p.name.name == "largest_priority_wins"
                && matches!(p.value.kind, crate::ast::ExprKind::Bool(false))
        })
    }

    /// Emits the action profiles of one pipeline's tables.
    pub(super) fn action_profiles(&mut self, placed: &HashMap<usize, After>) -> Vec<Value> {
        let mut seen = Vec::new();
        let mut out = Vec::new();
        for (i, t) in self.ir.tables.iter().enumerate() {
            let Some(o) = t.implementation else { continue };
            if !placed.contains_key(&i) || seen.contains(&o) {
                continue;
            }
            seen.push(o);
            let object = &self.ir.objects[o];
            let listed = &self.ir.objects[self.ir.listed_profile(o)];
            let mut p = json!({"name": listed.name, "id": self.next_profile});
            self.next_profile += 1;
            if object.kind == ObjectKind::ActionSelector {
                let (algorithm, members) = if self.ir.architecture.is_tofino() {
                    let (algorithm, members) = self.tofino_selector(object);
                    (json!(algorithm), members)
                } else {
                    (algorithm(&object.args, 0), int(&object.args, 1))
                };
                p["max_size"] = members;
                let input: Vec<Value> = t.selector_inputs.iter().map(|e| self.data(e)).collect();
                p["selector"] = json!({"algo": algorithm, "input": input});
            } else {
                p["max_size"] = match object.args.first() {
                    Some(ObjectArg::Int(_)) => int(&object.args, 0),
                    _ => json!(0),
                };
            }
            out.push(p);
        }
        out
    }
}

fn plain_hex(v: &BigInt) -> String {
    format!("0x{}", v.to_str_radix(16))
}
