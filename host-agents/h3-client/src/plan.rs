// SPDX-License-Identifier: Apache-2.0
//! `plan`: replays one client host's share of the demo's plan, as mininet/src/frontage_testbed/load/loadgen.py does over TCP.
//!
//! Open loop: a request starts at its time in the plan, whatever happened to earlier ones, on a connection and port of its
//! own. QUIC has a single way to close a connection, so `fin` and `rst` are the same here. `idle` connections stay open and
//! idle until the end of the plan.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::task::JoinSet;

use crate::Error;
use crate::body::PeriodicContent;
use crate::client::{Client, Options, Session, Target};

/// Options of `plan`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Plan file (CSV; mininet/src/frontage_testbed/load/workload.py)
    #[arg(long, value_name = "FILE")]
    plan: PathBuf,
    /// Replay only the arrivals of this client
    #[arg(long, value_name = "N")]
    client: usize,
    /// Server address
    #[arg(long)]
    address: IpAddr,
    /// Server port
    #[arg(long)]
    port: u16,
    /// URL path of the objects' directory, without the trailing slash
    #[arg(long, default_value = "")]
    path: String,
    /// File with one period of the sequence of which every object is a prefix
    #[arg(long, value_name = "FILE")]
    content: PathBuf,
    /// Start of the plan, as a time of the monotonic clock in nanoseconds
    #[arg(long, value_name = "T")]
    start_ns: u64,
    #[command(flatten)]
    options: Options,
}

/// One request of the plan.
#[derive(Clone, Debug, PartialEq)]
struct Arrival {
    index: usize,
    due_ns: u64,
    size: u64,
    idle: bool,
}

/// Outcome of a request: the fields of `outcome.Outcome`, in their order. Times are nanoseconds of the monotonic clock, and 0
/// for steps that were not reached.
#[derive(Debug, Default)]
struct Outcome {
    server: String,
    started_ns: u64,
    connected_ns: u64,
    first_byte_ns: u64,
    received: u64,
    local_port: u16,
}

/// Returns the time of the monotonic clock in nanoseconds.
fn now_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure outlives the call, which cannot fail for a clock that every Linux has.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn read_plan(args: &Args) -> Result<Vec<Arrival>> {
    let file = args.plan.display();
    let text = std::fs::read_to_string(&args.plan)
        .with_context(|| format!("--plan: cannot read {file}"))?;
    parse_plan(&text, &args.plan, args.client, args.start_ns)
}

fn parse_plan(text: &str, file: &Path, client: usize, start_ns: u64) -> Result<Vec<Arrival>> {
    let mut lines = text.lines().enumerate();
    let columns: Vec<&str> = lines.next().unwrap_or_default().1.split(',').collect();
    let mut arrivals = Vec::new();
    for (number, line) in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let field = |name| {
            let column = columns.iter().position(|column| *column == name);
            column.and_then(|column| fields.get(column).copied())
        };
        let arrival = || {
            let is_own = field("client")?.parse::<usize>().ok()? == client;
            let after_ns = (field("time")?.parse::<f64>().ok()? * 1e9) as u64;
            let arrival = Arrival {
                index: field("index")?.parse().ok()?,
                due_ns: start_ns + after_ns,
                size: field("wire_size")?.parse().ok()?,
                idle: field("closing")? == "idle",
            };
            Some(is_own.then_some(arrival))
        };
        let parsed = arrival().with_context(|| {
            let fault = "invalid arrival: it must have index, time, client, wire_size and closing";
            format!("{}:{}: {fault}", file.display(), number + 1)
        })?;
        arrivals.extend(parsed);
    }
    Ok(arrivals)
}

struct Plan {
    args: Args,
    address: SocketAddr,
    client: Client,
    content: PeriodicContent,
}

