// SPDX-License-Identifier: Apache-2.0
//! Idle time-outs of entries.

use crate::Nanos;
use crate::entry::EntryKey;
use crate::info::TableId;
use crate::pipeline::Pipeline;

/// A table entry that was idle for its time-out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleEntry {
    /// The number of the program, if pipes have different ones.
    pub program: usize,
    /// The table.
    pub table: TableId,
    /// The entry's key.
    pub key: EntryKey,
    /// The entry's number in its table ([`Pipeline::entry_of_handle`]).
    pub handle: u32,
    /// True if the entry was reported before, and has had no hit since.
    pub is_repeated: bool,
}

impl Pipeline {
    /// Returns the entries that are idle at time `now`, without a hit for their idle time-out. An entry is reported once,
    /// and again after each further time-out without a hit. A hit in one pipe counts for entries of all pipes with the
    /// same key.
    pub fn poll_idle(&mut self, now: Nanos) -> Vec<IdleEntry> {
        let selected = self.selected_program();
        let mut idle = Vec::new();
        for program in 0..self.program_count() {
            self.select_program(program);
            idle.extend(self.poll_idle_of_program(now));
        }
        self.select_program(selected);
        idle
    }

    /// Returns the entries of the selected program that have become idle.
    fn poll_idle_of_program(&mut self, now: Nanos) -> Vec<IdleEntry> {
        let pipes = self.core.state.count();
        if pipes > 1 {
            self.share_hits();
        }
        let mut idle = Vec::new();
        let number = self.core.program;
        for pipe in 0..pipes {
            self.core.state.select(pipe);
            let known = idle.len();
            for (i, t) in self.core.state.tables.write().iter_mut().enumerate() {
                for (slot, is_repeated) in t.poll_idle(now) {
                    let entry = IdleEntry {
                        program: number,
                        table: TableId(i as u32),
                        key: t.key(slot),
                        handle: t.handle(slot),
                        is_repeated,
                    };
                    let is_same = |e: &IdleEntry| (e.table, &e.key) == (entry.table, &entry.key);
                    if !idle[..known].iter().any(is_same) {
                        idle.push(entry);
                    }
                }
            }
        }
        idle
    }

    /// Sets the time of the last hit of entries to the latest one in any pipe.
    fn share_hits(&mut self) {
        let pipes = self.core.state.count();
        for from in 0..pipes {
            let tables = self.core.state.state_of(from).tables.iter().enumerate();
            let hits: Vec<_> = tables
                .flat_map(|(i, t)| t.hits().map(move |h| (i, h)))
                .collect();
            for to in (0..pipes).filter(|&to| to != from) {
                self.core.state.select(to);
                for (table, (key, time)) in &hits {
                    self.core.state.tables.write()[*table].hit_at(key, *time);
                }
            }
        }
    }
}
