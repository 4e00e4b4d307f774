// SPDX-License-Identifier: Apache-2.0
//! Signals that end a program or make it reload its files.

use std::io;

use anyhow::Result;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM and SIGINT, for programs that end at once and reload nothing.
#[derive(Debug)]
pub struct Termination {
    terminate: Signal,
    interrupt: Signal,
}

impl Termination {
    /// Subscribe to the signals. Must be called within a Tokio runtime, before anything is served.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn subscribe() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Wait for one of the signals.
    pub async fn wait(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// SIGTERM and SIGINT, and SIGHUP for programs that can reload files.
#[derive(Debug)]
pub struct Signals {
    termination: Termination,
    hang_up: Signal,
}

impl Signals {
    /// Subscribe to the signals. Must be called within a Tokio runtime, before anything is served: until then, each
    /// of them ends the program.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn subscribe() -> io::Result<Self> {
        Ok(Self {
            termination: Termination::subscribe()?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Wait for SIGTERM or SIGINT. At each SIGHUP before, call `reload`, which reloads `files`, and log the outcome.
    pub async fn wait(mut self, files: &str, reload: impl Fn() -> Result<()>) {
        loop {
            tokio::select! {
                () = self.termination.wait() => return,
                _ = self.hang_up.recv() => match reload() {
                    Ok(()) => tracing::info!("reloaded {files}"),
                    Err(error) => tracing::error!("{error:#}: keeping the previous {files}"),
                },
            }
        }
    }
}