/// Runs the command. Always returns true: the output lines report failed requests.
pub async fn run(args: Args) -> Result<bool> {
    let arrivals = read_plan(&args)?;
    let plan = Rc::new(Plan {
        address: (args.address, args.port).into(),
        client: Client::new(&args.options, None)?,
        content: PeriodicContent::read(&args.content)?,
        args,
    });
    let mut requests = JoinSet::new();
    for arrival in arrivals {
        let wait = arrival.due_ns.saturating_sub(now_ns());
        tokio::time::sleep(Duration::from_nanos(wait)).await;
        requests.spawn_local(plan.clone().request(arrival));
    }
    let idle = requests.join_all().await;
    let mut closing: JoinSet<()> = JoinSet::new();
    for session in idle.into_iter().flatten() {
        closing.spawn_local(session.close());
    }
    closing.join_all().await;
    Ok(true)
}

impl Plan {
    /// Makes a request and prints its outcome; returns the connection if it must stay open.
    async fn request(self: Rc<Self>, arrival: Arrival) -> Option<Session> {
        let mut outcome = Outcome {
            started_ns: now_ns(),
            ..Outcome::default()
        };
        let mut session = None;
        let result = self.download(&arrival, &mut outcome, &mut session).await;
        let finished_ns = now_ns();
        let reason = result
            .as_ref()
            .err()
            .map_or_else(|| "ok".to_owned(), ToString::to_string);
        println!(
            "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
            arrival.index,
            reason.replace(char::is_control, " "),
            outcome.server,
            arrival.due_ns,
            outcome.started_ns,
            outcome.connected_ns,
            outcome.first_byte_ns,
            finished_ns,
            outcome.received,
            outcome.local_port,
        );
        let session = session?;
        if arrival.idle && result.is_ok() {
            return Some(session);
        }
        session.close().await;
        None
    }

    async fn download(
        &self,
        arrival: &Arrival,
        outcome: &mut Outcome,
        session: &mut Option<Session>,
    ) -> Result<(), Error> {
        let url = format!(
            "https://{}{}/{}",
            self.address, self.args.path, arrival.size
        );
        let target = Target::new(&url).await.map_err(Error::Setup)?;
        let session = session.insert(self.client.connect(&target).await?);
        outcome.connected_ns = now_ns();
        let addresses = session.socket().addresses();
        outcome.local_port = addresses.map_or(0, |(local, _)| local.port());
        let mut response = session.get(&target.uri).await?;
        outcome.first_byte_ns = now_ns();
        let server = response.head.headers().get("x-server");
        outcome.server = server
            .and_then(|name| name.to_str().ok())
            .unwrap_or_default()
            .to_owned();
        if response.head.status() != http::StatusCode::OK {
            return Err(Error::Status(response.head.status().as_u16()));
        }
        if response.content_length() != Some(arrival.size) {
            return Err(Error::ContentLength);
        }
        while let Some(chunk) = response.chunk().await? {
            if !self.content.matches(outcome.received, &chunk) {
                return Err(Error::Corrupt);
            }
            outcome.received += chunk.len() as u64;
        }
        match outcome.received {
            received if received == arrival.size => Ok(()),
            received if received < arrival.size => Err(Error::TooShort),
            _ => Err(Error::TooLong),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_columns_are_found_by_name() {
        let text =
            "index,time,client,size,wire_size,closing\n0,0.5,1,10,1,idle\n1,0.6,0,20,2,fin\n";
        let arrivals_of = |client| parse_plan(text, Path::new("plan.csv"), client, 1_000).unwrap();
        let first = Arrival {
            index: 0,
            due_ns: 500_001_000,
            size: 1,
            idle: true,
        };
        assert_eq!(
            (arrivals_of(1), arrivals_of(0).len(), arrivals_of(2)),
            (vec![first], 1, vec![])
        );
        let error =
            parse_plan(&text.replace("0.6", "soon"), Path::new("plan.csv"), 0, 0).unwrap_err();
        assert!(
            error.to_string().starts_with("plan.csv:3: invalid arrival"),
            "{error}"
        );
    }
}
