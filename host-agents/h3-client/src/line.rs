//! A download, and what is said of it.

use std::fs::File;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::client::{Failure, Session, Target};
use crate::content::Seen;

/// What came of a URL.
#[derive(Debug, Default, Serialize)]
pub struct Line {
    /// As it was given.
    url: String,
    /// Why it is not whole; absent if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Of the answer.
    status: Option<u16>,
    bytes: u64,
    sha256: Option<String>,
    /// When what came.
    pub seconds: Seconds,
    /// The client's addresses at begin and end.
    local: Vec<SocketAddr>,
    /// The server's.
    remote: Vec<SocketAddr>,
}

/// Since the download began.
#[derive(Debug, Default, Serialize)]
pub struct Seconds {
    /// None on a connection that was there already.
    pub handshake: Option<f64>,
    /// When it was asked for.
    asked: Option<f64>,
    /// Of the answer's header.
    first_byte: Option<f64>,
    /// Until its end.
    pub total: f64,
}

impl Line {
    /// Of a URL of which nothing came yet.
    pub fn new(url: &str) -> Self {
        Self {
            url: url.into(),
            ..Self::default()
        }
    }

    /// The addresses of `session` as they are now.
    pub fn note(&mut self, session: &Session) {
        if let Ok((local, remote)) = session.socket().addresses() {
            self.local.push(local);
            self.remote.push(remote);
        }
    }

    /// Downloads `target` on `session`, and saves it in the folder `output`; once `rebind_after` bytes have come, it goes on from another port. It began then.
    pub async fn download(
        &mut self,
        session: &Session,
        target: &Target,
        output: Option<&Path>,
        mut rebind_after: Option<u64>,
        (seen, begun): (&mut Seen, Instant),
    ) -> Result<(), Failure> {
        self.seconds.asked = Some(begun.elapsed().as_secs_f64());
        let mut answer = session.get(&target.uri).await?;
        self.seconds.first_byte = Some(begun.elapsed().as_secs_f64());
        self.status = Some(answer.head.status().as_u16());
        let mut file = output.map(|folder| create(folder, target)).transpose();
        let file = file
            .as_mut()
            .map_err(|error| Failure::new(format!("{error:#}")))?;
        while let Some(part) = answer.part().await? {
            seen.add(&part);
            if let Some(file) = file {
                file.write_all(&part).map_err(Failure::new)?;
            }
            if rebind_after.take_if(|bytes| seen.bytes >= *bytes).is_some() {
                session.socket().rebind().map_err(Failure::new)?;
            }
        }
        Ok(())
    }

    /// Prints it once the body was `seen`, and all was `done`. Whether it came with a status of success.
    pub fn print(mut self, seen: &Seen, done: Result<(), Failure>) -> Result<bool> {
        self.bytes = seen.bytes;
        self.sha256 = seen.digest();
        self.error = done.err().map(|failure| failure.0);
        println!("{}", serde_json::to_string(&self)?);
        Ok(self.error.is_none() && self.status.is_some_and(|status| status / 100 == 2))
    }
}

fn create(folder: &Path, target: &Target) -> Result<File> {
    let name = target.uri.path().rsplit('/').next().unwrap_or_default();
    let path = folder.join(if name.is_empty() { "index.html" } else { name });
    File::create(&path).with_context(|| format!("cannot write {}", path.display()))
}
