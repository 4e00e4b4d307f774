// SPDX-License-Identifier: Apache-2.0
//! Output of a run: CSV lines, written as they occur so that a million flows take no memory, and a summary at the end.

mod summary;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use frontage_cookie::load::Loads;
use softswitch_pipeline::Nanos;

use crate::flows::{Effort, Flow};
use crate::network::Channel;
use crate::scenario;

pub use summary::{FlowCounts, Packets, Summary, counters};

/// A series that is sampled.
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
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Queues, Self::Loads, Self::Throughput];

    /// How often it is sampled, if it is.
    pub fn interval(self, record: &scenario::Record) -> Option<Nanos> {
        match self {
            Self::Queues => record.queues,
            Self::Loads => record.loads,
            Self::Throughput => record.throughput,
        }
    }
}

type Csv = Option<BufWriter<File>>;

/// The files of a run.
#[derive(Debug)]
pub struct Record {
    flows: Csv,
    queues: Csv,
    loads: Csv,
    throughput: Csv,
}

impl Record {
    /// Begins the files that are asked for.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn create(folder: &Path, record: &scenario::Record) -> Result<Self> {
        std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        let begin = |name: &str, wanted: bool, columns: &str| -> Result<Csv> {
            if !wanted {
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
            flows: begin(
                "flows.csv",
                record.flows,
                "id,label,client,server,size,start,end,retransmitted,timeouts",
            )?,
            queues: begin(
                "queues.csv",
                record.queues.is_some(),
                "time,queue,packets,bytes,dropped,lost",
            )?,
            loads: begin("loads.csv", record.loads.is_some(), "time,server,n_af,n_ff")?,
            throughput: begin(
                "throughput.csv",
                record.throughput.is_some(),
                "time,flow,received",
            )?,
        })
    }

    /// A flow has ended: one line.
    ///
    /// # Errors
    /// If it cannot be written; so the others.
    pub fn flow(
        &mut self,
        flow: &Flow,
        of: &scenario::Workload,
        server: &str,
        end: Nanos,
        effort: Effort,
    ) -> Result<()> {
        if let Some(csv) = &mut self.flows {
            let (label, client) = (&of.label, &of.client);
            let (
                Flow {
                    id, size, start, ..
                },
                Effort {
                    retransmitted,
                    timeouts,
                },
            ) = (flow, effort);
            writeln!(
                csv,
                "{id},{label},{client},{server},{size},{start},{end},{retransmitted},{timeouts}"
            )?;
        }
        Ok(())
    }

    /// The depth of a queue, and what has gone there so far.
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

    /// A server's loads.
    pub fn loads(&mut self, now: Nanos, server: &str, loads: &Loads) -> Result<()> {
        if let Some(csv) = &mut self.loads {
            writeln!(csv, "{now},{server},{},{}", loads.n_af(), loads.n_ff())?;
        }
        Ok(())
    }

    /// Writes the number of bytes that a flow has received so far.
    pub fn received(&mut self, now: Nanos, flow: &Flow) -> Result<()> {
        if let Some(csv) = &mut self.throughput {
            writeln!(csv, "{now},{},{}", flow.id, flow.received)?;
        }
        Ok(())
    }

    /// Sees to it that all is written.
    pub fn close(self) -> Result<()> {
        for csv in [self.flows, self.queues, self.loads, self.throughput]
            .into_iter()
            .flatten()
        {
            csv.into_inner()?.sync_data()?;
        }
        Ok(())
    }
}
