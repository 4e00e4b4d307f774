// SPDX-License-Identifier: Apache-2.0
//! `get`: sequential downloads.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::Error;
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
        let reusable = open.take_if(|(current, session)| {
            !args.options.early_data && target.can_share_connection(current) && !session.is_closed()
        });
        close(open.take()).await;
        open = reusable;
        // The time until the previous connection is closed does not belong to this download.
        let mut download = Download {
            args,
            client: &client,
            target: &target,
            started: Instant::now(),
            report: DownloadReport::new(url),
            meter: BodyMeter::new(true),
        };
        let mut result = download.run(&mut open, args.options.early_data).await;
        if let Some((_, session)) = &mut open {
            download.report.early_data = session.accepted_early_data().await;
        }
        if download.report.early_data == Some(false) {
            close(open.take()).await;
            download.meter = BodyMeter::new(true);
            result = download.run(&mut open, false).await;
        }
        if let Some((_, session)) = &open {
            download.report.record_addresses(session);
        }
        all_succeeded &= download.finish(result.as_ref().err())?;
    }
    close(open).await;
    Ok(all_succeeded)
}

async fn close(open: Option<(Target, Session)>) {
    if let Some((_, session)) = open {
        session.close().await;
    }
}

/// One download, on an open connection or on a new one.
struct Download<'a> {
    args: &'a Args,
    client: &'a Client,
    target: &'a Target,
    started: Instant,
    report: DownloadReport,
    meter: BodyMeter,
}

impl Download<'_> {
    async fn run(
        &mut self,
        open: &mut Option<(Target, Session)>,
        early: bool,
    ) -> Result<(), Error> {
        if open.is_none() {
            let session = match early {
                true => self.client.connect_early(self.target).await?,
                false => self.client.connect(self.target).await?,
            };
            *open = Some((self.target.clone(), session));
            self.report.seconds.handshake = Some(self.started.elapsed().as_secs_f64());
        }
        let (_, session) = open.as_ref().expect("a connection was opened");
        self.report.record_addresses(session);
        let (output, rebind_after) = (self.args.files.output.as_deref(), self.args.rebind_after);
        self.report
            .download(
                session,
                self.target,
                output,
                rebind_after,
                (&mut self.meter, self.started),
            )
            .await
    }

    /// Prints the report; returns true if the download is complete and its status is a success.
    fn finish(mut self, error: Option<&Error>) -> Result<bool> {
        self.report.seconds.total = self.started.elapsed().as_secs_f64();
        self.report.print(&self.meter, error)
    }
}
