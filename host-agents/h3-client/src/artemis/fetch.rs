//! One download, and where its time went.

use std::fs::File;
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use artemis::{Cache, Name};

use super::{Lookup, Proxy, Report, race, through};
use crate::client::{Client, Failure, Options, Session, Url};

/// How long a connection may take to go to the preferred address, once its download is whole.
const PATIENCE: Duration = Duration::from_secs(2);

/// How to get to a service by its name.
pub enum Way {
    /// Its address is looked up first.
    Lookup(Lookup),
    /// The first flight goes to this proxy, with the name.
    QuicSocks(Proxy),
}

/// What to download, and how.
pub struct Fetch {
    /// From where.
    pub url: String,
    /// How to get to its host.
    pub way: Way,
    /// File of what is known of services that are looked up.
    pub cache: Option<PathBuf>,
    /// Where to put the body; nowhere if absent.
    pub output: Option<PathBuf>,
    /// Of connections.
    pub options: Options,
}

impl Fetch {
    /// Does it. An error means that it could not begin.
    pub async fn run(self) -> Result<Report> {
        let url = Url::new(&self.url)?;
        if let Way::QuicSocks(_) = self.way {
            ensure!(
                url.host.parse::<IpAddr>().is_err(),
                "--quicksocks has a name resolved, and {} is an address; write https://name:port/path",
                url.host
            );
        }
        let file = self.output.as_ref().map(|path| {
            File::create(path).with_context(|| format!("cannot write {}", path.display()))
        });
        let mut file = file.transpose()?;
        let client = Client::new(&self.options, None)?;
        let memory = Memory::new(self.cache, &url)?;
        let mut report = Report {
            url: self.url,
            ..Report::default()
        };
        let begun = Instant::now();
        let (what, noted) = ((&client, &url), (&mut report, begun));
        let got = match self.way {
            Way::Lookup(lookup) => get(what, lookup, memory.as_ref(), file.as_mut(), noted).await,
            Way::QuicSocks(proxy) => through::get(what, proxy, file.as_mut(), noted).await,
        };
        report.error = got.err().map(|failure| failure.0);
        Ok(report)
    }
}

async fn get(
    (client, url): (&Client, &Url),
    lookup: Lookup,
    memory: Option<&Memory>,
    file: Option<&mut File>,
    (report, begun): (&mut Report, Instant),
) -> Result<(), Failure> {
    let since = |when: Instant| Some(when.duration_since(begun).as_secs_f64());
    let failed = |error: anyhow::Error| Failure::new(format!("{error:#}"));
    report.cached = memory.and_then(Memory::get);
    let (service, found) = lookup.find(url).await.map_err(failed)?;
    (report.service, report.found) = (Some(service), Some(found));
    report.seconds.name = since(Instant::now());
    let race = race(client, url, report.cached, service).await;
    if let (Some(memory), Some(_)) = (memory, report.cached)
        && !race.as_ref().is_ok_and(|race| race.fallback.is_none())
    {
        memory.invalidate();
    }
    let mut race = race?;
    report.seconds.connect = since(Instant::now());
    (report.connected, report.invalidated) = (Some(race.address), race.fallback);
    report.preferred = race.session.preferred();
    report.service_ttl = race.session.service_ttl();
    report.local = race
        .session
        .socket()
        .addresses()
        .ok()
        .map(|(local, _)| local);
    // Only what the Service Address led to: after its time, a client is to ask there again (Artemis, section 3.5).
    if race.address == service
        && let (Some(memory), Some(unicast)) = (memory, report.preferred)
    {
        memory.put(unicast, report.service_ttl.unwrap_or(0));
    }
    let done = download(&mut race.session, url, file, (report, begun)).await;
    report.seconds.total = since(Instant::now());
    if report
        .preferred
        .is_some_and(|preferred| preferred != race.address)
        && done.is_ok()
    {
        let moved = tokio::time::timeout(PATIENCE, race.session.socket().moved()).await;
        report.seconds.migrated = moved.ok().flatten().and_then(since);
    }
    race.session.close().await;
    done
}

/// Asks for `url`, and notes what comes.
pub(super) async fn download<S>(
    session: &mut Session<S>,
    url: &Url,
    mut file: Option<&mut File>,
    (report, begun): (&mut Report, Instant),
) -> Result<(), Failure> {
    let mut answer = session.get(&url.uri).await?;
    report.seconds.first_byte = Some(begun.elapsed().as_secs_f64());
    report.status = Some(answer.head.status().as_u16());
    while let Some(part) = answer.part().await? {
        report.bytes += part.len() as u64;
        if let Some(file) = &mut file {
            file.write_all(&part).map_err(Failure::new)?;
        }
    }
    Ok(())
}

/// What is known of one service. A cache that fails is as good as an empty one.
struct Memory {
    cache: Cache,
    name: Name,
    port: u16,
}

impl Memory {
    fn new(path: Option<PathBuf>, url: &Url) -> Result<Option<Self>> {
        let Some(path) = path else {
            return Ok(None);
        };
        Ok(Some(Self {
            cache: Cache::shared(path),
            name: Name::new(&url.host)?,
            port: url.port,
        }))
    }

    fn get(&self) -> Option<SocketAddr> {
        warn(self.cache.get(&self.name, self.port)).flatten()
    }

    fn put(&self, unicast: SocketAddr, service_ttl: u64) {
        warn(self.cache.put(&self.name, self.port, unicast, service_ttl));
    }

    fn invalidate(&self) {
        warn(self.cache.invalidate(&self.name, self.port));
    }
}

fn warn<T>(done: std::io::Result<T>) -> Option<T> {
    done.inspect_err(|error| eprintln!("frontage-get: --cache: {error}"))
        .ok()
}
