// SPDX-License-Identifier: Apache-2.0
//! The v1model architecture: the order of its blocks, its standard metadata, and what happens to a packet between the
//! blocks.

mod egress;
mod ingress;
mod replication;

use std::sync::Arc;

use crate::Nanos;
use crate::native::Native;
use crate::options::Options;
use crate::packet::{Descriptor, Packet};
use crate::phv::{Field, Place};
use crate::program::Compiled;
use crate::state::State;
use crate::trace::Recorder;

/// A v1model switch: the state of its program, without the program.
#[derive(Debug)]
pub(crate) struct V1Model {
    pub(crate) options: Options,
    pub(crate) state: State,
    /// The program's native code, if packets run in native code.
    native: Option<Arc<Native>>,
    pool: Pool,
}

impl V1Model {
    pub(crate) fn new(c: &Compiled, native: Option<Arc<Native>>, options: Options) -> Self {
        Self {
            state: State::new(c, &options),
            options,
            native,
            pool: Pool::default(),
        }
    }

    /// Resets the state of the program, except the parameters of hashes.
    pub(crate) fn reset_state(&mut self, c: &Compiled) {
        let mut new = State::new(c, &self.options);
        std::mem::swap(&mut new.ports_down, &mut self.state.ports_down);
        let (new_externs, old) = (&mut new.externs, &mut self.state.externs);
        std::mem::swap(&mut new_externs.trace, &mut old.trace);
        std::mem::swap(&mut new_externs.coverage, &mut old.coverage);
        std::mem::swap(&mut new_externs.hash_parameters, &mut old.hash_parameters);
        self.state = new;
    }

    /// Takes back a packet that a queue dropped.
    pub(crate) fn recycle(&mut self, d: Descriptor) {
        if let Some(trace) = self.trace() {
            trace.tail_drop(&d);
        }
        self.pool.put(d.packet);
    }

    /// Returns true if the packet exceeded the number of loop iterations.
    fn iterates_too_often(&self, pkt: &Packet) -> bool {
        pkt.iterations > self.options.max_iterations
    }

    fn trace(&mut self) -> Option<&mut Recorder> {
        self.state.externs.trace.as_deref_mut()
    }

    /// Runs the parser and verifies checksums.
    fn parse(&mut self, c: &Compiled, pkt: &mut Packet, now: Nanos) {
        let native = unless_observed(self.native.as_deref(), &self.state);
        if !native.is_some_and(|n| n.parse(c, &mut self.state, pkt, now)) {
            self.state.parse(c, pkt, now);
        }
    }

    /// Runs a control flow from node `first` to its end.
    fn apply(&mut self, c: &Compiled, first: u32, pkt: &mut Packet, now: Nanos) {
        let native = unless_observed(self.native.as_deref(), &self.state);
        if !native.is_some_and(|n| n.apply(c, first, &mut self.state, pkt, now)) {
            self.state.apply(c, first, pkt, now);
        }
    }

    /// Updates the checksums, writes the headers to the beginning of `frame` and returns their length in bytes.
    fn emit(&mut self, c: &Compiled, pkt: &mut Packet, now: Nanos, frame: &mut Vec<u8>) -> usize {
        let native = unless_observed(self.native.as_deref(), &self.state);
        match native.and_then(|n| n.emit(c, &mut self.state, pkt, now, frame)) {
            Some(bytes) => bytes,
            None => self.state.emit(c, pkt, now, frame),
        }
    }
}

/// Returns the native code, unless tracing or coverage is on.
fn unless_observed<'a>(native: Option<&'a Native>, state: &State) -> Option<&'a Native> {
    native.filter(|_| !state.externs.is_observed())
}

/// Buffers of finished packets, for reuse.
#[derive(Debug, Default)]
#[expect(
    clippy::vec_box,
    reason = "descriptors take the boxes out and return them"
)]
struct Pool(Vec<Box<Packet>>);

/// Maximum number of pooled buffers; further ones are freed.
const MAX_POOL: usize = 1 << 14;

impl Pool {
    fn get(&mut self) -> Box<Packet> {
        self.0.pop().unwrap_or_default()
    }

    fn put(&mut self, packet: Box<Packet>) {
        if self.0.len() < MAX_POOL {
            self.0.push(packet);
        }
    }
}

const MICRO: Nanos = 1000;

/// Copies the metadata fields of a field list from one packet to another.
fn preserve(list: Option<&Vec<Field>>, from: &[u8], to: &mut [u8]) {
    for f in list.into_iter().flatten() {
        match f.place {
            Place::Word(w) => w.set(to, w.get(from)),
            _ => f.set_big(to, &f.get_big(from)),
        }
    }
}
