// SPDX-License-Identifier: Apache-2.0
//! The output of packet traces: a file, or standard error.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;

use clap::ValueEnum;
use parking_lot::Mutex;
use softswitch_pipeline::{Paragraphs, Trace};

/// The format of traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TraceFormat {
    /// Readable text, one paragraph per packet.
    Text,
    /// One JSON object per line and pass: one for ingress and one for egress.
    Json,
}

/// A stream of traces that threads share.
#[derive(Debug)]
pub struct TraceLog {
    format: TraceFormat,
    out: Mutex<Out>,
}

#[derive(Debug)]
struct Out {
    file: File,
    paragraphs: Paragraphs,
    failing: bool,
}

impl TraceLog {
    /// Opens a new file, or uses standard error.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(format: TraceFormat, path: Option<&Path>) -> io::Result<Self> {
        let file = match path {
            Some(path) => File::create(path)?,
            None => io::stderr().as_fd().try_clone_to_owned()?.into(),
        };
        Ok(Self {
            format,
            out: Mutex::new(Out {
                file,
                paragraphs: Paragraphs::default(),
                failing: false,
            }),
        })
    }

    /// Writes traces at once, and returns the number of those that could not be written. Logs the first of consecutive failures.
    pub fn write(&self, traces: &[Trace]) -> u64 {
        if traces.is_empty() {
            return 0;
        }
        let mut out = self.out.lock();
        let mut text = String::new();
        for trace in traces {
            match self.format {
                TraceFormat::Text => out.paragraphs.push(&mut text, trace),
                TraceFormat::Json => {
                    // It cannot fail: all maps have text keys.
                    text.push_str(&serde_json::to_string(trace).unwrap_or_default());
                    text.push('\n');
                }
            }
        }
        let written = out.file.write_all(text.as_bytes());
        let was_failing = std::mem::replace(&mut out.failing, written.is_err());
        match written {
            Ok(()) => 0,
            Err(e) => {
                if !was_failing {
                    tracing::error!(
                        "cannot write the trace: {e}: the switch continues and counts lost traces"
                    );
                }
                traces.len() as u64
            }
        }
    }
}
