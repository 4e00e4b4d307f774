// SPDX-License-Identifier: Apache-2.0
//! `get`: sequential downloads.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::body::BodyMeter;
use crate::client::{Client, Files, Options, Session, Target};
use crate::download::DownloadReport;

/// Idle time after which a client with `--rebind-after` sends a PING, so that the server learns its new port.
const KEEP_ALIVE: Duration = Duration::from_millis(200);

/// Options of `get`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    options: Options,
    /// After this many bytes of a download, switch to another UDP port without telling QUIC, as after a NAT rebinding
    #[arg(long, value_name = "BYTES")]
    rebind_after: Option<u64>,
}

/// Runs the command; returns true if every download is complete and its status is a success.
pub async fn run(args: &Args) -> Result<bool> {
    let client = Client::new(&args.options, args.rebind_after.map(|_| KEEP_ALIVE))?;
    let mut open: Option<(Target, Session)> = None;
    let mut all_succeeded = true;
    for url in &args.files.urls {
        let target = Target::new(url).await?;
        let started = Instant::now();
        let mut report = DownloadReport::new(url);
        let mut meter = BodyMeter::new(true);
        let reusable = open.take_if(|(current, session)| {
            target.can_share_connection(current) && !session.is_closed()
        });
        if let Some((_, session)) = open.take() {
            session.close().await;
        }
        open = reusable;
        let result = async {
            if open.is_none() {
                open = Some((target.clone(), client.connect(&target).await?));
                report.seconds.handshake = Some(started.elapsed().as_secs_f64());
            }
            let (_, session) = open.as_ref().expect("a connection was opened");
            report.record_addresses(session);
            let (output, rebind_after) = (args.files.output.as_deref(), args.rebind_after);
            report
                .download(
                    session,
                    &target,
                    output,
                    rebind_after,
                    (&mut meter, started),
                )
                .await
        }
        .await;
        if let Some((_, session)) = &open {
            report.record_addresses(session);
        }
        report.seconds.total = started.elapsed().as_secs_f64();
        all_succeeded &= report.print(&meter, result.as_ref().err())?;
    }
    if let Some((_, session)) = open {
        session.close().await;
    }
    Ok(all_succeeded)
}
