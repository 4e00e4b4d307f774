// SPDX-License-Identifier: Apache-2.0
//! Loads expressions: JSON to [`Node`](crate::program::expr::Node)s and [`Cond`](crate::program::expr::Cond)s in the
//! narrowest sufficient arithmetic.

mod condition;
mod operation;
mod value;

use std::collections::HashMap;

use serde_json::Value as Json;

use super::cursor::Cursor;
use super::headers::Names;
use crate::error::LoadError;
use crate::phv::Field;
use crate::program::expr::{DynField, HeaderRef, UnionRef};
use operation::filled;
use value::constant;

type Result<T> = std::result::Result<T, LoadError>;

/// The names that an expression may use.
pub(crate) struct Scope<'a> {
    pub(crate) names: &'a Names,
    /// Registers: index and width by name.
    pub(crate) registers: &'a HashMap<String, (u32, u32)>,
    /// Parameters of the enclosing action.
    pub(crate) params: &'a [Param],
}

/// The position of an action's parameter in the argument limbs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Param {
    /// First 64-bit limb.
    pub(crate) first: u32,
    /// Width in bits.
    pub(crate) width: u32,
}

impl Param {
    pub(crate) fn limbs(self) -> u32 {
        self.width.div_ceil(64).max(1)
    }
}

/// Returns true if an expression in a document reads a register. Most programs read registers in steps of actions.
pub(super) fn reads_registers(json: &Json) -> bool {
    match json {
        Json::Array(items) => items.iter().any(reads_registers),
        Json::Object(members) => {
            members.get("type").is_some_and(|kind| kind == "register")
                || members.values().any(reads_registers)
        }
        _ => false,
    }
}

