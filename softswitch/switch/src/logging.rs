// SPDX-License-Identifier: Apache-2.0
//! Begins the program's logging.

use std::sync::Arc;

use anyhow::Context;
use softswitch::cli::LogOptions;
use softswitch::log::{Events, Log, LogLevel};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Begins logging of events: to the log that the options ask for, which is returned for packets, or to standard error.
pub fn start(options: &LogOptions) -> anyhow::Result<Option<Arc<Log>>> {
    let wanted = options.log_console || options.log_file.is_some();
    let default = [LogLevel::Warn, LogLevel::Trace][usize::from(wanted)];
    let level = options.log_level.unwrap_or(default);
    let log = match &options.log_file {
        Some(path) => {
            let (size, files) = (options.log_file_max_size.get(), options.log_file_max_files);
            let log = Log::file(level, path, size, files);
            Some(log.with_context(|| format!("--log-file: cannot open {}.txt", path.display()))?)
        }
        None => options.log_console.then(|| Log::console(level)),
    };
    // Only events of softswitch's own crates.
    let own = Targets::new().with_target("softswitch", filter(level));
    let registry = tracing_subscriber::registry();
    match &log {
        Some(log) => registry
            .with(Events(Arc::clone(log)).with_filter(own))
            .init(),
        None => {
            let stderr = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
            registry.with(stderr.with_filter(own)).init();
        }
    }
    Ok(log)
}

fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Trace => LevelFilter::TRACE,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Off => LevelFilter::OFF,
    }
}
