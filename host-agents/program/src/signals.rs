//! How a program is told to end, and to read its files again.

use std::process::ExitCode;

use anyhow::Result;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::say;

/// Heard from now on.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    /// Must be called within a Tokio runtime, before anything is served: until then, each ends the program.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn hear() -> Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Ready at SIGTERM or SIGINT; at each SIGHUP before, `reload`s, and says that `what` was read again, or why not.
    pub async fn end(mut self, what: &str, reload: impl Fn() -> Result<()>) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hang_up.recv() => match reload() {
                    Ok(()) => say(format_args!("{what} were read again")),
                    Err(error) => say(format_args!("{error:#}; what was in force stays")),
                },
            }
        }
    }
}

/// How `main` ends; says why if that is an error.
pub fn exit_code(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(format_args!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}
