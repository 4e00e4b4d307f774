// SPDX-License-Identifier: Apache-2.0
//! The process: its resource limits and its exit code.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raise the limit of open files, sockets among them, to the most that the system allows. If that fails, the limit
/// stays.
pub fn raise_open_file_limit() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// Turn the result of a program into its exit code, and print an error as `PROGRAM: ERROR`.
pub fn exit_code(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let program = std::env::args_os().next().unwrap_or_default();
            let name = Path::new(&program).file_name().unwrap_or_default();
            eprintln!("{}: {error:#}", name.display());
            ExitCode::FAILURE
        }
    }
}
