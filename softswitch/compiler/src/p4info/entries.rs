// SPDX-License-Identifier: Apache-2.0
//! The entries that the program gives its tables, as a P4Runtime `WriteRequest`.

use num_bigint::BigInt;
use num_traits::Zero;

use super::ids::Kind;
use super::text::Message;
use super::{Emitter, bytes};
use crate::ir::{Entry, KeyMatch, Table};
use crate::lower::ones;

impl Emitter<'_> {
    /// One `INSERT` for each entry, in the order of the tables.
    pub(super) fn entries(&self) -> Message {
        let mut m = Message::default();
        for t in self.listed_tables() {
            for i in 0..t.entries.len() {
                let mut entity = Message::default();
                entity.message("table_entry", self.entry(t, i));
                let mut update = Message::default();
                update.raw("type", "INSERT");
                update.message("entity", entity);
                m.message("updates", update);
            }
        }
        m
    }

    fn entry(&self, t: &Table, index: usize) -> Message {
        let e = &t.entries[index];
        let mut m = Message::default();
        m.number("table_id", self.symbols.id(Kind::Table, &t.name));
        for (i, (key, set)) in t.keys.iter().zip(&e.matches).enumerate() {
            if let Some((kind, part)) = field_match(&key.match_kind, set, key.target.ty().width()) {
                let mut f = Message::default();
                f.number("field_id", i as u32 + 1);
                f.message(kind, part);
                m.message("match", f);
            }
        }
        let mut outer = Message::default();
        outer.message("action", self.entry_action(t, e));
        m.message("action", outer);
        let ordered = t
            .keys
            .iter()
            .any(|k| matches!(k.match_kind.as_str(), "ternary" | "range" | "optional"));
        if ordered {
            // Of constant entries the first one wins, and 1 is the lowest priority.
            let priority = match &e.priority {
                Some(p) if !t.const_entries => p.clone(),
                _ => BigInt::from(t.entries.len() - index),
            };
            m.raw("priority", &priority.to_string());
        }
        if e.is_const {
            m.raw("is_const", "true");
        }
        m
    }

    fn entry_action(&self, t: &Table, e: &Entry) -> Message {
        let action = &self.ir.actions[t.actions[e.action].action];
        let mut m = Message::default();
        m.number("action_id", self.symbols.id(Kind::Action, &action.name));
        for (i, v) in e.args.iter().enumerate() {
            let width = action.params.get(i).map_or(8, |(_, s)| s.width());
            let mut p = Message::default();
            p.number("param_id", i as u32 + 1);
            p.bytes("value", &bytes(v, width));
            m.message("params", p);
        }
        m
    }
}

/// One field of an entry; `None` if the entry takes every value of it.
fn field_match(kind: &str, set: &KeyMatch, width: u32) -> Option<(&'static str, Message)> {
    let value = |v: &BigInt| bytes(v, width);
    let mut m = Message::default();
    let name = match set {
        KeyMatch::Exact(v) => {
            m.bytes("value", &value(v));
            "exact"
        }
        KeyMatch::Lpm(_, 0) => return None,
        KeyMatch::Lpm(v, len) => {
            m.bytes("value", &value(v));
            m.number("prefix_len", *len);
            "lpm"
        }
        KeyMatch::Ternary(_, mask) if mask.is_zero() => return None,
        KeyMatch::Ternary(v, _) if kind == "optional" => {
            m.bytes("value", &value(v));
            "optional"
        }
        KeyMatch::Ternary(v, mask) => {
            m.bytes("value", &value(v));
            m.bytes("mask", &value(mask));
            "ternary"
        }
        KeyMatch::Range(low, high) if low.is_zero() && *high == ones(width) => return None,
        KeyMatch::Range(low, high) => {
            m.bytes("low", &value(low));
            m.bytes("high", &value(high));
            "range"
        }
    };
    Some((name, m))
}
