// SPDX-License-Identifier: Apache-2.0
//! `page`: downloads over one connection as a browser does: the page first, then all of its objects concurrently.

use std::time::Instant;

use anyhow::{Result, ensure};
use futures_util::future::join_all;

use crate::body::BodyMeter;
use crate::client::{Client, Files, Options, Target};
use crate::download::DownloadReport;

/// Options of `page`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    options: Options,
}

/// Runs the command; returns true if every download is complete and its status is a success.
pub async fn run(args: &Args) -> Result<bool> {
    let client = Client::new(&args.options, None)?;
    let mut targets = Vec::new();
    for url in &args.files.urls {
        targets.push((url, Target::new(url).await?));
    }
    let (_, first) = &targets[0];
    let is_same_host = targets
        .iter()
        .all(|(_, target)| target.can_share_connection(first));
    ensure!(
        is_same_host,
        "URLs of a page must have the same host and port: use `get` for different hosts"
    );
    let started = Instant::now();
    let connected = client.connect(first).await;
    let handshake = started.elapsed().as_secs_f64();
    let output = args.files.output.as_deref();
    let download = async |i: usize| {
        let (url, target) = &targets[i];
        let (mut report, mut meter) = (DownloadReport::new(url), BodyMeter::new(true));
        let result;
        let error = match &connected {
            Ok(session) => {
                report.seconds.handshake = (i == 0).then_some(handshake);
                report.record_addresses(session);
                let measured = (&mut meter, started);
                result = report
                    .download(session, target, output, None, measured)
                    .await;
                report.record_addresses(session);
                result.as_ref().err()
            }
            Err(error) => Some(error),
        };
        report.seconds.total = started.elapsed().as_secs_f64();
        report.print(&meter, error)
    };
    let mut all_succeeded = download(0).await?;
    for succeeded in join_all((1..targets.len()).map(&download)).await {
        all_succeeded &= succeeded?;
    }
    if let Ok(session) = connected {
        session.close().await;
    }
    Ok(all_succeeded)
}
