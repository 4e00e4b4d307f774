// SPDX-License-Identifier: Apache-2.0
//! The pipes on which the control plane works.

use super::Pipeline;
use crate::error::StateError;
use crate::program::architecture::Architecture;
use crate::state::State;
use crate::state::pipes::MAX_PIPES;

type Result<T> = std::result::Result<T, StateError>;

/// A set of pipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PipeSet(u32);

impl PipeSet {
    /// All pipes.
    pub const ALL: Self = Self((1 << MAX_PIPES) - 1);

    /// Returns the set of one pipe, or the empty set if no switch has this pipe.
    pub fn one(pipe: u32) -> Self {
        Self(1u32.checked_shl(pipe).unwrap_or(0) & Self::ALL.0)
    }

    /// Returns true if the set contains a pipe.
    pub fn contains(self, pipe: u32) -> bool {
        Self::one(pipe).0 & self.0 != 0
    }

    /// Returns true if no pipe is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the pipes that are in both sets.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the pipes in ascending order.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        (0..MAX_PIPES).filter(move |&pipe| self.contains(pipe))
    }
}

impl FromIterator<u32> for PipeSet {
    fn from_iter<I: IntoIterator<Item = u32>>(pipes: I) -> Self {
        let set = |all: u32, pipe| all | Self::one(pipe).0;
        Self(pipes.into_iter().fold(0, set))
    }
}

impl Pipeline {
    /// Returns the number of pipes; 1 for programs of other architectures than TNA.
    pub fn pipes(&self) -> u32 {
        self.core.state.count() as u32
    }

    /// Returns the pipe of a port: its bits 7 and higher, or the last pipe if it has no such pipe.
    pub fn pipe_of(&self, port: u32) -> u32 {
        self.core.state.of_port(port) as u32
    }

    /// Calls `f`, which reads and writes state of some pipes only. Otherwise, a write changes all pipes. A read gives the sum
    /// of the pipes' counters, and other values of the first pipe.
    ///
    /// Multicast groups, clone sessions, port metadata, digests and traces are common to all pipes.
    ///
    /// # Errors
    /// If the switch has none of these pipes.
    pub fn on_pipes<T>(&mut self, pipes: PipeSet, f: impl FnOnce(&mut Self) -> T) -> Result<T> {
        let outer = self.restrict(pipes)?;
        let result = f(self);
        self.scope = outer;
        Ok(result)
    }

    /// Makes reads and writes concern some pipes only, until the next call, and returns the pipes that they concerned
    /// before. Prefer [`on_pipes`](Self::on_pipes), which ends by itself.
    ///
    /// # Errors
    /// If the switch has none of these pipes.
    pub fn restrict(&mut self, pipes: PipeSet) -> Result<PipeSet> {
        let scope = pipes.and((0..self.pipes()).collect());
        if scope.is_empty() {
            return Err(StateError::Invalid {
                what: "pipe".to_owned(),
                reason: format!("it does not exist: use 0 to {}", self.pipes() - 1),
            });
        }
        Ok(std::mem::replace(&mut self.scope, scope))
    }

    /// Returns the pipes that run an object of the program, by its name. Pipes with other pipelines ignore it.
    pub fn pipes_of(&self, object: &str) -> PipeSet {
        let all = (0..self.pipes()).filter(|&pipe| self.programs.is_selected(pipe));
        let Architecture::Tna(m) = &self.program.compiled().architecture else {
            return all.collect();
        };
        let pipeline = m.pipelines.of_object(object);
        let runs = |&pipe: &u32| pipeline.is_none_or(|p| p == m.pipelines.of_pipe(pipe as usize));
        all.filter(runs).collect()
    }

    /// Returns the state of the first pipe that reads concern and that runs an object, by its name.
    pub(super) fn state_of(&self, object: &str) -> &State {
        let pipes = self.scope.and(self.pipes_of(object));
        match pipes.iter().next() {
            Some(first) => self.core.state.state_of(first as usize),
            None => self.state(),
        }
    }

    /// Returns the states of the pipes that reads concern, the first pipe first.
    pub(super) fn states(&self) -> impl Iterator<Item = &State> {
        let pipes = self.scope.iter();
        pipes.map(|pipe| self.core.state.state_of(pipe as usize))
    }

    /// Returns the state that reads concern, except for counters.
    pub(super) fn state(&self) -> &State {
        let first = self.scope.iter().next().unwrap_or(0);
        self.core.state.state_of(first as usize)
    }

    /// Makes a change in each pipe that writes concern, after `check` has succeeded in all of them, and returns the first
    /// result.
    pub(super) fn change_checked<T>(
        &mut self,
        check: impl Fn(&Self) -> Result<()>,
        mut change: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if self.core.state.count() == 1 {
            return self.change(change);
        }
        self.change(|p| check(p))?;
        self.change(&mut change)
    }

    /// Makes a change in each pipe that writes concern, and returns the first result. It fails in all of them or in none,
    /// unless pipes have different entries.
    pub(super) fn change<T>(
        &mut self,
        mut change: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if self.core.state.count() == 1 {
            return change(self);
        }
        let scope = self.scope;
        let mut first = None;
        for pipe in scope.iter() {
            self.core.state.select(pipe as usize);
            self.scope = PipeSet::one(pipe);
            let result = change(self);
            self.scope = scope;
            first = first.or(Some(result?));
        }
        Ok(first.expect("a scope has pipes"))
    }
}
