// SPDX-License-Identifier: Apache-2.0
//! `load`: a closed-loop load with a fixed number of connections and of concurrent requests on each.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::Result;
use futures_util::future::join_all;
use serde::Serialize;
use tokio::task::JoinSet;

use crate::Error;
use crate::body::{BodyMeter, Expected};
use crate::client::{Client, Options, Roaming, Session, Target};
use crate::moves::MoveCounts;

/// Delay after a failed connection attempt, so that an unavailable server is not flooded.
const RECONNECT_DELAY: Duration = Duration::from_millis(100);

/// Options of `load`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("end").required(true))]
pub struct Args {
    /// URL to request
    url: String,
    /// Number of concurrent connections
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// Number of requests
    #[arg(long, value_name = "M", group = "end")]
    requests: Option<u64>,
    /// Time in seconds during which to start requests; requests in progress then complete
    #[arg(long, value_name = "S", group = "end")]
    seconds: Option<f64>,
    /// Number of concurrent requests on each connection
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    parallel: u32,
    /// Open a new connection for each request
    #[arg(long, conflicts_with = "parallel")]
    reconnect: bool,
    /// Expected body: its size in bytes, or its SHA-256 digest
    #[arg(long, value_name = "SIZE|SHA256")]
    expect: Option<Expected>,
    #[command(flatten)]
    options: Options,
}

/// Result of the load.
#[derive(Debug, Default, Serialize)]
struct Summary {
    /// Requests answered with status 200 and the expected body.
    requests: u64,
    /// Failed requests, by reason.
    failures: BTreeMap<String, u64>,
    /// Connections whose handshake was completed.
    connections: u64,
    /// Effects of the servers' announcements; absent without `--moves`.
    #[serde(skip_serializing_if = "Option::is_none")]
    moves: Option<Moves>,
    /// Bytes of response bodies.
    bytes: u64,
    /// Seconds from the first handshake to the last response.
    seconds: f64,
    latency: Latency,
}

/// Effects of the servers' announcements.
#[derive(Debug, Serialize)]
struct Moves {
    /// Migrations to an announced address.
    completed: u64,
    /// Announced addresses at which the server did not respond.
    failed: u64,
    /// Connections opened at an announced server.
    handed_over: u64,
}

impl Moves {
    fn of(counts: &MoveCounts) -> Self {
        Self {
            completed: counts.completed.load(Relaxed),
            failed: counts.failed.load(Relaxed),
            handed_over: counts.handed_over.load(Relaxed),
        }
    }
}

/// Seconds from the start of a request, including its handshake if it needed one, to the last byte of the response.
#[derive(Debug, Default, Serialize)]
struct Latency {
    p50: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
}

impl Latency {
    fn from_samples(mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        // Percentiles by the nearest-rank method.
        let rank = |share: f64| (share * seconds.len() as f64).ceil() as usize;
        let at = |share| seconds.get(rank(share).saturating_sub(1)).copied();
        Self {
            p50: at(0.50),
            p99: at(0.99),
            max: at(1.0),
        }
    }
}

struct Load {
    args: Args,
    target: Target,
    client: Client,
    started: Instant,
    requests_started: RefCell<u64>,
    summary: RefCell<Summary>,
    latencies: RefCell<Vec<f64>>,
}

/// Runs the command; returns true if no request failed.
pub async fn run(args: Args) -> Result<bool> {
    let load = Rc::new(Load {
        target: Target::new(&args.url).await?,
        client: Client::new(&args.options, None)?,
        started: Instant::now(),
        requests_started: RefCell::default(),
        summary: RefCell::default(),
        latencies: RefCell::default(),
        args,
    });
    let mut workers = JoinSet::new();
    for _ in 0..load.args.connections {
        workers.spawn_local(load.clone().run_connection());
    }
    let sessions = workers.join_all().await;
    let mut summary = load.summary.take();
    summary.seconds = load.started.elapsed().as_secs_f64();
    summary.latency = Latency::from_samples(load.latencies.take());
    summary.moves = load.client.moves().map(Moves::of);
    let handed_over = summary.moves.as_ref().map_or(0, |moves| moves.handed_over);
    summary.connections += handed_over;
    println!("{}", serde_json::to_string(&summary)?);
    let mut closing: JoinSet<()> = JoinSet::new();
    for session in sessions.into_iter().flatten() {
        closing.spawn_local(session.close());
    }
    closing.join_all().await;
    Ok(summary.failures.is_empty())
}

impl Load {
    /// Counts the next request and returns its start time, or `None` if there are no more requests to make.
    fn start_request(&self) -> Option<Instant> {
        let mut requests_started = self.requests_started.borrow_mut();
        let has_more = match (self.args.requests, self.args.seconds) {
            (Some(requests), _) => *requests_started < requests,
            (_, seconds) => seconds.is_none_or(|s| self.started.elapsed().as_secs_f64() < s),
        };
        *requests_started += u64::from(has_more);
        has_more.then(Instant::now)
    }

    /// Makes requests until there are no more; returns the connection that is still open.
    async fn run_connection(self: Rc<Self>) -> Option<Roaming> {
        let mut open = None;
        while let Some(started) = self.start_request() {
            let connection = match Roaming::connect(&self.client, &self.target).await {
                Ok(connection) => connection,
                Err(error) => {
                    self.count(started, Err(error));
                    tokio::time::sleep(RECONNECT_DELAY).await;
                    continue;
                }
            };
            self.summary.borrow_mut().connections += 1;
            let starts = (0..self.args.parallel).map(|i| (i == 0).then_some(started));
            join_all(starts.map(|started| self.run_requests(&connection, started))).await;
            if self.args.reconnect || connection.is_closed() {
                tokio::task::spawn_local(connection.close());
            } else {
                open = Some(connection);
            }
        }
        open
    }

    /// Makes sequential requests on `connection` as long as it may be used. The first one has started already if `started` is
    /// set.
    async fn run_requests(&self, connection: &Roaming, mut started: Option<Instant>) {
        while let Some(started) = started.take().or_else(|| self.start_request()) {
            let session = connection.session().await;
            self.count(started, self.request(&session).await);
            if self.args.reconnect || connection.is_closed() {
                return;
            }
        }
    }

    /// Counts the result of a request.
    fn count(&self, started: Instant, result: Result<(), Error>) {
        let mut summary = self.summary.borrow_mut();
        match result {
            Ok(()) => {
                summary.requests += 1;
                let mut latencies = self.latencies.borrow_mut();
                latencies.push(started.elapsed().as_secs_f64());
            }
            Err(error) => *summary.failures.entry(error.to_string()).or_default() += 1,
        }
    }

    async fn request(&self, session: &Session) -> Result<(), Error> {
        let mut response = session.get(&self.target.uri).await?;
        if response.head.status() != http::StatusCode::OK {
            return Err(Error::Status(response.head.status().as_u16()));
        }
        let expected = self.args.expect.as_ref();
        let mut meter = BodyMeter::expecting(expected);
        while let Some(chunk) = response.chunk().await? {
            meter.add(&chunk);
            self.summary.borrow_mut().bytes += chunk.len() as u64;
        }
        meter.check(expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_use_the_nearest_rank() {
        let latency = Latency::from_samples((1..=100).rev().map(f64::from).collect());
        assert_eq!(
            (latency.p50, latency.p99, latency.max),
            (Some(50.), Some(99.), Some(100.))
        );
        assert_eq!(Latency::from_samples(vec![5.]).p99, Some(5.));
        assert_eq!(Latency::from_samples(vec![]).max, None);
    }
}
