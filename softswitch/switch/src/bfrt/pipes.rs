// SPDX-License-Identifier: Apache-2.0
//! The pipes that requests name.

use softswitch_pipeline::PipeSet;

use super::data::Data;
use super::link::Object;
use super::program::{ENTRY_SCOPE, Program};
use super::schema::Table;
use super::state::State;
use super::tables::{Access, Query, Row};
use super::target::ALL_PIPES;
use crate::p4rt::entity::Op;
use crate::p4rt::error::{P4Error, P4Result};
use crate::proto::bfrt::mode::{PredefinedMode, Scope};
use crate::proto::bfrt::table_attribute::Attribute;

/// Bits of a scope in the attribute of a table. Each byte is a set of pipes with the same entries.
const SCOPE_BITS: u32 = 8;

/// Returns the match-action table whose scope a table has: itself, or the first one that uses an action profile.
fn scope_owner<'a>(program: &'a Program, table: &'a Table) -> Option<&'a Table> {
    let own = match program.object(table) {
        Object::Match(_) => return Some(table),
        Object::Members(profile, _) | Object::Groups(profile) => *profile,
        _ => return None,
    };
    let uses = |table: &&Table| matches!(program.object(table), Object::Match(user) if user.profile == Some(own));
    program.schema.tables.values().find(uses)
}

/// Returns the scope of a table's entries, if it is not all pipes.
fn table_scope(state: &State, table: &Table) -> Option<Scope> {
    let attribute = state.attribute(table.id, ENTRY_SCOPE);
    let Some(Attribute::EntryScope(scope)) = attribute else {
        return None;
    };
    let scope = scope.pipe_scope?.scope?;
    (scope != Scope::Predef(PredefinedMode::All.into())).then_some(scope)
}

/// Returns the pipes with the same entries as a pipe.
fn same_entries(scope: Scope, pipe: u32) -> PipeSet {
    let Scope::UserDefined(scopes) = scope else {
        return PipeSet::one(pipe);
    };
    let scopes = scopes.to_le_bytes().map(|scope| {
        let contains = |pipe: &u32| scope >> pipe & 1 == 1;
        (0..SCOPE_BITS).filter(contains).collect::<PipeSet>()
    });
    let found = scopes.into_iter().find(|scope| scope.contains(pipe));
    found.unwrap_or(PipeSet::one(pipe))
}

impl Access<'_, '_> {
    /// Returns the pipes of a request. Requests for a match-action table, or for its members and groups, name all pipes if
    /// its entries are the same in all pipes, and otherwise one pipe.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the pipe does not exist, or the table's entries do not belong to this pipe, or to all pipes.
    pub fn pipes(&self, table: &Table, pipe: u32) -> P4Result<PipeSet> {
        let name = &table.name;
        let owner = scope_owner(self.program, table);
        let has_entries = owner.is_some();
        let scope = table_scope(self.state, owner.unwrap_or(table));
        if pipe == ALL_PIPES {
            return match scope {
                Some(_) if has_entries => Err(P4Error::invalid(format!(
                    "table {name}: its entries differ between pipes: use one pipe"
                ))),
                _ => Ok(PipeSet::ALL),
            };
        }
        let count = self.cx.pipeline.pipes();
        if pipe >= count {
            let message = format!("table {name}: unknown pipe {pipe}: the device has {count}");
            return Err(P4Error::invalid(message));
        }
        match scope {
            Some(scope) => Ok(same_entries(scope, pipe)),
            None if !has_entries => Ok(PipeSet::one(pipe)),
            None => Err(P4Error::invalid(format!(
                "table {name}: its entries are the same in all pipes: use all pipes"
            ))),
        }
    }

    /// Returns the scope of a table's entries, if it has entries and they differ between pipes.
    fn scope(&self, table: &Table) -> Option<Scope> {
        table_scope(self.state, scope_owner(self.program, table)?)
    }

    /// Returns the pipe by which handles tell the entries of different pipes apart: the first one of those with the same
    /// entries. It is 0 if all pipes have the same entries.
    pub fn holder(&self, table: &Table, pipe: u32) -> u32 {
        let pipes = self.scope(table).map(|scope| same_entries(scope, pipe));
        pipes.and_then(|pipes| pipes.iter().next()).unwrap_or(0)
    }

    /// Returns true if the entries of a table differ between pipes.
    pub fn has_scope(&self, table: &Table) -> bool {
        self.scope(table).is_some()
    }

