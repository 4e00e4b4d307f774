// SPDX-License-Identifier: Apache-2.0
//! Generates code for the lookup of a key in a table.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{Block, InstBuilder, Value};

use super::generator::{Gen, Known, Result};
use super::runtime::{Callout, Context, HIT};
use crate::entry::CounterValue;
use crate::phv::mask64;
use crate::program::op::Target;
use crate::state::table::{HASH, NO_ACTION, Table};
use crate::state::view::{Cell, TableView};

/// The exits of a search.
pub(super) struct Exits {
    /// Takes the record number; 0 if nothing was found.
    pub(super) done: Block,
    /// Calls the table.
    pub(super) call: Block,
}

/// The result of a lookup.
pub(super) struct Found {
    /// Not zero if the lookup hit an entry.
    pub(super) hit: Value,
    pub(super) action: Value,
    /// The address of the action's arguments.
    pub(super) args: Value,
}

impl Gen<'_, '_> {
    /// Compiles the lookup of the packet's key, which counts and meters the packet.
    pub(super) fn lookup(&mut self, number: u32) -> Result<Found> {
        let c = self.c;
        let (table, info) = (&c.tables[number as usize], &c.info.tables[number as usize]);
        let key = self.key(table)?;
        if let Some(key) = &key
            && table.profile.is_none()
            && !table.has_direct_state
            && !info.idle_timeout
        {
            let record = self.find(number, key)?;
            if let Some(meter) = &table.meter {
                self.meter(number, &meter.to, record)?;
            }
            return Ok(self.hit_or_miss(number, record));
        }
        let key = match key {
            Some(key) => self.store_key(&key)?,
            None => self.int(0),
        };
        let n = self.int(number.into());
        let found = self.call(Callout::Apply, &[n, key]);
        if table.meter.is_some() {
            self.known = Known::default();
        }
        Ok(Found {
            hit: self.b.ins().band_imm(found, HIT as i64),
            action: self.b.ins().ushr_imm(found, 32),
            args: self.context(offset_of!(Context, args)),
        })
    }

    /// Compiles the lookup of the record number of the entry that a key hits; the default entry's is 0.
    fn find(&mut self, number: u32, key: &[Value]) -> Result<Value> {
        let Some(bits) = self.c.tables[number as usize].shape.short_bits() else {
            return self.find_long(number, key);
        };
        let dense = self.view(number, offset_of!(TableView, dense));
        let at = match key {
            [] => dense,
            [key, ..] => {
                let key = self.mask(*key, mask64(bits));
                self.cell(dense, key, size_of::<u32>())
            }
        };
        Ok(self.load_index(at, 0))
    }

    /// Compiles the lookup of a key that is not an index of an array.
    fn find_long(&mut self, number: u32, key: &[Value]) -> Result<Value> {
        let shape = &self.c.tables[number as usize].shape;
        if shape.needs_priority {
            self.call_find(number, key)
        } else if shape.by_prefix {
            self.find_prefix(number, key)
        } else {
            self.find_in_cells(number, key)
        }
    }

    /// Compiles a search, which ends in one of two blocks: `done` takes the record, and `call` calls the table. The search changes
    /// nothing, so the known facts stay.
    pub(super) fn search(
        &mut self,
        number: u32,
        key: &[Value],
        search: impl FnOnce(&mut Self, Exits) -> Result<()>,
    ) -> Result<Value> {
        let [call, done] = [(); 2].map(|()| self.b.create_block());
        self.b.append_block_param(done, I64);
        self.b.set_cold_block(call);
        self.arrive(call);
        self.arrive(done);
        search(self, Exits { done, call })?;
        self.enter(call)?;
        let found = self.call_find(number, key)?;
        self.jump_with(done, found);
        self.enter(done)?;
        Ok(self.b.block_params(done)[0])
    }

    /// Compiles a call of the table, if that has entries.
    pub(super) fn call_find(&mut self, number: u32, key: &[Value]) -> Result<Value> {
        let (call, done) = (self.b.create_block(), self.b.create_block());
        self.b.append_block_param(done, I64);
        let len = self.view(number, offset_of!(TableView, len));
        let none = self.int(0);
        self.arrive(call);
        self.arrive(done);
        self.b.ins().brif(len, call, &[], done, &[none.into()]);
        self.enter(call)?;
        let (n, at) = (self.int(number.into()), self.store_key(key)?);
        let found = self.call(Callout::Find, &[n, at]);
        self.jump_with(done, found);
        self.enter(done)?;
        Ok(self.b.block_params(done)[0])
    }

    /// Compiles the search for an exact key in the table's [cells](Cell). A table has none before its first entry, or while its
    /// keys are masked; then the code calls the table.
    fn find_in_cells(&mut self, number: u32, key: &[Value]) -> Result<Value> {
        self.search(number, key, |g, exits| {
            let search = g.b.create_block();
            let cells = g.view(number, offset_of!(TableView, cells));
            g.brif(cells, search, exits.call);
            g.enter(search)?;
            let hash = g.hash(key);
            let tag = if let [word] = key { *word } else { hash };
            let mask = g.view(number, offset_of!(TableView, cells_mask));
            let home = g.b.ins().band(hash, mask);
            g.probe(number, key, (cells, mask), (home, tag), exits.done);
            Ok(())
        })
    }

