// SPDX-License-Identifier: Apache-2.0
//! The state of each pipe.
//!
//! One pipe is selected, and its state is that of the switch. The state that all pipes share moves to the selected pipe.

use std::mem::swap;
use std::ops::{Deref, DerefMut};

use super::State;
use crate::options::Options;
use crate::program::Compiled;
use crate::program::architecture::Architecture;
use crate::program::tna::LOCAL_PORT_BITS;

/// Maximum number of pipes of a switch.
pub const MAX_PIPES: u32 = 4;

/// The states of all pipes.
#[derive(Debug)]
pub(crate) struct Pipes {
    selected: usize,
    state: State,
    /// The states of the other pipes; `None` for the selected one.
    others: Vec<Option<Box<State>>>,
}

impl Pipes {
    pub(crate) fn new(c: &Compiled, options: &Options) -> Self {
        let count = match &c.architecture {
            Architecture::Tna(_) => options.pipes.clamp(1, MAX_PIPES),
            Architecture::V1Model(_) | Architecture::Psa(_) => 1,
        };
        let state = |pipe: u32| {
            // Each pipe has its own random numbers.
            let seed = options.seed ^ u64::from(pipe) << 32;
            let options = Options {
                seed,
                ..options.clone()
            };
            State::new(c, &options)
        };
        Self {
            selected: 0,
            state: state(0),
            others: (0..count)
                .map(|pipe| (pipe > 0).then(|| Box::new(state(pipe))))
                .collect(),
        }
    }

    /// Creates the only pipe, with this state.
    pub(crate) fn of_one(state: State) -> Self {
        Self {
            selected: 0,
            state,
            others: vec![None],
        }
    }

    /// Returns the number of pipes.
    pub(crate) fn count(&self) -> usize {
        self.others.len()
    }

    /// Returns the pipe of a port. Ports beyond the last pipe belong to the last one.
    #[inline]
    pub(crate) fn of_port(&self, port: u32) -> usize {
        ((port >> LOCAL_PORT_BITS) as usize).min(self.others.len() - 1)
    }

    /// Returns the state of a pipe, except what all pipes share.
    pub(crate) fn state_of(&self, pipe: usize) -> &State {
        let other = self.others.get(pipe).and_then(Option::as_deref);
        other.unwrap_or(&self.state)
    }

    /// Selects a pipe.
    #[inline]
    pub(crate) fn select(&mut self, pipe: usize) {
        if pipe != self.selected {
            self.exchange(pipe);
        }
    }

    #[cold]
    fn exchange(&mut self, pipe: usize) {
        let Some(mut next) = self.others.get_mut(pipe).and_then(Option::take) else {
            return;
        };
        swap_shared(&mut self.state, &mut next);
        swap(&mut self.state, &mut *next);
        self.others[self.selected] = Some(next);
        self.selected = pipe;
    }

    /// Takes over the parameters of all hashes.
    pub(crate) fn keep_hash_parameters(&mut self, old: &mut Self) {
        for pipe in 0..self.count() {
            self.select(pipe);
            old.select(pipe);
            let (new, old) = (&mut self.state.externs, &mut old.state.externs);
            swap(&mut new.hash_parameters, &mut old.hash_parameters);
        }
    }
}

/// Exchanges what all pipes share.
pub(crate) fn swap_shared(a: &mut State, b: &mut State) {
    swap(&mut a.pre, &mut b.pre);
    swap(&mut a.multicast, &mut b.multicast);
    swap(&mut a.ports_down, &mut b.ports_down);
    swap(&mut a.loopback_ports, &mut b.loopback_ports);
    swap(&mut a.port_metadata, &mut b.port_metadata);
    let (a, b) = (&mut a.externs, &mut b.externs);
    swap(&mut a.digests, &mut b.digests);
    swap(&mut a.log, &mut b.log);
    swap(&mut a.trace, &mut b.trace);
    swap(&mut a.coverage, &mut b.coverage);
}

/// The state of the selected pipe.
impl Deref for Pipes {
    type Target = State;

    #[inline]
    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Pipes {
    #[inline]
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}
