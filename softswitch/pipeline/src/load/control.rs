// SPDX-License-Identifier: Apache-2.0
//! Loads pipelines: tables, action profiles, conditions and the control flow between them.

use std::collections::HashMap;

use super::architecture::{BlockKind, BlockNames};
use super::call::Objects;
use super::cursor::Cursor;
use super::expr::{Param, Scope, find};
use super::{filters, registers};
use crate::error::LoadError;
use crate::info::{
    ActionId, Implementation, Info, KeyInfo, MatchKind, ProfileId, ProfileInfo, TableInfo,
};
use crate::phv::{Place, mask64};
use crate::program::calculation::Calculation;
use crate::program::call::Call;
use crate::program::control::{CompiledTable, ControlNode, DirectMeter, END, Next, order};
use crate::program::key::KeyShape;
use crate::program::key_part::{ComputedPart, KeyPart};
use crate::program::op::Target;
use crate::value::Value;

type Result<T> = std::result::Result<T, LoadError>;

/// The parts of a key: fields known at load time, and fields of headers computed at run time.
type KeyParts = (Vec<KeyPart>, Vec<ComputedPart>);

/// Maximum table size; more entries would not fit in memory.
const MAX_TABLE: usize = 1 << 30;

#[derive(Default)]
pub(crate) struct Control {
    pub(crate) nodes: Vec<ControlNode>,
    /// The first node of each control, in the architecture's order.
    pub(crate) firsts: Vec<u32>,
    pub(crate) tables: Vec<CompiledTable>,
    pub(crate) selectors: Vec<Option<Calculation>>,
}

impl Control {
    /// Returns for each node whether a loop begins there.
    pub(crate) fn loop_heads(&self) -> Vec<bool> {
        let mut heads = vec![false; self.nodes.len()];
        for first in &self.firsts {
            for head in order(&self.nodes, &self.tables, *first).loop_heads {
                heads[head as usize] = true;
            }
        }
        heads
    }
}

pub(crate) fn load(
    root: &Cursor,
    objects: &Objects,
    action_ids: &HashMap<u64, u32>,
    params: &[Vec<Param>],
    info: &mut Info,
) -> Result<Control> {
    let names = BlockNames::of(objects.architecture);
    let mut l = Loader {
        root,
        objects,
        action_ids,
        params,
        info,
        profiles: HashMap::new(),
        control: Control {
            firsts: vec![END; names.count(BlockKind::Control)],
            ..Control::default()
        },
    };
    for p in root.get("pipelines").items()? {
        let number = names.position(BlockKind::Control, &p)?;
        l.control.firsts[number] = l.pipeline(&p)?;
    }
    Ok(l.control)
}

pub(super) struct Loader<'a> {
    root: &'a Cursor<'a>,
    objects: &'a Objects<'a>,
    action_ids: &'a HashMap<u64, u32>,
    params: &'a [Vec<Param>],
    info: &'a mut Info,
    profiles: HashMap<String, u32>,
    control: Control,
}

/// Indices of the control nodes of one pipeline, by name.
type Index = HashMap<String, u32>;

fn next(index: &Index, c: &Cursor) -> Result<u32> {
    match c.opt_str()? {
        Some(_) => find(index, c, "table, conditional or action call"),
        None => Ok(END),
    }
}

