//! `get`: downloads, one after the other.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::client::{Client, Files, Options, Session, Target};
use crate::content::Seen;
use crate::line::Line;

/// Silence after which a client whose port may change says something, so that the server hears of it.
const KEEP_ALIVE: Duration = Duration::from_millis(200);

/// Options of `get`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    options: Options,
    /// Once so many bytes of a download have come, go on from another UDP port without QUIC knowing, as behind a NAT that starts again
    #[arg(long, value_name = "BYTES")]
    rebind_after: Option<u64>,
}

/// Whether every answer came, with a status of success.
pub async fn run(args: &Args) -> Result<bool> {
    let client = Client::new(&args.options, args.rebind_after.map(|_| KEEP_ALIVE))?;
    let mut open: Option<(Target, Session)> = None;
    let mut good = true;
    for url in &args.files.urls {
        let target = Target::new(url).await?;
        let begun = Instant::now();
        let mut line = Line::new(url);
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
            let (_, session) = open.as_ref().expect("there is one");
            line.note(session);
            let (output, rebind_after) = (args.files.output.as_deref(), args.rebind_after);
            line.download(session, &target, output, rebind_after, (&mut seen, begun))
                .await
        }
        .await;
        if let Some((_, session)) = &open {
            line.note(session);
        }
        line.seconds.total = begun.elapsed().as_secs_f64();
        good &= line.print(&seen, done)?;
    }
    if let Some((_, session)) = open {
        session.close().await;
    }
    Ok(good)
}