    /// Compiles the hash of a key; it equals that of `table::hash`.
    fn hash(&mut self, key: &[Value]) -> Value {
        let [seed, factor] = HASH.map(|number| self.int(number));
        key.iter().fold(seed, |hash, &word| {
            let mixed = self.b.ins().bxor(hash, word);
            let low = self.b.ins().imul(mixed, factor);
            let high = self.b.ins().umulhi(mixed, factor);
            let rotated = self.b.ins().rotl_imm(word, 32);
            let product = self.b.ins().bxor(low, high);
            self.b.ins().bxor(product, rotated)
        })
    }

    /// Compiles the search from a cell on.
    fn probe(
        &mut self,
        number: u32,
        key: &[Value],
        (cells, mask): (Value, Value),
        (home, tag): (Value, Value),
        done: Block,
    ) {
        let [look, compare, same, next] = [(); 4].map(|()| self.b.create_block());
        self.b.append_block_param(look, I64);
        self.b.set_cold_block(next);
        self.b.ins().jump(look, &[home.into()]);
        self.b.switch_to_block(look);
        let at = self.b.block_params(look)[0];
        let cell = self.cell(cells, at, size_of::<Cell>());
        let record = self.load_index(cell, offset_of!(Cell, record));
        let none = self.int(0);
        self.b
            .ins()
            .brif(record, compare, &[], done, &[none.into()]);
        self.b.switch_to_block(compare);
        let found = self.load_word(cell, offset_of!(Cell, tag));
        let is_same = self.compare(IntCC::Equal, found, tag);
        self.b.ins().brif(is_same, same, &[], next, &[]);
        self.b.switch_to_block(same);
        if key.len() == 1 {
            self.b.ins().jump(done, &[record.into()]);
        } else {
            let differs = self.differs(number, key, record);
            self.b
                .ins()
                .brif(differs, next, &[], done, &[record.into()]);
        }
        self.b.switch_to_block(next);
        let after = self.b.ins().iadd_imm(at, 1);
        let after = self.b.ins().band(after, mask);
        self.b.ins().jump(look, &[after.into()]);
    }

    /// Loads a part of 64 bits.
    pub(super) fn load_word(&mut self, from: Value, part: usize) -> Value {
        self.b.ins().load(I64, Self::other(), from, part as i32)
    }

    /// Loads a part of 32 bits.
    pub(super) fn load_index(&mut self, from: Value, part: usize) -> Value {
        let index = self.b.ins().load(I32, Self::other(), from, part as i32);
        self.b.ins().uextend(I64, index)
    }

    /// Compiles the comparison of a key with that of the entry with a record; 0 if they are equal.
    fn differs(&mut self, number: u32, key: &[Value], record: Value) -> Value {
        let entries = self.view(number, offset_of!(TableView, entries));
        let words = key.len() + 1;
        let at = self.b.ins().imul_imm(record, (words * 8) as i64);
        let at = self.b.ins().iadd(entries, at);
        // Records are counted from 1.
        let first = 8 - (words * 8) as i32;
        let mut differs = self.int(0);
        for (i, &word) in key.iter().enumerate() {
            let stored = self
                .b
                .ins()
                .load(I64, Self::other(), at, first + i as i32 * 8);
            let bits = self.b.ins().bxor(stored, word);
            differs = self.b.ins().bor(differs, bits);
        }
        differs
    }

    /// Meters a packet that hits a record, or one that misses if the default entry's meter is configured.
    fn meter(&mut self, number: u32, to: &Target, record: Value) -> Result<()> {
        let (call, done) = (self.b.create_block(), self.b.create_block());
        let misses = self.view(number, offset_of!(TableView, meters_misses));
        let is_metered = self.b.ins().bor(record, misses);
        self.brif(is_metered, call, done);
        self.enter(call)?;
        let n = self.int(number.into());
        self.call(Callout::Meter, &[n, record]);
        self.forget_target(to);
        self.jump(done);
        self.enter(done)
    }

    /// Counts a packet in a record, and loads the record's content.
    fn hit_or_miss(&mut self, number: u32, record: Value) -> Found {
        if self.c.info.tables[number as usize].direct_counter {
            let counters = if self.is_for_lanes {
                self.cells(offset_of!(Context, entry_counters), number)[0]
            } else {
                self.view(number, offset_of!(TableView, counters))
            };
            let counter = self.cell(counters, record, size_of::<CounterValue>());
            self.count(counter);
        }
        let records = self.view(number, offset_of!(TableView, records));
        let bytes = self.view(number, offset_of!(TableView, record_bytes));
        let at = self.b.ins().imul(record, bytes);
        let at = self.b.ins().iadd(records, at);
        let head = self.b.ins().load(I64, Self::other(), at, 0);
        Found {
            hit: record,
            action: self.mask(head, NO_ACTION.into()),
            args: self.b.ins().iadd_imm(at, 8),
        }
    }

    /// Loads a part of a table's view.
    pub(super) fn view(&mut self, number: u32, part: usize) -> Value {
        let tables = self.context(offset_of!(Context, tables));
        let at = number as usize * size_of::<Table>() + offset_of!(Table, view) + part;
        self.b.ins().load(I64, Self::other(), tables, at as i32)
    }
}
