// SPDX-License-Identifier: Apache-2.0
//! Different programs in the pipes of a switch of TNA.
//!
//! One program is selected, and its state is that of the switch. The state that all pipes share moves to the selected
//! program. Packets select the program of their pipe.

use std::mem::swap;

use super::{PipeSet, Pipeline, Program};
use crate::core::Core;
use crate::error::StateError;
use crate::options::Options;
use crate::state::pipes::swap_shared;

/// The programs that are not selected.
#[derive(Debug, Default)]
pub(super) struct Programs {
    selected: usize,
    /// The programs with their states; `None` in the place of the selected one. Empty if all pipes have the same program.
    others: Vec<Option<Box<(Program, Core)>>>,
    /// The program of each pipe.
    by_pipe: Vec<usize>,
}

impl Programs {
    /// Returns the program of a pipe.
    fn program_of(&self, pipe: u32) -> usize {
        self.by_pipe.get(pipe as usize).copied().unwrap_or(0)
    }

    /// Returns true if all pipes have the same program.
    pub(super) fn is_single(&self) -> bool {
        self.others.is_empty()
    }

    /// Returns true if a pipe has the selected program.
    pub(super) fn is_selected(&self, pipe: u32) -> bool {
        self.program_of(pipe) == self.selected
    }
}

impl Pipeline {
    /// Creates a switch whose pipes have different programs, in their initial states. Programs share the multicast groups,
    /// the clone sessions and the metadata of ports.
    ///
    /// # Errors
    /// If the programs are for different chips or not for Tofino, or a pipe does not have exactly one program.
    pub fn of_programs(
        programs: Vec<(Program, PipeSet)>,
        options: &Options,
    ) -> Result<Self, StateError> {
        let invalid = |reason: String| StateError::Invalid {
            what: "programs of pipes".to_owned(),
            reason,
        };
        let chips = programs.iter().map(|(program, _)| program.architecture());
        let first = chips.clone().next().unwrap_or_default();
        if !matches!(first, "tna" | "t2na") || chips.clone().any(|chip| chip != first) {
            return Err(invalid(
                "they must be for the same chip, Tofino or Tofino 2".to_owned(),
            ));
        }
        let mut by_pipe = Vec::new();
        for pipe in 0..options.pipes {
            let own = (0..programs.len()).filter(|&program| programs[program].1.contains(pipe));
            match own.collect::<Vec<_>>()[..] {
                [program] => by_pipe.push(program),
                [] => return Err(invalid(format!("pipe {pipe} has none"))),
                _ => return Err(invalid(format!("pipe {pipe} has several"))),
            }
        }
        let mut made = (0..).zip(programs).map(|(number, (program, _))| {
            let mut pipeline = Self::new(program, options.clone());
            pipeline.core.program = number;
            pipeline
        });
        let mut pipeline = made
            .next()
            .ok_or_else(|| invalid("there are none".to_owned()))?;
        let others = made.map(|other| Some(Box::new((other.program, other.core))));
        pipeline.programs = Programs {
            selected: 0,
            others: std::iter::once(None).chain(others).collect(),
            by_pipe,
        };
        Ok(pipeline)
    }

    /// Returns the number of different programs.
    pub fn program_count(&self) -> usize {
        self.programs.others.len().max(1)
    }

    /// Selects the program with a number, to which all methods refer until a packet selects another. Does nothing if there
    /// is no such program.
    pub fn select_program(&mut self, number: usize) {
        let selected = self.programs.selected;
        let next = self.programs.others.get_mut(number).and_then(Option::take);
        let Some(mut next) = next else { return };
        swap_shared(&mut self.core.state, &mut next.1.state);
        swap(
            &mut self.core.options.cpu_port,
            &mut next.1.options.cpu_port,
        );
        swap(&mut self.program, &mut next.0);
        swap(&mut self.core, &mut next.1);
        self.programs.others[selected] = Some(next);
        self.programs.selected = number;
    }

    /// Returns the number of the selected program.
    pub fn selected_program(&self) -> usize {
        self.programs.selected
    }

    /// Selects the program of a port's pipe.
    #[inline]
    pub(super) fn select_program_of(&mut self, port: u32) {
        if !self.programs.is_single() {
            self.select_program(self.programs.program_of(self.pipe_of(port)));
        }
    }
}
