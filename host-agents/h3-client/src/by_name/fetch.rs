// SPDX-License-Identifier: Apache-2.0
//! One download with the time of each step.

use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use artemis::{Cache, Name};

use super::transfer::download;
use super::{Lookup, Proxy, Report, proxied, race};
use crate::Error;
use crate::client::{Client, Options, Url};

/// Time limit for the migration to the preferred address after the download.
const MIGRATION_TIMEOUT: Duration = Duration::from_secs(2);

/// How to reach a service by its name.
pub enum Route {
    /// Look up its address first.
    Lookup(Lookup),
    /// Send the first flight, with the name, to this proxy.
    QuicSocks(Proxy),
}

/// A download to run.
pub struct Fetch {
    /// The URL to download.
    pub url: String,
    /// How to reach its host.
    pub route: Route,
    /// Cache file with the unicast addresses of services.
    pub cache: Option<PathBuf>,
    /// File for the body, which is discarded without one.
    pub output: Option<PathBuf>,
    /// Connection options.
    pub options: Options,
}

impl Fetch {
    /// Runs the download. The report contains its errors.
    ///
    /// # Errors
    /// Returns an error if the download could not start.
    pub async fn run(self) -> Result<Report> {
        let url = Url::new(&self.url)?;
        if let Route::QuicSocks(_) = self.route {
            ensure!(
                url.host.parse::<IpAddr>().is_err(),
                "--quicksocks: the URL's host {} is an address: use https://name:port/path",
                url.host
            );
        }
        let file = self.output.as_ref().map(|path| {
            let file = File::create(path);
            file.with_context(|| format!("--output: cannot write {}", path.display()))
        });
        let mut file = file.transpose()?;
        let client = Client::new(&self.options, None)?;
        let cache = CacheEntry::new(self.cache, &url)?;
        let mut report = Report {
            url: self.url,
            ..Report::default()
        };
        let started = Instant::now();
        let (request, log) = ((&client, &url), (&mut report, started));
        let result = match self.route {
            Route::Lookup(lookup) => get(request, lookup, cache.as_ref(), file.as_mut(), log).await,
            Route::QuicSocks(proxy) => proxied::get(request, proxy, file.as_mut(), log).await,
        };
        report.error = result.err().map(|error| error.to_string());
        Ok(report)
    }
}

async fn get(
    (client, url): (&Client, &Url),
    lookup: Lookup,
    cache: Option<&CacheEntry>,
    file: Option<&mut File>,
    (report, started): (&mut Report, Instant),
) -> Result<(), Error> {
    let since_start = |when: Instant| Some(when.duration_since(started).as_secs_f64());
    report.cached = cache.and_then(CacheEntry::get);
    let (service, source) = lookup.find(url).await.map_err(Error::Setup)?;
    (report.service, report.found) = (Some(service), Some(source));
    report.seconds.name = since_start(Instant::now());
    let winner = race(client, url, report.cached, service).await;
    if let (Some(cache), Some(_)) = (cache, report.cached)
        && !winner
            .as_ref()
            .is_ok_and(|winner| winner.fallback_reason.is_none())
    {
        cache.invalidate();
    }
    let mut winner = winner?;
    report.seconds.connect = since_start(Instant::now());
    (report.connected, report.invalidated) = (Some(winner.address), winner.fallback_reason);
    report.preferred = winner.session.preferred();
    report.service_ttl = winner.session.service_ttl();
    let addresses = winner.session.socket().addresses();
    report.local = addresses.ok().map(|(local, _)| local);
    // Cache only addresses that the Service Address led to: when the TTL is over, the client must ask there again
    // (Artemis, section 3.5).
    if winner.address == service
        && let (Some(cache), Some(unicast)) = (cache, report.preferred)
    {
        cache.put(unicast, report.service_ttl.unwrap_or(0));
    }
    let result = download(&mut winner.session, url, file, (report, started)).await;
    report.seconds.total = since_start(Instant::now());
    let migrates = report
        .preferred
        .is_some_and(|preferred| preferred != winner.address);
    if migrates && result.is_ok() {
        let migrated = winner.session.socket().migrated();
        let migrated = tokio::time::timeout(MIGRATION_TIMEOUT, migrated).await;
        report.seconds.migrated = migrated.ok().flatten().and_then(since_start);
    }
    winner.session.close().await;
    result
}

/// The cache entry of one service. A cache that fails counts as empty.
struct CacheEntry {
    cache: Cache,
    name: Name,
    port: u16,
}

impl CacheEntry {
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
        warn_on_error(self.cache.get(&self.name, self.port)).flatten()
    }

    fn put(&self, unicast: SocketAddr, service_ttl: u64) {
        let stored = self.cache.put(&self.name, self.port, unicast, service_ttl);
        warn_on_error(stored);
    }

    fn invalidate(&self) {
        warn_on_error(self.cache.invalidate(&self.name, self.port));
    }
}

fn warn_on_error<T>(result: std::io::Result<T>) -> Option<T> {
    result
        .inspect_err(|error| eprintln!("frontage-get: --cache: {error}"))
        .ok()
}
