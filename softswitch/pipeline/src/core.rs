// SPDX-License-Identifier: Apache-2.0
//! The parts that all architectures share: the state of a program, the engine that runs its blocks, and buffers for
//! packets.

use crate::Nanos;
use crate::digest::Digest;
use crate::executable::Adaptive;
use crate::info::DigestId;
use crate::native::Native;
use crate::options::Options;
use crate::packet::{Descriptor, EgressOutcome, EgressOutput, IngressOutcome, Packet};
use crate::phv::{Field, Place};
use crate::pool::Pool;
use crate::program::Compiled;
use crate::program::layout::set_inputs;
use crate::program::locks::LockSet;
use crate::program::parser::Parsed;
use crate::state::State;
use crate::state::pipes::Pipes;
use crate::state::pre::Replica;
use crate::state::serial::RegisterLocks;
use crate::trace::Recorder;
use crate::value::Value;

/// The state of a program, without the program.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) options: Options,
    pub(crate) state: Pipes,
    /// The program's native code, if packets run in native code.
    native: Option<Adaptive>,
    pub(crate) pool: Pool,
    /// A buffer for the headers that a deparser emits.
    headers: Vec<u8>,
    /// The number of the program, if pipes have different ones.
    pub(crate) program: usize,
}

impl Core {
    pub(crate) fn new(c: &Compiled, native: Option<Adaptive>, options: Options) -> Self {
        Self {
            state: Pipes::new(c, &options),
            options,
            native,
            pool: Pool::default(),
            headers: Vec::new(),
            program: 0,
        }
    }

    /// Creates the core of a lane.
    ///
    /// # Safety
    ///
    /// As for [`Shared::lane`](crate::state::shared::Shared::lane).
    pub(crate) unsafe fn lane(
        &self,
        c: &Compiled,
        native: Option<Adaptive>,
        number: usize,
        locks: RegisterLocks,
    ) -> Self {
        // SAFETY: by the contract.
        let state = unsafe { self.state.lane(c, &self.options, number, locks) };
        Self {
            state: Pipes::of_one(state),
            options: self.options.clone(),
            native,
            pool: Pool::default(),
            headers: Vec::new(),
            program: self.program,
        }
    }

