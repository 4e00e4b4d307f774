//! The access log: one JSON object a line, written by a thread of its own so that no request waits for a disk.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::{Instant, SystemTime};

use anyhow::{Context as _, Result};
use http::Request;
use http::uri::{Authority, PathAndQuery};
use serde::Serialize;

use crate::config::STANDARD_OUTPUT;
use crate::handoff::Given;

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
    /// The real server that gave it, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

impl Line {
    /// The line of a `request` that has just come from `client`; nothing is known of its answer.
    pub fn begin<B>(client: &SocketAddr, request: &Request<B>) -> Self {
        let uri = request.uri();
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let text = |part: Option<&str>| part.unwrap_or_default().to_owned();
        Self {
            time: time.map_or(0., |time| time.as_secs_f64()),
            client: client.to_string(),
            method: request.method().to_string(),
            authority: text(uri.authority().map(Authority::as_str)),
            path: text(uri.path_and_query().map(PathAndQuery::as_str)),
            status: 0,
            bytes: 0,
            seconds: 0.,
            whole: false,
            server: None,
        }
    }

    /// The same, of an answer that a real server has `given`.
    pub fn of(self, given: Given) -> Self {
        Self {
            status: given.status,
            bytes: given.bytes,
            whole: given.whole,
            server: Some(given.server),
            ..self
        }
    }

    /// Writes it to `log`: its answer, `begun` then, is over.
    pub fn end(mut self, begun: Instant, log: &Log) {
        self.seconds = begun.elapsed().as_secs_f64();
        log.write(self);
    }
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
            tracing::error!("access log: {error}");
        }
    }
}
