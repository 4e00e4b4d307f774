//! `plan`: one client host's share of the demo's plan, as mininet/src/frontage_testbed/load/loadgen.py replays it over TCP.
//!
//! Open loop: a request begins when the plan says, whatever became of those before, on a connection and port of its own. QUIC knows one way to close a
//! connection, so `fin` and `rst` are the same here; `idle` connections stay open and silent until the plan's end.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::task::JoinSet;

use crate::client::{Client, Failure, Options, Session, Target};
use crate::content::Sequence;

/// Options of `plan`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The plan (CSV; mininet/src/frontage_testbed/load/workload.py)
    #[arg(long, value_name = "FILE")]
    plan: PathBuf,
    /// Take only this client's arrivals
    #[arg(long, value_name = "N")]
    client: usize,
    /// The server's address
    #[arg(long)]
    address: IpAddr,
    /// The server's port
    #[arg(long)]
    port: u16,
    /// Directory of the objects in the URL, without the closing slash
    #[arg(long, default_value = "")]
    path: String,
    /// One period of the sequence that every object is a prefix of
    #[arg(long, value_name = "FILE")]
    content: PathBuf,
    /// Monotonic time at which the plan begins
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

/// What became of it: the fields of `outcome.Outcome`, in their order. Times are nanoseconds of the monotonic clock, 0 for what was not reached.
#[derive(Debug, Default)]
struct Outcome {
    server: String,
    started_ns: u64,
    connected_ns: u64,
    first_byte_ns: u64,
    received: u64,
    local_port: u16,
}

/// Nanoseconds of the clock that `--start-ns` is of.
fn now_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure outlives the call, which cannot fail for a clock that every Linux has.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn read(args: &Args) -> Result<Vec<Arrival>> {
    let file = args.plan.display();
    let text =
        std::fs::read_to_string(&args.plan).with_context(|| format!("cannot read {file}"))?;
    parse(&text, &args.plan, args.client, args.start_ns)
}

fn parse(text: &str, file: &Path, client: usize, start_ns: u64) -> Result<Vec<Arrival>> {
    let mut lines = text.lines().enumerate();
    let names: Vec<&str> = lines.next().unwrap_or_default().1.split(',').collect();
    let mut arrivals = Vec::new();
    for (number, line) in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let field = |name| {
            let at = names.iter().position(|n| *n == name);
            at.and_then(|at| fields.get(at).copied())
        };
        let arrival = || {
            let mine = field("client")?.parse::<usize>().ok()? == client;
            let after_ns = (field("time")?.parse::<f64>().ok()? * 1e9) as u64;
            let arrival = Arrival {
                index: field("index")?.parse().ok()?,
                due_ns: start_ns + after_ns,
                size: field("wire_size")?.parse().ok()?,
                idle: field("closing")? == "idle",
            };
            Some(mine.then_some(arrival))
        };
        let read = arrival().with_context(|| {
            let wanted = "no arrival; it needs index, time, client, wire_size and closing";
            format!("{}:{}: {wanted}", file.display(), number + 1)
        })?;
        arrivals.extend(read);
    }
    Ok(arrivals)
}

struct Plan {
    args: Args,
    address: SocketAddr,
    client: Client,
    sequence: Sequence,
}

/// Always true: what failed is in the lines.
pub async fn run(args: Args) -> Result<bool> {
    let arrivals = read(&args)?;
    let plan = Rc::new(Plan {
        address: (args.address, args.port).into(),
        client: Client::new(&args.options, None)?,
        sequence: Sequence::read(&args.content)?,
        args,
    });
    let mut requests = JoinSet::new();
    for arrival in arrivals {
        let wait = arrival.due_ns.saturating_sub(now_ns());
        tokio::time::sleep(Duration::from_nanos(wait)).await;
        requests.spawn_local(plan.clone().request(arrival));
    }
    let idle = requests.join_all().await;
    let mut goodbyes: JoinSet<()> = JoinSet::new();
    for session in idle.into_iter().flatten() {
        goodbyes.spawn_local(session.close());
    }
    goodbyes.join_all().await;
    Ok(true)
}

impl Plan {
    /// Makes a request and reports it. The connection, if it is to stay.
    async fn request(self: Rc<Self>, arrival: Arrival) -> Option<Session> {
        let mut outcome = Outcome {
            started_ns: now_ns(),
            ..Outcome::default()
        };
        let mut session = None;
        let done = self.download(&arrival, &mut outcome, &mut session).await;
        let finished_ns = now_ns();
        let reason = done.err().map_or("ok".to_owned(), |failure| failure.0);
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
        if arrival.idle && reason == "ok" {
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
    ) -> Result<(), Failure> {
        let url = format!(
            "https://{}{}/{}",
            self.address, self.args.path, arrival.size
        );
        let target = Target::new(&url).await.map_err(Failure::new)?;
        let session = session.insert(self.client.connect(&target).await?);
        outcome.connected_ns = now_ns();
        let addresses = session.socket().addresses();
        outcome.local_port = addresses.map_or(0, |(local, _)| local.port());
        let mut answer = session.get(&target.uri).await?;
        outcome.first_byte_ns = now_ns();
        let server = answer.head.headers().get("x-server");
        outcome.server = server
            .and_then(|name| name.to_str().ok())
            .unwrap_or_default()
            .to_owned();
        if answer.head.status() != http::StatusCode::OK {
            return Err(Failure::new(format!(
                "status {}",
                answer.head.status().as_u16()
            )));
        }
        if answer.length() != Some(arrival.size) {
            return Err(Failure::new("length"));
        }
        while let Some(part) = answer.part().await? {
            if !self.sequence.has(outcome.received, &part) {
                return Err(Failure::new("corrupt"));
            }
            outcome.received += part.len() as u64;
        }
        match outcome.received {
            whole if whole == arrival.size => Ok(()),
            less if less < arrival.size => Err(Failure::new("short")),
            _ => Err(Failure::new("long")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_by_its_names() {
        let text =
            "index,time,client,size,wire_size,closing\n0,0.5,1,10,1,idle\n1,0.6,0,20,2,fin\n";
        let mine = |client| parse(text, Path::new("plan.csv"), client, 1_000).unwrap();
        let first = Arrival {
            index: 0,
            due_ns: 500_001_000,
            size: 1,
            idle: true,
        };
        assert_eq!((mine(1), mine(0).len(), mine(2)), (vec![first], 1, vec![]));
        let error = parse(&text.replace("0.6", "soon"), Path::new("plan.csv"), 0, 0).unwrap_err();
        assert!(
            error.to_string().starts_with("plan.csv:3: no arrival"),
            "{error}"
        );
    }
}