impl Loader<'_> {
    fn pipeline(&mut self, p: &Cursor) -> Result<u32> {
        for profile in p.get("action_profiles").items()? {
            self.profile(&profile)?;
        }
        let tables = p.get("tables").items()?;
        let conditionals = p.get("conditionals").items()?;
        let calls = p.get("action_calls").items()?;
        let first = self.control.nodes.len() as u32;
        let mut index = Index::new();
        for (i, node) in tables.iter().chain(&conditionals).chain(&calls).enumerate() {
            index.insert(node.get("name").str()?.to_owned(), first + i as u32);
        }
        for t in &tables {
            let node = self.table(t, &index)?;
            self.control.nodes.push(node);
        }
        for c in &conditionals {
            let scope = self.scope(&[]);
            let cond = scope.cond(&c.get("expression"))?;
            let then = next(&index, &c.get("true_next"))?;
            let other = next(&index, &c.get("false_next"))?;
            self.control
                .nodes
                .push(ControlNode::Condition { cond, then, other });
        }
        for c in &calls {
            let action = self.action(&c.get("action_id"))?;
            let call = self.call(action, &[], &c.get("action_id"))?;
            let next = next(&index, &c.get("next_node"))?;
            self.control.nodes.push(ControlNode::Call { call, next });
        }
        next(&index, &p.get("init_table"))
    }

    fn scope<'s>(&'s self, params: &'s [Param]) -> Scope<'s> {
        Scope {
            names: self.objects.names,
            registers: self.objects.registers,
            params,
        }
    }

    fn profile(&mut self, p: &Cursor) -> Result<()> {
        let name = p.get("name").str()?.to_owned();
        let selector = p.get("selector");
        let calculation = match selector.is_null() {
            true => None,
            false => Some(super::calculation(&selector, self.objects.names)?),
        };
        let size = p.get("max_size");
        let size = if size.is_null() { 0 } else { size.usize()? };
        self.profiles
            .insert(name.clone(), self.info.profiles.len() as u32);
        self.info.profiles.push(ProfileInfo {
            name,
            size,
            selector: calculation.is_some(),
        });
        self.control.selectors.push(calculation);
        Ok(())
    }

    pub(super) fn action(&self, c: &Cursor) -> Result<u32> {
        let id = c.u64()?;
        self.action_ids
            .get(&id)
            .copied()
            .ok_or_else(|| c.error(format!("no action with id {id}")))
    }

    /// Loads an action call, with its arguments in limbs.
    pub(super) fn call(&self, action: u32, args: &[Value], c: &Cursor) -> Result<Call> {
        let params = &self.params[action as usize];
        if params.len() != args.len() {
            let message = format!(
                "the action has {} parameters, but {} arguments are given",
                params.len(),
                args.len()
            );
            return Err(c.error(message));
        }
        crate::program::call::limbs(params.iter().map(|p| p.width), args)
            .map(|args| Call { action, args })
            .ok_or_else(|| c.error("an argument is wider than its parameter"))
    }

    pub(super) fn args(&self, c: &Cursor) -> Result<Vec<Value>> {
        let items = c.items()?;
        items
            .iter()
            .map(|a| Ok(Value::from_be_bytes(&a.hex_bytes()?)))
            .collect()
    }

    fn table(&mut self, t: &Cursor, index: &Index) -> Result<ControlNode> {
        let name = t.get("name").str()?.to_owned();
        let (key, shape, (parts, computed_key)) = self.key(t, &name)?;
        let actions = self.actions(t)?;
        let next = self.next(t, &actions, index)?;
        let entries = t.get("entries").items()?;
        let size = t.get("max_size");
        let size = if size.is_null() {
            entries.len()
        } else {
            size.usize()?.max(entries.len())
        };
        if size > MAX_TABLE {
            return Err(t.get("max_size").error(format!(
                "the table is too large: at most {MAX_TABLE} entries"
            )));
        }
        let profile = match t.get("type").opt_str()?.unwrap_or("simple") {
            "simple" => None,
            "indirect" | "indirect_ws" => Some(find(
                &self.profiles,
                &t.get("action_profile"),
                "action profile",
            )?),
            other => return Err(t.get("type").error(format!("unknown table type {other}"))),
        };
        let default = t.get("default_entry");
        let const_default = default.get("action_const").bool_or(false)?
            || default.get("action_entry_const").bool_or(false)?;
        let default = match default.is_null() {
            true => None,
            false => {
                let action = self.action(&default.get("action_id"))?;
                let data = default.get("action_data");
                Some(self.call(action, &self.args(&data)?, &data)?)
            }
        };
        let (meter, meter_name) = self.direct_meter(t)?;
        let direct_counter_name = self.direct_counter(&name)?;
        let has_direct_state =
            registers::has_direct(self.root, &name)? || filters::has_direct(self.root, &name)?;
        let id = t.get("id");
        let info = TableInfo {
            id: if id.is_null() { 0 } else { id.u32()? },
            needs_priority: shape.needs_priority,
            key,
            size,
            implementation: profile.map_or(Implementation::Direct, |p| {
                Implementation::Profile(ProfileId(p))
            }),
            const_entries: !entries.is_empty(),
            const_default,
            direct_counter: t.get("with_counters").bool_or(false)?,
            direct_counter_name,
            direct_meter: meter.as_ref().map(|m| m.unit),
            direct_meter_name: meter_name,
            idle_timeout: t.get("support_timeout").bool_or(false)?,
            actions,
            name,
        };
        let entries = self.entries(&entries, &info, &shape)?;
        let number = self.control.tables.len() as u32;
        // Compilers write the call of an action as a table without a key.
        let plain = info.key.is_empty() && !info.direct_counter && meter.is_none();
        let node = match (&default, &next) {
            (Some(call), Next::Always(next)) if plain && const_default => ControlNode::Call {
                call: call.clone(),
                next: *next,
            },
            _ => ControlNode::Table(number),
        };
        self.control.tables.push(CompiledTable {
            shape,
            key: parts,
            computed_key,
            next,
            profile,
            meter,
            has_direct_state,
            entries,
            default,
        });
        self.info.tables.push(info);
        Ok(node)
    }

    fn key(&self, t: &Cursor, table: &str) -> Result<(Vec<KeyInfo>, KeyShape, KeyParts)> {
        let scope = self.scope(&[]);
        let (mut infos, mut fields) = (Vec::new(), Vec::new());
        for k in t.get("key").items()? {
            let target = k.get("target");
            let kind = match k.get("match_type").str()? {
                "exact" => MatchKind::Exact,
                "lpm" => MatchKind::Lpm,
                "ternary" => MatchKind::Ternary,
                "range" => MatchKind::Range,
                "optional" => MatchKind::Optional,
                "valid" => MatchKind::Valid,
                other => {
                    return Err(k
                        .get("match_type")
                        .error(format!("unknown match kind {other}")));
                }
            };
            let (place, field, default_name) =
                if kind == MatchKind::Valid && target.json.is_string() {
                    let h = &self.objects.names.layout.headers[scope.header_id(&target)? as usize];
                    let valid = h.field("$valid$").expect("every header has it");
                    (Ok(valid), valid, h.name.clone())
                } else if target.json.is_object() {
                    let (place, field) = scope.lvalue(&target)?;
                    (place, field, k.get("name").str()?.to_owned())
                } else {
                    let name = format!("{}.{}", target.at(0).str()?, target.at(1).str()?);
                    let field = scope.field(&target)?;
                    (Ok(field), field, name)
                };
            if matches!(field.place, Place::Varbit { .. }) {
                return Err(target.error("a variable-length field cannot be a match key"));
            }
            let mask = match k.get("mask").is_null() {
                true => None,
                false => Some(k.get("mask").hex()?.magnitude().to_u64_digits()),
            };
            let name = k.get("name").opt_str()?.map_or(default_name, str::to_owned);
            infos.push(KeyInfo {
                name,
                kind,
                width: field.width,
            });
            fields.push((place, field, mask));
        }
        if infos.iter().filter(|k| k.kind == MatchKind::Lpm).count() > 1 {
            return Err(t.get("key").error("a table may have at most one lpm field"));
        }
        let shape = KeyShape::new(table, &infos);
        let (mut parts, mut computed) = KeyParts::default();
        for (i, (place, field, mask)) in fields.into_iter().enumerate() {
            let part = KeyPart::new(field, shape.slot(i), mask);
            match place {
                Ok(_) => parts.push(part),
                Err(field) => computed.push(ComputedPart { field, part }),
            }
        }
        Ok((infos, shape, (parts, computed)))
    }

    fn actions(&self, t: &Cursor) -> Result<Vec<(String, ActionId)>> {
        let mut actions = Vec::new();
        for a in t.get("action_ids").items()? {
            let id = self.action(&a)?;
            actions.push((self.info.actions[id as usize].name.clone(), ActionId(id)));
        }
        if t.get("action_ids").is_null() {
            for a in t.get("actions").items()? {
                let name = a.str()?;
                let id = self
                    .info
                    .action(name)
                    .ok_or_else(|| a.error(format!("no action {name}")))?;
                actions.push((name.to_owned(), id));
            }
        }
        Ok(actions)
    }

    fn next(&self, t: &Cursor, actions: &[(String, ActionId)], index: &Index) -> Result<Next> {
        let tables = t.get("next_tables");
        let base = next(index, &t.get("base_default_next"))?;
        if tables.json.get("__HIT__").is_some() || tables.json.get("__MISS__").is_some() {
            let (hit, miss) = (tables.get("__HIT__"), tables.get("__MISS__"));
            return Ok(Next::HitMiss(next(index, &hit)?, next(index, &miss)?));
        }
        let mut by_action = Vec::new();
        for (name, id) in actions {
            by_action.push((id.0, next(index, &tables.get(name))?));
        }
        if by_action.iter().all(|&(_, n)| n == base) {
            return Ok(Next::Always(base));
        }
        Ok(Next::ByAction(by_action, base))
    }

    fn direct_meter(&self, t: &Cursor) -> Result<(Option<DirectMeter>, Option<String>)> {
        let Some(name) = t.get("direct_meters").opt_str()? else {
            return Ok((None, None));
        };
        for m in self.root.get("meter_arrays").items()? {
            if m.get("name").json == name {
                let f = self.scope(&[]).field(&m.get("result_target"))?;
                let target = match f.place {
                    Place::Word(w) => Target::Word(w, mask64(f.width)),
                    _ => Target::Field(f),
                };
                let meter = DirectMeter {
                    unit: super::meter_unit(&m)?,
                    to: target,
                    codes: self.objects.architecture.color_codes(),
                };
                return Ok((Some(meter), Some(name.to_owned())));
            }
        }
        Err(t
            .get("direct_meters")
            .error(format!("no meter array {name}")))
    }

    fn direct_counter(&self, table: &str) -> Result<Option<String>> {
        for c in self.root.get("counter_arrays").items()? {
            if c.get("is_direct").bool_or(false)? && c.get("binding").json == table {
                return Ok(Some(c.get("name").str()?.to_owned()));
            }
        }
        Ok(None)
    }
}
