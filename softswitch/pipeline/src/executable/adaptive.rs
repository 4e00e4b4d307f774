// SPDX-License-Identifier: Apache-2.0
//! Native code that adapts to the packets.
//!
//! The interpreter runs a control for a sample of the packets, and notes their paths. When the sample is complete, a thread
//! compiles the program again for these paths. The pipelines and lanes of a program share the sample and the code.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use parking_lot::Mutex;

use super::Executable;
use crate::native::Native;
use crate::options::Options;
use crate::paths::{Paths, Step};

/// Number of paths in a sample.
const SAMPLE: u32 = 2048;
/// Factor by which each version of the code is sampled less often than the one before, so that sampling soon costs nothing.
const SLOWER: u32 = 16;
/// Maximum number of versions that are sampled less often.
const MAX_SLOWER: u32 = 2;

/// The versions of a program's native code.
#[derive(Debug)]
pub(super) struct Versions {
    /// The newest version, if there is native code.
    newest: Mutex<Option<Arc<Native>>>,
    /// Number of the newest version, from 0.
    number: AtomicU32,
    sample: Mutex<Sample>,
}

/// The noted paths through each control.
#[derive(Debug, Default)]
struct Sample {
    controls: Vec<Paths>,
    paths: u32,
}

impl Versions {
    pub(super) fn new(first: Option<Arc<Native>>) -> Self {
        Self {
            newest: Mutex::new(first),
            number: AtomicU32::default(),
            sample: Mutex::default(),
        }
    }

    pub(super) fn newest(&self) -> Option<Arc<Native>> {
        self.newest.lock().clone()
    }

    /// Adds a path to the sample, and returns the sample if it is complete.
    fn add(&self, control: usize, path: &[Step]) -> Option<Sample> {
        let mut sample = self.sample.lock();
        if sample.controls.len() <= control {
            sample.controls.resize_with(control + 1, Paths::default);
        }
        sample.controls[control].add(path);
        sample.paths += 1;
        (sample.paths == SAMPLE).then(|| std::mem::take(&mut *sample))
    }

    fn take_sample(&self) -> Sample {
        std::mem::take(&mut *self.sample.lock())
    }

    pub(super) fn publish(&self, native: Arc<Native>) {
        *self.newest.lock() = Some(native);
        self.number.fetch_add(1, Ordering::Release);
    }
}

/// The native code that a pipeline or a lane runs, which changes between packets.
#[derive(Debug)]
pub(crate) struct Adaptive {
    program: Arc<Executable>,
    is_for_lanes: bool,
    native: Arc<Native>,
    /// The version of `native`.
    number: u32,
    /// Number of runs of controls per noted path at first; 0 if none is noted.
    period: u32,
    /// Number of runs of controls until the next noted path.
    until_next: u32,
    /// Memory for the next path.
    buffer: Vec<Step>,
}

impl Adaptive {
    /// Returns the native code of a program; `None` if the host is not supported.
    pub(crate) fn new(
        program: &Arc<Executable>,
        is_for_lanes: bool,
        options: &Options,
    ) -> Option<Self> {
        let versions = program.versions(is_for_lanes);
        let number = versions.number.load(Ordering::Acquire);
        Some(Self {
            native: versions.newest()?,
            program: Arc::clone(program),
            is_for_lanes,
            number,
            period: options.adapt_every,
            until_next: options.adapt_every,
            buffer: Vec::new(),
        })
    }

    pub(crate) fn native(&self) -> &Native {
        &self.native
    }

    /// Begins a run of a control. Returns a buffer for its path if that is to be noted.
    #[inline]
    pub(crate) fn sample(&mut self) -> Option<Vec<Step>> {
        self.until_next = self.until_next.wrapping_sub(1);
        (self.until_next == 0).then(|| self.begin_path()).flatten()
    }

    #[cold]
    fn begin_path(&mut self) -> Option<Vec<Step>> {
        self.renew();
        let slower = SLOWER.saturating_pow(self.number.min(MAX_SLOWER));
        self.until_next = self.period.saturating_mul(slower);
        (self.period != 0).then(|| std::mem::take(&mut self.buffer))
    }

    /// Changes to the newest code.
    fn renew(&mut self) {
        let versions = self.program.versions(self.is_for_lanes);
        let number = versions.number.load(Ordering::Acquire);
        if number != self.number
            && let Some(newest) = versions.newest()
        {
            (self.native, self.number) = (newest, number);
        }
    }

    /// Compiles the program for the paths that were noted since the last time, and changes to this code.
    pub(crate) fn adapt(&mut self) {
        let sample = self.program.versions(self.is_for_lanes).take_sample();
        if sample.paths != 0 {
            self.program.adapt(self.is_for_lanes, &sample.controls);
        }
        self.renew();
    }

    /// Adds a path to the sample. When the sample is complete, a thread compiles the program for it.
    pub(crate) fn add(&mut self, control: usize, path: Vec<Step>) {
        let versions = self.program.versions(self.is_for_lanes);
        let sample = versions.add(control, &path);
        self.buffer = path;
        self.buffer.clear();
        let Some(sample) = sample else { return };
        let (program, is_for_lanes) = (Arc::clone(&self.program), self.is_for_lanes);
        // Without a thread, the code remains as it is.
        let _ = thread::Builder::new()
            .name("softswitch-compile".to_owned())
            .spawn(move || program.adapt(is_for_lanes, &sample.controls));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adaptive(adapt_every: u32) -> Adaptive {
        let json = include_str!("../../tests/programs/router.json");
        let program = Arc::new(Executable::load(json).unwrap());
        let options = Options {
            adapt_every,
            ..Options::default()
        };
        Adaptive::new(&program, false, &options).unwrap()
    }

    /// Lets controls run, and returns the number of noted paths.
    fn run(adaptive: &mut Adaptive, controls: u32) -> u32 {
        let mut noted = 0;
        for _ in 0..controls {
            if let Some(mut path) = adaptive.sample() {
                let node = adaptive.program.compiled.controls[0];
                path.push(Step {
                    node,
                    action: None,
                    next: u32::MAX,
                });
                adaptive.add(0, path);
                noted += 1;
            }
        }
        noted
    }

    #[test]
    fn complete_samples_change_the_code_and_later_ones_are_slower() {
        let mut a = adaptive(2);
        assert_eq!(run(&mut a, 2 * SAMPLE), SAMPLE);
        // The thread takes its time.
        while a.number == 0 {
            thread::yield_now();
            a.renew();
        }
        run(&mut a, 2);
        assert_eq!(run(&mut a, 2 * SLOWER * 10), 10);
    }

    #[test]
    fn code_that_does_not_adapt_notes_nothing() {
        assert_eq!(run(&mut adaptive(0), 10_000), 0);
    }
}
