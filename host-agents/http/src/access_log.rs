// SPDX-License-Identifier: Apache-2.0
//! The access log: one JSON object per line, written by a separate thread, so that no request waits for a disk.

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

/// Maximum number of queued lines. Beyond it, requests wait, so that no line is lost.
const MAX_QUEUED: usize = 4096;

/// One request and its response.
#[derive(Debug, Default, Serialize)]
pub struct Line {
    /// Time of the request in seconds since 1970.
    pub time: f64,
    /// The client's address and port.
    pub client: String,
    /// Method.
    pub method: String,
    /// Authority.
    pub authority: String,
    /// Path and query.
    pub path: String,
    /// Status of the response.
    pub status: u16,
    /// Body bytes that the transport accepted.
    pub bytes: u64,
    /// Time from the request header to the end of the response in seconds.
    pub seconds: f64,
    /// True if the response is complete.
    pub whole: bool,
    /// Name of the real server that responded, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

impl Line {
    /// Create the line of a `request` that has just arrived from `client`. If `log` writes nothing, it stays empty.
    pub fn new<B>(log: &AccessLog, client: &SocketAddr, request: &Request<B>) -> Self {
        if log.0.is_none() {
            return Self::default();
        }
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

    /// Write the line to `log` at the end of the response to a request that arrived at `start`.
    pub fn finish(mut self, start: Instant, log: &AccessLog) {
        self.seconds = start.elapsed().as_secs_f64();
        log.write(self);
    }
}

/// Handle of the access log.
#[derive(Clone, Debug)]
pub struct AccessLog(Option<SyncSender<Line>>);

impl AccessLog {
    /// Append to the file at `path`, or to the standard output if it is `-`. Without a path nothing is written.
    pub fn open(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else {
            return Ok(Self(None));
        };
        let out: Box<dyn Write + Send> = if path == Path::new(STANDARD_OUTPUT) {
            Box::new(io::stdout())
        } else {
            let file = OpenOptions::new().create(true).append(true).open(path);
            Box::new(
                file.with_context(|| format!("{}: cannot open the access log", path.display()))?,
            )
        };
        let (sender, lines) = mpsc::sync_channel(MAX_QUEUED);
        thread::Builder::new()
            .name("access-log".into())
            .spawn(move || write(&lines, BufWriter::new(out)))?;
        Ok(Self(Some(sender)))
    }

    /// Queue a line.
    pub fn write(&self, line: Line) {
        if let Some(sender) = &self.0 {
            // The thread lives as long as a sender.
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
            tracing::warn!("access log: {error}");
        }
    }
}