    /// Resets the state of the program, except the parameters of hashes.
    pub(crate) fn reset_state(&mut self, c: &Compiled) {
        let mut new = Pipes::new(c, &self.options);
        std::mem::swap(&mut new.ports_down, &mut self.state.ports_down);
        let (new_externs, old) = (&mut new.externs, &mut self.state.externs);
        std::mem::swap(&mut new_externs.trace, &mut old.trace);
        std::mem::swap(&mut new_externs.coverage, &mut old.coverage);
        new.keep_hash_parameters(&mut self.state);
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
    pub(crate) fn iterates_too_often(&self, pkt: &Packet) -> bool {
        pkt.iterations > self.options.max_iterations
    }

    /// Returns why the packet cannot continue after a block of ingress.
    pub(crate) fn ingress_failure(&self, pkt: &Packet) -> Option<IngressOutcome> {
        if self.iterates_too_often(pkt) {
            return Some(IngressOutcome::TooManyIterations);
        }
        pkt.assertion_failed
            .then_some(IngressOutcome::AssertionFailed)
    }

    /// Returns why the packet cannot continue after a block of egress.
    pub(crate) fn egress_failure(&self, pkt: &Packet) -> Option<EgressOutcome> {
        if self.iterates_too_often(pkt) {
            return Some(EgressOutcome::TooManyIterations);
        }
        pkt.assertion_failed
            .then_some(EgressOutcome::AssertionFailed)
    }

    /// Transmits a packet whose headers are deparsed.
    pub(crate) fn transmit(
        &mut self,
        mut pkt: Box<Packet>,
        port: u32,
        out: &mut EgressOutput,
    ) -> EgressOutcome {
        std::mem::swap(&mut pkt.frame, &mut out.frame);
        self.pool.put(pkt);
        EgressOutcome::Transmit { port }
    }

    /// Makes one packet per replica.
    pub(crate) fn replicate(
        &mut self,
        pkt: Box<Packet>,
        replicas: &[Replica],
        mut each: impl FnMut(Box<Packet>, &Replica),
    ) {
        let Some((last, others)) = replicas.split_last() else {
            self.pool.put(pkt);
            return;
        };
        for replica in others {
            let mut copy = self.pool.get();
            copy.copy_from(&pkt);
            each(copy, replica);
        }
        each(pkt, last);
    }

    pub(crate) fn trace(&mut self) -> Option<&mut Recorder> {
        self.state.externs.trace.as_deref_mut()
    }

    /// Stops or resumes the recording of steps and of coverage.
    pub(crate) fn mute(&mut self, is_muted: bool) {
        if let Some(trace) = self.trace() {
            trace.mute(is_muted);
        }
        if let Some(coverage) = &mut self.state.externs.coverage {
            coverage.mute(is_muted);
        }
    }

    /// Returns true if a parser takes the chip's header from the packet's values instead of the frame.
    pub(crate) fn receives_header(&self, parser: usize) -> bool {
        let native = unless_observed(self.native.as_ref(), &self.state);
        native.is_some_and(|native| native.receives_header(parser))
    }

    /// Runs a parser and verifies checksums.
    pub(crate) fn parse(
        &mut self,
        c: &Compiled,
        parser: usize,
        pkt: &mut Packet,
        now: Nanos,
    ) -> Parsed {
        if self.state.externs.is_observed() {
            // A trace shows a field's change from its previous value.
            c.layout.clear_temporaries(&mut pkt.mem);
        }
        let native = unless_observed(self.native.as_ref(), &self.state);
        let parsed = match native.and_then(|n| n.parse(c, parser, &mut self.state, pkt, now)) {
            Some(parsed) => parsed,
            None => self.state.parse(c, parser, pkt, now),
        };
        if !pkt.deposits.is_empty() {
            self.state.machine(c, pkt, now).deposit(&c.deposits);
        }
        parsed
    }

    /// Sets a control's [inputs](crate::program::architecture::Architecture::inputs), and runs it to its end.
    pub(crate) fn apply(
        &mut self,
        c: &Compiled,
        control: usize,
        pkt: &mut Packet,
        now: Nanos,
        input: &[u64],
    ) {
        if let Some(buffer) = self.native.as_mut().and_then(Adaptive::sample) {
            self.state.externs.path = Some(buffer);
        }
        let native = unless_observed(self.native.as_ref(), &self.state);
        if !native.is_some_and(|n| n.apply(c, control, &mut self.state, pkt, now, input)) {
            set_inputs(c.architecture.inputs(control), &mut pkt.mem, input);
            self.state.apply(c, control, pkt, now);
            if let (Some(path), Some(native)) = (self.state.externs.path.take(), &mut self.native) {
                native.add(control, path);
            }
        }
        self.state.externs.release_locks(LockSet::MAX);
    }

    /// Compiles native code for the paths that were noted since the last time.
    pub(crate) fn adapt(&mut self) {
        if let Some(native) = &mut self.native {
            native.adapt();
        }
    }

    /// Keeps the digest that the program asked for.
    pub(crate) fn digest(&mut self, c: &Compiled, pkt: &Packet) {
        let Some(d) = pkt.digest else { return };
        let list = c.digests[d as usize].iter();
        let fields: Vec<Value> = list.map(|f| f.to_value(&pkt.mem)).collect();
        if let Some(trace) = &mut self.state.externs.trace {
            trace.digest(c, d, &fields);
        }
        self.state.externs.digests.push(Digest {
            id: DigestId(d),
            program: self.program,
            fields,
        });
    }

    /// Updates the checksums, runs a deparser, and replaces the parsed headers in the packet's frame by those that it emits.
    pub(crate) fn deparse(&mut self, c: &Compiled, deparser: usize, pkt: &mut Packet, now: Nanos) {
        let bytes = self.emit(c, deparser, pkt, now);
        self.replace_headers(c, deparser, pkt, bytes);
    }

    /// Replaces the parsed headers in a packet's frame by the `bytes` that a deparser has [emitted](Self::emit).
    pub(crate) fn replace_headers(
        &mut self,
        c: &Compiled,
        deparser: usize,
        pkt: &mut Packet,
        bytes: usize,
    ) {
        pkt.frame.replace_front(pkt.start, &self.headers[..bytes]);
        pkt.frame.truncate(pkt.truncate_to as usize);
        if let Some(trace) = &mut self.state.externs.trace {
            trace.deparse(c, &c.deparsers[deparser], pkt, &pkt.frame);
        }
    }

    /// Runs only the steps of a deparser.
    pub(crate) fn run_deparser(
        &mut self,
        c: &Compiled,
        deparser: usize,
        pkt: &mut Packet,
        now: Nanos,
    ) {
        let ops = &c.deparsers[deparser].ops;
        self.state.machine(c, pkt, now).run(ops, &[]);
    }

    /// Updates the checksums, emits the headers to a buffer, and returns their length in bytes.
    pub(crate) fn emit(
        &mut self,
        c: &Compiled,
        deparser: usize,
        pkt: &mut Packet,
        now: Nanos,
    ) -> usize {
        let native = unless_observed(self.native.as_ref(), &self.state);
        let (state, to) = (&mut self.state, &mut self.headers);
        match native.and_then(|n| n.emit(c, deparser, state, pkt, now, to)) {
            Some(bytes) => bytes,
            None => self.state.emit(c, deparser, pkt, now, &mut self.headers),
        }
    }
}

/// Returns the native code, unless the packet's steps are recorded.
fn unless_observed<'a>(native: Option<&'a Adaptive>, state: &State) -> Option<&'a Native> {
    let is_recorded = state.externs.is_observed() || state.externs.path.is_some();
    let native = native.filter(|_| !is_recorded);
    native.map(Adaptive::native)
}

/// Nanoseconds per microsecond, the unit of timestamps in metadata.
pub(crate) const MICRO: Nanos = 1000;

/// Copies the metadata fields of a field list from one packet to another.
pub(crate) fn preserve(list: &[Field], from: &[u8], to: &mut [u8]) {
    for f in list {
        match f.place {
            Place::Word(w) => w.set(to, w.get(from)),
            _ => f.set_big(to, &f.get_big(from)),
        }
    }
}
