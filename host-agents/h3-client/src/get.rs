//! `get`: downloads, one after the other.

use std::fs::File;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::client::{Client, Failure, Options, Session, Target};
use crate::content::Seen;

/// Silence after which a client whose port may change says something, so that the server hears of it.
const KEEP_ALIVE: Duration = Duration::from_millis(200);

/// Options of `get`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to download; URLs in a row with the same host and port share a connection
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,
    #[command(flatten)]
    options: Options,
    /// Where to put the files, by the last part of their paths; nowhere if absent
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Once so many bytes of a download have come, go on from another UDP port without QUIC knowing, as behind a NAT that starts again
    #[arg(long, value_name = "BYTES")]
    rebind_after: Option<u64>,
}

/// What came of a URL.
#[derive(Debug, Default, Serialize)]
struct Line {
    url: String,
    /// Why it is not whole; absent if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    status: Option<u16>,
    bytes: u64,
    sha256: Option<String>,
    seconds: Seconds,
    /// The client's addresses at begin and end.
    local: Vec<SocketAddr>,
    /// The server's.
    remote: Vec<SocketAddr>,
}

/// Since the download began.
#[derive(Debug, Default, Serialize)]
struct Seconds {
    /// None on a connection that was there already.
    handshake: Option<f64>,
    first_byte: Option<f64>,
    total: f64,
}

impl Line {
    fn note(&mut self, session: &Session) {
        if let Ok((local, remote)) = session.socket().addresses() {
            self.local.push(local);
            self.remote.push(remote);
        }
    }
}

/// Whether every answer came, with a status of success.
pub async fn run(args: &Args) -> Result<bool> {
    let client = Client::new(&args.options, args.rebind_after.map(|_| KEEP_ALIVE))?;
    let mut open: Option<(Target, Session)> = None;
    let mut good = true;
    for url in &args.urls {
        let target = Target::new(url).await?;
        let begun = Instant::now();
        let mut line = Line {
            url: url.clone(),
            ..Line::default()
        };
        let mut seen = Seen::new(true);
        let usable = open.take_if(|(there, session)| target.is_at(there) && !session.is_over());
        if let Some((_, session)) = open.take() {
            session.close().await;
        }
        open = usable;
        let done = async {
            if open.is_none() {
                open = Some((target.clone(), client.connect(&target).await?));
                line.seconds.handshake = Some(begun.elapsed().as_secs_f64());
            }
            let (_, session) = open.as_mut().expect("there is one");
            line.note(session);
            download(args, &target, session, (&mut line, &mut seen, begun)).await
        }
        .await;
        if let Some((_, session)) = &open {
            line.note(session);
        }
        line.seconds.total = begun.elapsed().as_secs_f64();
        line.bytes = seen.bytes;
        line.sha256 = seen.digest();
        line.error = done.err().map(|failure| failure.0);
        good &= line.error.is_none() && line.status.is_some_and(|status| status / 100 == 2);
        println!("{}", serde_json::to_string(&line)?);
    }
    if let Some((_, session)) = open {
        session.close().await;
    }
    Ok(good)
}

async fn download(
    args: &Args,
    target: &Target,
    session: &mut Session,
    (line, seen, begun): (&mut Line, &mut Seen, Instant),
) -> Result<(), Failure> {
    let mut answer = session.get(&target.uri).await?;
    line.seconds.first_byte = Some(begun.elapsed().as_secs_f64());
    line.status = Some(answer.head.status().as_u16());
    let mut file = match &args.output {
        Some(folder) => {
            Some(create(folder, target).map_err(|error| Failure::new(format!("{error:#}")))?)
        }
        None => None,
    };
    let mut rebind_after = args.rebind_after;
    while let Some(part) = answer.part().await? {
        seen.add(&part);
        if let Some(file) = &mut file {
            file.write_all(&part).map_err(Failure::new)?;
        }
        if rebind_after.take_if(|bytes| seen.bytes >= *bytes).is_some() {
            session.socket().rebind().map_err(Failure::new)?;
        }
    }
    Ok(())
}

fn create(folder: &Path, target: &Target) -> Result<File> {
    let name = target.uri.path().rsplit('/').next().unwrap_or_default();
    let path = folder.join(if name.is_empty() { "index.html" } else { name });
    File::create(&path).with_context(|| format!("cannot write {}", path.display()))
}
