//! The access log: one JSON object a line, written by a thread of its own so that no request waits for a disk.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::config::STANDARD_OUTPUT;

/// Lines that may wait; beyond, requests do, so that none is missing.
const BACKLOG: usize = 4096;

/// What is written of a request.
#[derive(Debug, Serialize)]
pub struct Line {
    /// Seconds since 1970.
    pub time: f64,
    /// The client's address and port as its last packet had them.
    pub client: String,
    /// As the request says.
    pub method: String,
    /// As the request says.
    pub authority: String,
    /// Path and query.
    pub path: String,
    /// Of the answer.
    pub status: u16,
    /// Bytes of body that QUIC took for sending.
    pub bytes: u64,
    /// Until then, from the request's header on.
    pub seconds: f64,
    /// Whether the answer was given whole.
    pub whole: bool,
}

/// Where lines go.
#[derive(Clone, Debug)]
pub struct Log(Option<SyncSender<Line>>);

impl Log {
    /// Appends to the file at `path`, or to the standard output if that is `-`.
    pub fn open(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else {
            return Ok(Self(None));
        };
        let out: Box<dyn Write + Send> = if path == Path::new(STANDARD_OUTPUT) {
            Box::new(io::stdout())
        } else {
            let file = OpenOptions::new().create(true).append(true).open(path);
            Box::new(file.with_context(|| format!("cannot write {}", path.display()))?)
        };
        let (sender, lines) = mpsc::sync_channel(BACKLOG);
        thread::Builder::new()
            .name("access-log".into())
            .spawn(move || write(&lines, BufWriter::new(out)))?;
        Ok(Self(Some(sender)))
    }

    /// Writes a line.
    pub fn write(&self, line: Line) {
        if let Some(sender) = &self.0 {
            // It ends only with the last sender.
            let _ = sender.send(line);
        }
    }
}

fn write(lines: &Receiver<Line>, mut out: impl Write) {
    while let Ok(line) = lines.recv() {
        let written = std::iter::once(line)
            .chain(lines.try_iter())
            .try_for_each(|line| {
                serde_json::to_writer(&mut out, &line)?;
                out.write_all(b"\n")
            });
        if let Err(error) = written.and_then(|()| out.flush()) {
            eprintln!("frontage-cclb7-quic: access log: {error}");
        }
    }
}
