//! `page`: downloads over one connection as a browser has them: the page first, then all of its objects at a time.

use std::time::Instant;

use anyhow::{Result, ensure};
use futures_util::future::join_all;

use crate::client::{Client, Files, Options, Target};
use crate::content::Seen;
use crate::line::Line;

/// Options of `page`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    options: Options,
}

/// Whether every answer came, with a status of success.
pub async fn run(args: &Args) -> Result<bool> {
    let client = Client::new(&args.options, None)?;
    let mut targets = Vec::new();
    for url in &args.files.urls {
        targets.push((url, Target::new(url).await?));
    }
    let (_, first) = &targets[0];
    let alone = targets.iter().all(|(_, target)| target.is_at(first));
    ensure!(
        alone,
        "a page is of one host and port; `get` takes URLs of several"
    );
    let begun = Instant::now();
    let connected = client.connect(first).await;
    let handshake = begun.elapsed().as_secs_f64();
    let output = args.files.output.as_deref();
    let download = async |i: usize| {
        let (url, target) = &targets[i];
        let (mut line, mut seen) = (Line::new(url), Seen::new(true));
        let done = match &connected {
            Ok(session) => {
                line.seconds.handshake = (i == 0).then_some(handshake);
                line.note(session);
                let into = (&mut seen, begun);
                let done = line.download(session, target, output, None, into).await;
                line.note(session);
                done
            }
            Err(failure) => Err(failure.clone()),
        };
        line.seconds.total = begun.elapsed().as_secs_f64();
        line.print(&seen, done)
    };
    let mut good = download(0).await?;
    for whole in join_all((1..targets.len()).map(&download)).await {
        good &= whole?;
    }
    if let Ok(session) = connected {
        session.close().await;
    }
    Ok(good)
}
