// SPDX-License-Identifier: Apache-2.0
//! Common parts of the host agents as daemons: configuration files, logging, metrics and shutdown.
//!
//! A program flattens [`logging::LogArgs`] into its command line, loads its TOML file with [`config`], subscribes to
//! signals with [`shutdown::Signals`], serves its counters with [`metrics::serve`], and ends with
//! [`process::exit_code`].

#![warn(missing_docs)]

pub mod config;
pub mod key_file;
pub mod logging;
pub mod metrics;
pub mod process;
pub mod shutdown;
pub mod socket;
