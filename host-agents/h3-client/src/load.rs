//! `load`: so many connections, each with so many requests under way at any time.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Result;
use futures_util::future::join_all;
use serde::Serialize;
use tokio::task::JoinSet;

use crate::client::{Client, Failure, Options, Session, Target};
use crate::content::{Expected, Seen};

/// How long a connection waits after one that could not be made: a server that is away is not to be flooded.
const PAUSE: Duration = Duration::from_millis(100);

/// Options of `load`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("end").required(true))]
pub struct Args {
    /// What to ask for
    url: String,
    /// How many connections there are at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// How many requests to make
    #[arg(long, value_name = "M", group = "end")]
    requests: Option<u64>,
    /// For how long to begin requests; those under way then come to their end
    #[arg(long, value_name = "S", group = "end")]
    seconds: Option<f64>,
    /// How many requests each connection has under way at a time
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    parallel: u32,
    /// A new connection for each request
    #[arg(long, conflicts_with = "parallel")]
    reconnect: bool,
    /// What every body must be: its size in bytes, or its SHA-256
    #[arg(long, value_name = "SIZE|SHA256")]
    expect: Option<Expected>,
    #[command(flatten)]
    options: Options,
}

/// How it went.
#[derive(Debug, Default, Serialize)]
struct Summary {
    /// Answered with 200, and as expected.
    requests: u64,
    /// The others, by reason.
    failures: BTreeMap<String, u64>,
    /// Whose handshake was completed.
    connections: u64,
    /// Of bodies.
    bytes: u64,
    /// From the first handshake to the last answer.
    seconds: f64,
    latency: Latency,
}

/// Seconds from the beginning of a request to its last byte, with the handshake if it needed one.
#[derive(Debug, Default, Serialize)]
struct Latency {
    p50: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
}

impl Latency {
    fn of(mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        // The smallest value that the share is not above (nearest rank).
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
    begun: Instant,
    started: RefCell<u64>,
    summary: RefCell<Summary>,
    latencies: RefCell<Vec<f64>>,
}

/// Whether no request failed.
pub async fn run(args: Args) -> Result<bool> {
    let load = Rc::new(Load {
        target: Target::new(&args.url).await?,
        client: Client::new(&args.options, None)?,
        begun: Instant::now(),
        started: RefCell::default(),
        summary: RefCell::default(),
        latencies: RefCell::default(),
        args,
    });
    let mut workers = JoinSet::new();
    for _ in 0..load.args.connections {
        workers.spawn_local(load.clone().keep_busy());
    }
    let sessions = workers.join_all().await;
    let mut summary = load.summary.take();
    summary.seconds = load.begun.elapsed().as_secs_f64();
    summary.latency = Latency::of(load.latencies.take());
    println!("{}", serde_json::to_string(&summary)?);
    let goodbyes: JoinSet<()> = JoinSet::new();
    let goodbyes = sessions
        .into_iter()
        .flatten()
        .fold(goodbyes, |mut all, session| {
            all.spawn_local(session.close());
            all
        });
    goodbyes.join_all().await;
    Ok(summary.failures.is_empty())
}

impl Load {
    /// When the next request begins, if there is another to make; it is counted then.
    fn begin(&self) -> Option<Instant> {
        let mut started = self.started.borrow_mut();
        let more = match (self.args.requests, self.args.seconds) {
            (Some(requests), _) => *started < requests,
            (_, seconds) => seconds.is_none_or(|s| self.begun.elapsed().as_secs_f64() < s),
        };
        *started += u64::from(more);
        more.then(Instant::now)
    }

    /// Makes requests until there are no more. The connection that is open then.
    async fn keep_busy(self: Rc<Self>) -> Option<Session> {
        let mut open = None;
        while let Some(begun) = self.begin() {
            let session = match self.client.connect(&self.target).await {
                Ok(session) => session,
                Err(failure) => {
                    self.count(begun, Err(failure));
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            self.summary.borrow_mut().connections += 1;
            let of_each = (0..self.args.parallel).map(|i| (i == 0).then_some(begun));
            join_all(of_each.map(|begun| self.use_up(&session, begun))).await;
            if self.args.reconnect || session.is_over() {
                tokio::task::spawn_local(session.close());
            } else {
                open = Some(session);
            }
        }
        open
    }

    /// Makes requests on `session`, one after the other, the first since `begun` if there is one already, as long as it may be used.
    async fn use_up(&self, session: &Session, mut begun: Option<Instant>) {
        while let Some(begun) = begun.take().or_else(|| self.begin()) {
            self.count(begun, self.request(session).await);
            if self.args.reconnect || session.is_over() {
                return;
            }
        }
    }

    /// A request that began then is over.
    fn count(&self, begun: Instant, done: Result<(), Failure>) {
        let mut summary = self.summary.borrow_mut();
        match done {
            Ok(()) => {
                summary.requests += 1;
                let mut latencies = self.latencies.borrow_mut();
                latencies.push(begun.elapsed().as_secs_f64());
            }
            Err(Failure(reason)) => *summary.failures.entry(reason).or_default() += 1,
        }
    }

    async fn request(&self, session: &Session) -> Result<(), Failure> {
        let mut answer = session.get(&self.target.uri).await?;
        if answer.head.status() != http::StatusCode::OK {
            return Err(Failure::new(format!(
                "status {}",
                answer.head.status().as_u16()
            )));
        }
        let expected = self.args.expect.as_ref();
        let mut seen = Seen::expecting(expected);
        while let Some(part) = answer.part().await? {
            seen.add(&part);
            self.summary.borrow_mut().bytes += part.len() as u64;
        }
        seen.check(expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_the_nearest_rank() {
        let latency = Latency::of((1..=100).rev().map(f64::from).collect());
        assert_eq!(
            (latency.p50, latency.p99, latency.max),
            (Some(50.), Some(99.), Some(100.))
        );
        assert_eq!(Latency::of(vec![5.]).p99, Some(5.));
        assert_eq!(Latency::of(vec![]).max, None);
    }
}
