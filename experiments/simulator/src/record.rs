// SPDX-License-Identifier: Apache-2.0
//! Output of a run: CSV lines, which are written as they occur so that they take no memory, and a summary at the end.

mod summary;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use frontage_cookie::load::Loads;
use softswitch_pipeline::Nanos;

use crate::flows::{Flow, RecoveryCounts};
use crate::network::Channel;
use crate::scenario;

pub use summary::{FlowCounts, Packets, Summary, counters};

/// A sampled series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Series {
    /// Depth of each queue.
    Queues,
    /// N_AF and N_FF of each server.
    Loads,
    /// Bytes received by each flow.
    Throughput,
}

impl Series {
    /// All series.
    pub const ALL: [Self; 3] = [Self::Queues, Self::Loads, Self::Throughput];

    /// Returns the sampling interval, if the series is recorded.
    pub fn interval(self, record: &scenario::Record) -> Option<Nanos> {
        match self {
            Self::Queues => record.queues,
            Self::Loads => record.loads,
            Self::Throughput => record.throughput,
        }
    }
}

type Csv = Option<BufWriter<File>>;

/// The output files of a run; none by default.
#[derive(Debug, Default)]
pub struct Record {
    flows: Csv,
    queues: Csv,
    loads: Csv,
    throughput: Csv,
}

impl Record {
    /// Creates the files that the scenario requests.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written. So do the other functions.
    pub fn create(folder: &Path, record: &scenario::Record) -> Result<Self> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("creating {}", folder.display()))?;
        let create = |name: &str, is_requested: bool, columns: &str| -> Result<Csv> {
            if !is_requested {
                return Ok(None);
            }
            let path = folder.join(name);
            let file =
                File::create(&path).with_context(|| format!("writing {}", path.display()))?;
            let mut csv = BufWriter::new(file);
            writeln!(csv, "{columns}")?;
            Ok(Some(csv))
        };
        Ok(Self {
            flows: create(
                "flows.csv",
                record.flows,
                "id,label,client,server,size,start,end,retransmitted,timeouts",
            )?,
            queues: create(
                "queues.csv",
                record.queues.is_some(),
                "time,queue,packets,bytes,dropped,lost",
            )?,
            loads: create("loads.csv", record.loads.is_some(), "time,server,n_af,n_ff")?,
            throughput: create(
                "throughput.csv",
                record.throughput.is_some(),
                "time,flow,received",
            )?,
        })
    }

    /// Writes a line for a completed flow.
    pub fn flow(
        &mut self,
        flow: &Flow,
        workload: &scenario::Workload,
        server: &str,
        end: Nanos,
        recovery: RecoveryCounts,
    ) -> Result<()> {
        if let Some(csv) = &mut self.flows {
            let (label, client) = (&workload.label, &workload.client);
            let (
                Flow { start, request, .. },
                RecoveryCounts {
                    retransmitted,
                    timeouts,
                },
            ) = (flow, recovery);
            let (id, size) = (request.flow, request.response);
            writeln!(
                csv,
                "{id},{label},{client},{server},{size},{start},{end},{retransmitted},{timeouts}"
            )?;
        }
        Ok(())
    }

    /// Writes the depth of a queue, and its drops and losses so far.
    pub fn queue(&mut self, now: Nanos, channel: &Channel) -> Result<()> {
        if let Some(csv) = &mut self.queues {
            let (queue, counts) = (&channel.queue, channel.queue.counts());
            let (packets, bytes) = (queue.depth_packets(), queue.depth_bytes());
            let dropped = counts.tail_drop + counts.pushed_out;
            writeln!(
                csv,
                "{now},{},{packets},{bytes},{dropped},{}",
                channel.name, counts.lost
            )?;
        }
        Ok(())
    }

    /// Writes the loads of a server.
    pub fn loads(&mut self, now: Nanos, server: &str, loads: &Loads) -> Result<()> {
        if let Some(csv) = &mut self.loads {
            writeln!(csv, "{now},{server},{},{}", loads.n_af(), loads.n_ff())?;
        }
        Ok(())
    }

    /// Writes the number of bytes that a flow has received so far.
    pub fn received(&mut self, now: Nanos, flow: &Flow) -> Result<()> {
        if let Some(csv) = &mut self.throughput {
            writeln!(csv, "{now},{},{}", flow.request.flow, flow.received)?;
        }
        Ok(())
    }

    /// Flushes all files to disk.
    pub fn close(&mut self) -> Result<()> {
        let files = [
            &mut self.flows,
            &mut self.queues,
            &mut self.loads,
            &mut self.throughput,
        ];
        for csv in files.into_iter().flatten() {
            csv.flush()?;
            csv.get_ref().sync_data()?;
        }
        Ok(())
    }
}