impl Scope<'_> {
    /// Returns the operand inside any number of `expression` wrappers.
    fn unwrap<'c>(&self, c: &Cursor<'c>) -> Result<(Cursor<'c>, Cursor<'c>, &'c str)> {
        let mut c = c.clone();
        loop {
            let kind = c.get("type").str()?;
            let value = c.get("value");
            if kind != "expression" {
                return Ok((c, value, kind));
            }
            if !value.get("op").is_null() {
                return Ok((c, value.clone(), kind));
            }
            c = value;
        }
    }

    pub(crate) fn field(&self, c: &Cursor) -> Result<Field> {
        let [header, field] = c.tuple()?;
        let h = self.header_id(&header)?;
        let layout = &self.names.layout;
        let name = field.str()?;
        layout.headers[h as usize].field(name).ok_or_else(|| {
            field.error(format!(
                "header {} has no field {name}",
                header.str().unwrap_or("")
            ))
        })
    }

    pub(crate) fn header_id(&self, c: &Cursor) -> Result<u32> {
        find(&self.names.headers, c, "header")
    }

    fn stack_field(&self, c: &Cursor) -> Result<(DynField, Field)> {
        let [stack, field] = c.tuple()?;
        let s = find(&self.names.stacks, &stack, "header stack")?;
        self.dyn_field(HeaderRef::Last(s), &field)
    }

    /// Returns a field, by name or number, of a computed header, with its shape in any of the headers.
    fn dyn_field(&self, header: HeaderRef, c: &Cursor) -> Result<(DynField, Field)> {
        let layout = &self.names.layout;
        let sample = &layout.headers[self.sample(&header) as usize];
        let index = match c.json.as_str() {
            Some(name) => sample.names.iter().position(|n| n == name),
            None => Some(c.usize()?),
        };
        let index = index.filter(|&i| i < sample.fields.len());
        let index = index.ok_or_else(|| {
            c.error(format!(
                "header type {} does not have this field",
                sample.type_name
            ))
        })?;
        Ok((DynField { header, index }, sample.fields[index]))
    }

    /// Returns a header of the type that `header` denotes.
    fn sample(&self, header: &HeaderRef) -> u32 {
        let layout = &self.names.layout;
        match header {
            HeaderRef::Static(h) => *h,
            HeaderRef::Element(e) => layout.stacks[e.0 as usize].elements[0],
            HeaderRef::Last(s) => layout.stacks[*s as usize].elements[0],
            HeaderRef::Member(u, m) => {
                layout.unions[self.sample_union(u) as usize].members[*m as usize]
            }
        }
    }

    fn sample_union(&self, u: &UnionRef) -> u32 {
        match u {
            UnionRef::Static(u) => *u,
            UnionRef::Element(e) => self.names.layout.union_stacks[e.0 as usize].elements[0],
            UnionRef::Last(s) => self.names.layout.union_stacks[*s as usize].elements[0],
        }
    }

    pub(crate) fn header(&self, c: &Cursor) -> Result<HeaderRef> {
        let (c, value, kind) = self.unwrap(c)?;
        match kind {
            "header" => Ok(HeaderRef::Static(self.header_id(&value)?)),
            "expression" => self.computed_header(&value),
            "stack_field" if value.at(1).json == "last" => {
                let s = find(&self.names.stacks, &value.at(0), "header stack")?;
                Ok(HeaderRef::Last(s))
            }
            "stack_field" if value.at(1).json == "next" => {
                let s = find(&self.names.stacks, &value.at(0), "header stack")?;
                let next = filled(self.names.layout.stacks[s as usize].next);
                Ok(HeaderRef::Element(Box::new((s, next.into64()))))
            }
            _ => Err(c.error("expected a header")),
        }
    }

    /// Returns the header that an operation denotes.
    fn computed_header(&self, value: &Cursor) -> Result<HeaderRef> {
        match value.get("op").json.as_str() {
            Some("dereference_header_stack") => {
                let (_, stack, _) = self.unwrap(&value.get("left"))?;
                let s = find(&self.names.stacks, &stack, "header stack")?;
                let index = self.value(&value.get("right"), None)?;
                if let Some(i) = constant(&index)
                    && let Some(&h) = self.names.layout.stacks[s as usize]
                        .elements
                        .get(i as usize)
                {
                    return Ok(HeaderRef::Static(h));
                }
                Ok(HeaderRef::Element(Box::new((s, index.into64()))))
            }
            Some("access_union_header") => {
                let u = self.union(&value.get("left"))?;
                let right = value.get("right");
                let sample = self.sample_union(&u) as usize;
                let member = right.u32()?;
                if member as usize >= self.names.layout.unions[sample].members.len() {
                    return Err(right.error("the member's index is beyond the union's last member"));
                }
                Ok(HeaderRef::Member(u, member))
            }
            _ => Err(value.error("expected a header")),
        }
    }

    pub(crate) fn union(&self, c: &Cursor) -> Result<UnionRef> {
        let (c, value, kind) = self.unwrap(c)?;
        match (kind, value.get("op").json.as_str()) {
            ("header_union", _) => Ok(UnionRef::Static(find(
                &self.names.unions,
                &value,
                "header union",
            )?)),
            ("expression", Some("dereference_union_stack")) => {
                let (_, stack, _) = self.unwrap(&value.get("left"))?;
                let s = find(&self.names.union_stacks, &stack, "header union stack")?;
                let index = self.value(&value.get("right"), None)?;
                Ok(UnionRef::Element(Box::new((s, index.into64()))))
            }
            _ => Err(c.error("expected a header union")),
        }
    }

    /// Returns a field of the last filled element of a stack of unions.
    pub(crate) fn union_stack_field(&self, c: &Cursor) -> Result<(DynField, Field)> {
        let [stack, member, field] = c.tuple()?;
        let s = find(&self.names.union_stacks, &stack, "header union stack")?;
        let m = self.union_member(s, &member)?;
        self.dyn_field(HeaderRef::Member(UnionRef::Last(s), m), &field)
    }

    pub(crate) fn union_member(&self, stack: u32, member: &Cursor) -> Result<u32> {
        let sample = self.names.layout.union_stacks[stack as usize].elements[0] as usize;
        let name = member.str()?;
        let position = self.names.union_members[sample]
            .iter()
            .position(|n| n == name);
        position
            .map(|p| p as u32)
            .ok_or_else(|| member.error(format!("the union has no member {name}")))
    }

    /// Returns the field that is assigned to, with its shape.
    pub(crate) fn lvalue(
        &self,
        c: &Cursor,
    ) -> Result<(std::result::Result<Field, DynField>, Field)> {
        let (c, value, kind) = self.unwrap(c)?;
        match (kind, value.get("op").json.as_str()) {
            ("field", _) if value.at(0).json.is_object() => Ok(known(self.computed_field(&value)?)),
            ("field", _) => self.field(&value).map(|f| (Ok(f), f)),
            ("stack_field", _) => self.stack_field(&value).map(|(d, f)| (Err(d), f)),
            ("union_stack_field", _) => self.union_stack_field(&value).map(|(d, f)| (Err(d), f)),
            ("expression", Some("access_field")) => Ok(known(self.access_field(&value)?)),
            _ => Err(c.error("expected a field to write to")),
        }
    }

    /// Returns a field, by name, of the header that an operation denotes.
    fn computed_field(&self, c: &Cursor) -> Result<(DynField, Field)> {
        let [header, field] = c.tuple()?;
        self.dyn_field(self.computed_header(&header)?, &field)
    }

    fn access_field(&self, value: &Cursor) -> Result<(DynField, Field)> {
        let header = self.header(&value.get("left"))?;
        self.dyn_field(header, &value.get("right"))
    }
}

/// Resolves a computed field whose header is in fact known.
fn known((d, f): (DynField, Field)) -> (std::result::Result<Field, DynField>, Field) {
    match d.header {
        HeaderRef::Static(_) => (Ok(f), f),
        _ => (Err(d), f),
    }
}

pub(crate) fn find<T: Copy>(map: &HashMap<String, T>, c: &Cursor, what: &str) -> Result<T> {
    let name = c.str()?;
    map.get(name)
        .copied()
        .ok_or_else(|| c.error(format!("no {what} named {name}")))
}
