//! `load`: so many connections, each with a request under way at any time.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Result;
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
    /// A new connection for each request
    #[arg(long)]
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
    /// Whether there is another request to make; it is counted then.
    fn next(&self) -> bool {
        let mut started = self.started.borrow_mut();
        let more = match (self.args.requests, self.args.seconds) {
            (Some(requests), _) => *started < requests,
            (_, seconds) => seconds.is_none_or(|s| self.begun.elapsed().as_secs_f64() < s),
        };
        *started += u64::from(more);
        more
    }

    /// Makes requests until there are no more. The connection that is open then.
    async fn keep_busy(self: Rc<Self>) -> Option<Session> {
        let mut session: Option<Session> = None;
        while self.next() {
            let begun = Instant::now();
            match self.request(&mut session).await {
                Ok(()) => {
                    self.summary.borrow_mut().requests += 1;
                    self.latencies
                        .borrow_mut()
                        .push(begun.elapsed().as_secs_f64());
                }
                Err(Failure(reason)) => {
                    *self
                        .summary
                        .borrow_mut()
                        .failures
                        .entry(reason)
                        .or_default() += 1;
                    if session.is_none() {
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            }
            if let Some(used) = session.take_if(|used| self.args.reconnect || used.is_over()) {
                tokio::task::spawn_local(used.close());
            }
        }
        session
    }

    async fn request(&self, session: &mut Option<Session>) -> Result<(), Failure> {
        let session = match session {
            Some(session) => session,
            None => {
                let made = self.client.connect(&self.target).await?;
                self.summary.borrow_mut().connections += 1;
                session.insert(made)
            }
        };
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
