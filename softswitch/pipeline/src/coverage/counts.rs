// SPDX-License-Identifier: Apache-2.0
//! Counters at the points of a program, by the loader's indices.

use crate::program::Compiled;

/// How often packets reached each point of the program.
#[derive(Debug, Clone)]
pub(crate) struct Counts {
    pub(super) states: Vec<StateCounts>,
    /// For each control node that is a condition, how often it was false and true.
    pub(super) conditions: Vec<[u64; 2]>,
    pub(super) tables: Vec<TableCounts>,
    pub(super) actions: Vec<ActionCounts>,
    /// The action that runs.
    action: Option<u32>,
    /// True while a clone is parsed, which repeats the original's steps.
    is_muted: bool,
}

#[derive(Debug, Clone)]
pub(super) struct StateCounts {
    pub(super) entered: u64,
    pub(super) steps: Vec<u64>,
    /// By case; the default transition is last.
    pub(super) transitions: Vec<u64>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct TableCounts {
    pub(super) hits: u64,
    pub(super) misses: u64,
    /// By the position in the table's action list.
    pub(super) actions: Vec<u64>,
    /// Hits of the program's own entries.
    pub(super) entries: Vec<u64>,
}

#[derive(Debug, Clone)]
pub(super) struct ActionCounts {
    pub(super) calls: u64,
    /// Executions of each step.
    pub(super) steps: Vec<u64>,
    /// How often each step skipped others, because its condition was false.
    pub(super) jumps: Vec<u64>,
}

impl Counts {
    pub(crate) fn new(c: &Compiled) -> Self {
        let states = c.parser.states.iter().map(|state| StateCounts {
            entered: 0,
            steps: vec![0; state.ops.len()],
            transitions: vec![0; state.cases.len() + 1],
        });
        let tables = c.info.tables.iter().zip(&c.tables);
        let tables = tables.map(|(info, fixed)| TableCounts {
            actions: vec![0; info.actions.len()],
            entries: vec![0; fixed.entries.len()],
            ..TableCounts::default()
        });
        let actions = c.actions.iter().map(|action| ActionCounts {
            calls: 0,
            steps: vec![0; action.ops.len()],
            jumps: vec![0; action.ops.len()],
        });
        Self {
            states: states.collect(),
            conditions: vec![[0; 2]; c.nodes.len()],
            tables: tables.collect(),
            actions: actions.collect(),
            action: None,
            is_muted: false,
        }
    }

    /// Stops or resumes counting.
    pub(crate) fn mute(&mut self, is_muted: bool) {
        self.is_muted = is_muted;
    }

    fn state(&mut self, state: u32) -> Option<&mut StateCounts> {
        self.states
            .get_mut(state as usize)
            .filter(|_| !self.is_muted)
    }

    /// The parser enters a state.
    pub(crate) fn enter_state(&mut self, state: u32) {
        if let Some(counts) = self.state(state) {
            counts.entered += 1;
        }
    }

    /// The parser runs a step of a state.
    pub(crate) fn parser_step(&mut self, state: u32, step: usize) {
        if let Some(counts) = self.state(state) {
            counts.steps[step] += 1;
        }
    }

    /// The parser leaves a state by a case of its `select`.
    pub(crate) fn transition(&mut self, state: u32, case: usize) {
        if let Some(counts) = self.state(state) {
            counts.transitions[case] += 1;
        }
    }

    /// A condition was evaluated.
    pub(crate) fn condition(&mut self, node: u32, holds: bool) {
        self.conditions[node as usize][usize::from(holds)] += 1;
    }

    /// A table was applied. `entry` is the number of the entry that it hit, and `action` the action that will run.
    pub(crate) fn table(
        &mut self,
        c: &Compiled,
        table: u32,
        entry: Option<u32>,
        action: Option<u32>,
    ) {
        let counts = &mut self.tables[table as usize];
        match entry {
            Some(entry) => {
                counts.hits += 1;
                if let Some(count) = counts.entries.get_mut(entry as usize) {
                    *count += 1;
                }
            }
            None => counts.misses += 1,
        }
        let mut known = c.info.tables[table as usize].actions.iter();
        if let Some(position) = known.position(|(_, id)| Some(id.0) == action) {
            counts.actions[position] += 1;
        }
    }

    /// An action begins.
    pub(crate) fn begin_action(&mut self, action: u32) {
        self.actions[action as usize].calls += 1;
        self.action = Some(action);
    }

    /// The action ends.
    pub(crate) fn end_action(&mut self) {
        self.action = None;
    }

    /// A step runs, of the current action or of something else.
    #[inline]
    pub(crate) fn step(&mut self, step: usize) {
        if let Some(action) = self.action {
            self.actions[action as usize].steps[step] += 1;
        }
    }

    /// A conditional step of the current action skips others.
    #[inline]
    pub(crate) fn jump(&mut self, step: usize) {
        if let Some(action) = self.action {
            self.actions[action as usize].jumps[step] += 1;
        }
    }
}
