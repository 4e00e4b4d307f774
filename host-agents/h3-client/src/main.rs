// SPDX-License-Identifier: Apache-2.0
//! `frontage-h3-client`: a standard HTTP/3 client for the demo, the tests and the benchmarks.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use frontage_h3_client::{block_on, get, load, page, plan};

const EXAMPLES: &str = "\
Examples:
  frontage-h3-client get https://films.example/1 --output /tmp
  frontage-h3-client get 'https://[2001:db8:f::20]/5000000' --insecure --rebind-after 1000000
  frontage-h3-client load 'https://[::1]:4433/1000' --insecure --connections 100 --seconds 10 --reconnect --expect 1000";

/// HTTP/3 client without any CloudCookie support, for downloads, load and the demo's plan.
///
/// Each connection has its own UDP port and stays at the server's first address unless --follow is given.
///
/// Exit status: 0 on success, 1 if a request failed, 2 if the command could not start.
#[derive(Parser)]
#[command(version, after_help = EXAMPLES)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Download URLs sequentially and print one line of JSON for each
    Get(get::Args),
    /// Download a URL, then all others concurrently over the same connection, and print one line of JSON for each
    Page(page::Args),
    /// Keep connections busy with requests (closed loop) and print the result as one line of JSON
    Load(load::Args),
    /// Replay a plan of the demo (open loop) and print the outcome of each request (mininet/src/frontage_testbed/load/outcome.py)
    Plan(plan::Args),
}

fn main() -> ExitCode {
    match run(Args::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("frontage-h3-client: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs `command`; returns true if all requests succeeded.
fn run(command: Command) -> Result<bool> {
    block_on(async {
        match command {
            Command::Get(args) => get::run(&args).await,
            Command::Page(args) => page::run(&args).await,
            Command::Load(args) => load::run(args).await,
            Command::Plan(args) => plan::run(args).await,
        }
    })
}
