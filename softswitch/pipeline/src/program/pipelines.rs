// SPDX-License-Identifier: Apache-2.0
//! The pipelines of a program for TNA. A single pipeline runs in all pipes, and otherwise each pipe has its own.

/// The name of the control that is a pipeline's ghost thread.
pub(crate) const GHOST: &str = "ghost";

/// The pipelines of a program, and which pipe runs which one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pipelines {
    /// The different pipelines; empty for a single one without a name.
    names: Vec<String>,
    /// The pipeline of each pipe that the program names. Further pipes begin again with the first one.
    by_pipe: Vec<usize>,
}

impl Pipelines {
    /// Creates the pipelines with the names of the pipelines of all pipes.
    pub(crate) fn new(by_pipe: Vec<String>) -> Self {
        let mut pipelines = Self::default();
        for name in by_pipe {
            let known = pipelines.names.iter().position(|known| *known == name);
            pipelines
                .by_pipe
                .push(known.unwrap_or(pipelines.names.len()));
            if known.is_none() {
                pipelines.names.push(name);
            }
        }
        pipelines
    }

    /// Returns the names of the different pipelines; none for a single one.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the number of different pipelines.
    pub(crate) fn count(&self) -> usize {
        self.names.len().max(1)
    }

    /// Returns the number of pipes that the program needs.
    pub(crate) fn pipes(&self) -> usize {
        self.by_pipe.len().max(1)
    }

    /// Returns the number of the pipeline that a pipe runs.
    #[inline]
    pub(crate) fn of_pipe(&self, pipe: usize) -> usize {
        match self.by_pipe.as_slice() {
            [] => 0,
            by_pipe => by_pipe[pipe % by_pipe.len()],
        }
    }

    /// Returns the number of the pipeline to which an object belongs, by its name; `None` if it belongs to all.
    pub(crate) fn of_object(&self, name: &str) -> Option<usize> {
        let begins = |pipeline: &String| {
            let rest = name.strip_prefix(pipeline.as_str());
            rest.is_some_and(|rest| rest.starts_with('.'))
        };
        self.names.iter().position(begins)
    }
}