    /// Returns the pipes of a read of one entry. Each pipe of the chip can be read with `from_hw`. Without it, the entries of
    /// several pipes belong to their first pipe. `holder` is the pipe in the handle, if the request has one.
    ///
    /// # Errors
    /// NOT_FOUND if the pipe does not have the entry; INVALID_ARGUMENT for a handle of another pipe with `from_hw`.
    pub fn pipes_with_entry(
        &self,
        table: &Table,
        (pipe, from_hw): (u32, bool),
        holder: Option<u32>,
    ) -> P4Result<PipeSet> {
        let not_found = |e: P4Error| P4Error::not_found(e.message);
        let error = format!("table {}: pipe {pipe} does not have the entry", table.name);
        if !self.has_scope(table) {
            if holder.is_some_and(|holder| holder > 0) {
                return Err(P4Error::not_found(error));
            }
            return match self.pipes(table, pipe) {
                Err(_) if from_hw && pipe < self.cx.pipeline.pipes() => Ok(PipeSet::one(pipe)),
                found => found.map_err(not_found),
            };
        }
        let pipes = match (holder, pipe) {
            (Some(holder), ALL_PIPES) => return self.pipes(table, holder),
            (Some(holder), _) => self.pipes(table, holder)?,
            (None, _) => self.pipes(table, pipe).map_err(not_found)?,
        };
        let first = pipes.iter().next();
        if pipes.contains(pipe) && (from_hw || first == Some(pipe)) {
            return Ok(pipes);
        }
        Err(match from_hw {
            true => P4Error::invalid(error),
            false => P4Error::not_found(error),
        })
    }

    /// Returns the pipes of a read of all entries: the pipes of each set with the same entries.
    ///
    /// # Errors
    /// As [`pipes`](Self::pipes).
    pub fn pipes_with_entries(&self, table: &Table, pipe: u32) -> P4Result<Vec<PipeSet>> {
        let owner = scope_owner(self.program, table).filter(|_| pipe == ALL_PIPES);
        let scope = owner.and_then(|owner| table_scope(self.state, owner));
        let Some(scope) = scope else {
            return self.pipes(table, pipe).map(|pipes| vec![pipes]);
        };
        let mut sets: Vec<PipeSet> = Vec::new();
        for pipe in 0..self.cx.pipeline.pipes() {
            if !sets.iter().any(|set| set.contains(pipe)) {
                sets.push(same_entries(scope, pipe));
            }
        }
        Ok(sets)
    }

    /// Calls `f`, which reads and writes only in some pipes. Steps that undo its changes do so in the same pipes.
    ///
    /// # Errors
    /// The error of `f`, or INVALID_ARGUMENT if the device has none of the pipes.
    pub fn on_pipes<T>(
        &mut self,
        pipes: PipeSet,
        f: impl FnOnce(&mut Self) -> P4Result<T>,
    ) -> P4Result<T> {
        let outer = self.cx.pipeline.restrict(pipes)?;
        let known = self.cx.undo.as_ref().map_or(0, Vec::len);
        let result = f(self);
        self.cx.pipeline.restrict(outer)?;
        if let Some(steps) = &mut self.cx.undo {
            let new = steps.split_off(known);
            steps.extend(new.into_iter().map(|step| in_pipes(pipes, step)));
        }
        result
    }

    /// Reads entries in some pipes. With each comes its data in the other pipes, for the registers, which have a value in
    /// each pipe.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_on_pipes(
        &mut self,
        query: &Query<'_>,
        pipes: PipeSet,
    ) -> P4Result<Vec<(Row, Vec<Data>)>> {
        let rows = self.on_pipes(pipes, |access| access.read(query))?;
        let mut rows: Vec<_> = rows.into_iter().map(|row| (row, vec![])).collect();
        if query.table.data.iter().any(|field| field.is_register) {
            let pipes = pipes.and(self.cx.pipeline.pipes_of(&query.table.name));
            for pipe in pipes.iter().skip(1) {
                let others = self.on_pipes(PipeSet::one(pipe), |access| access.read(query))?;
                for ((_, values), other) in rows.iter_mut().zip(others) {
                    values.push(other.data);
                }
            }
        }
        Ok(rows)
    }
}

/// Returns a step that runs in some pipes.
fn in_pipes(pipes: PipeSet, step: Op) -> Op {
    Box::new(move |cx| {
        let outer = cx.pipeline.restrict(pipes)?;
        let result = step(cx);
        cx.pipeline.restrict(outer)?;
        result
    })
}
