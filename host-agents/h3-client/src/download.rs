// SPDX-License-Identifier: Apache-2.0
//! A download and its report, one line of JSON.

use std::fs::File;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::Error;
use crate::body::BodyMeter;
use crate::client::{Session, Target};

/// Report of one download.
#[derive(Debug, Default, Serialize)]
pub struct DownloadReport {
    /// URL as given on the command line.
    url: String,
    /// Why the download failed; absent if it is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// HTTP status of the response.
    status: Option<u16>,
    bytes: u64,
    sha256: Option<String>,
    /// True if the server accepted the request as early data; absent if the client had no session ticket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early_data: Option<bool>,
    /// Time of each step.
    pub seconds: Seconds,
    /// Client addresses at the start and the end.
    local: Vec<SocketAddr>,
    /// Server addresses at the start and the end.
    remote: Vec<SocketAddr>,
}

/// Seconds from the start of the download to each step.
#[derive(Debug, Default, Serialize)]
pub struct Seconds {
    /// Handshake complete, or request sent as early data; absent on an existing connection.
    pub handshake: Option<f64>,
    /// Request sent.
    asked: Option<f64>,
    /// Response header received.
    first_byte: Option<f64>,
    /// End of the download.
    pub total: f64,
}

impl DownloadReport {
    /// Creates the report of a download of `url` that has not started.
    pub fn new(url: &str) -> Self {
        Self {
            url: url.into(),
            ..Self::default()
        }
    }

    /// Records the current addresses of `session`.
    pub fn record_addresses(&mut self, session: &Session) {
        if let Ok((local, remote)) = session.socket().addresses() {
            self.local.push(local);
            self.remote.push(remote);
        }
    }

    /// Downloads `target` on `session` and saves it in the directory `output`.
    ///
    /// After `rebind_after` bytes, the client switches to another port. `meter` measures the body; times count from `started`.
    pub async fn download(
        &mut self,
        session: &Session,
        target: &Target,
        output: Option<&Path>,
        mut rebind_after: Option<u64>,
        (meter, started): (&mut BodyMeter, Instant),
    ) -> Result<(), Error> {
        self.seconds.asked = Some(started.elapsed().as_secs_f64());
        let mut response = session.get(&target.uri).await?;
        self.seconds.first_byte = Some(started.elapsed().as_secs_f64());
        self.status = Some(response.head.status().as_u16());
        let file = output.map(|folder| create_file(folder, target)).transpose();
        let mut file = file.map_err(Error::Setup)?;
        while let Some(chunk) = response.chunk().await? {
            meter.add(&chunk);
            if let Some(file) = &mut file {
                file.write_all(&chunk)?;
            }
            if rebind_after
                .take_if(|bytes| meter.bytes >= *bytes)
                .is_some()
            {
                session.socket().rebind()?;
            }
        }
        Ok(())
    }

    /// Prints the report; returns true if the download is complete and its status is a success.
    pub fn print(mut self, meter: &BodyMeter, error: Option<&Error>) -> Result<bool> {
        self.bytes = meter.bytes;
        self.sha256 = meter.digest();
        self.error = error.map(ToString::to_string);
        println!("{}", serde_json::to_string(&self)?);
        Ok(self.error.is_none() && self.status.is_some_and(|status| status / 100 == 2))
    }
}

fn create_file(folder: &Path, target: &Target) -> Result<File> {
    let name = target.uri.path().rsplit('/').next().unwrap_or_default();
    let path = folder.join(if name.is_empty() { "index.html" } else { name });
    File::create(&path).with_context(|| format!("--output: cannot write {}", path.display()))
}
