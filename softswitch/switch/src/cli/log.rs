// SPDX-License-Identifier: Apache-2.0
//! Options of the log.

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::Args;

use crate::log::LogLevel;

/// Options of the log. Names and defaults are those of `simple_switch`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Log")]
pub struct LogOptions {
    /// Log to standard output: one line for each step of a packet, as simple_switch does; slows the switch down
    #[arg(long)]
    pub log_console: bool,

    /// Log to FILE.txt in the same form
    #[arg(long, value_name = "FILE", conflicts_with = "log_console")]
    pub log_file: Option<PathBuf>,

    /// Lowest level to log; packets need debug or trace [default: trace; without --log-console and --log-file: warn, to
    /// standard error]
    #[arg(short = 'L', long, value_enum, value_name = "LEVEL")]
    pub log_level: Option<LogLevel>,

    /// Accepted: every line is written to --log-file at once in any case
    #[arg(long)]
    pub log_flush: bool,

    /// Size in bytes above which --log-file begins a new file
    #[arg(long, value_name = "BYTES", default_value = "5242880")]
    pub log_file_max_size: NonZeroU64,

    /// Number of older files that --log-file keeps: FILE.1.txt, FILE.2.txt, ...
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub log_file_max_files: u32,

    /// Log the first N bytes of each packet that a port receives or sends, at level info
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub dump_packet_data: usize,
}
