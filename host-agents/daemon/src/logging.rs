// SPDX-License-Identifier: Apache-2.0
//! Logging to the standard error stream by `tracing`.

use std::io::{self, IsTerminal as _};

use clap::{Args, ValueEnum};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// Frontage's own messages from `info` on, and none of the libraries': remote hosts can provoke some of those at
/// will.
const DEFAULT_FILTER: &str = "frontage=info";

/// The command-line options that control logging, to be flattened into an agent's arguments.
#[derive(Args, Clone, Debug)]
pub struct LogArgs {
    /// Least severe level to log (error, warn, info, debug, trace), or levels by module such as
    /// `warn,frontage_handoff=debug`
    #[arg(long, env = "RUST_LOG", value_name = "FILTER", default_value = DEFAULT_FILTER)]
    log_level: Targets,
    /// Format of log lines on the standard error stream
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

impl LogArgs {
    /// Start logging. Must be called once, before anything is logged.
    pub fn init(self) {
        let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
        let lines = match self.log_format {
            LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).boxed(),
            LogFormat::Json => lines.json().boxed(),
        };
        tracing_subscriber::registry()
            .with(lines.with_filter(self.log_level))
            .init();
    }
}
