// SPDX-License-Identifier: Apache-2.0
//! `softswitch-cli`: the commands of BMv2's `simple_switch_CLI` over P4Runtime.

use std::fs::File;
use std::io::{self, BufReader, IsTerminal};
use std::process::ExitCode;

use clap::Parser;
use softswitch_cli::error::{Error, Result};
use softswitch_cli::options::Options;
use softswitch_cli::session::Session;
use softswitch_cli::{interactive, script};

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("softswitch-cli: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Executes the commands; returns whether all succeeded.
fn run(options: &Options) -> Result<bool> {
    let file = options.file.as_ref().map(|path| {
        let place = path.display().to_string();
        let file = File::open(path);
        let file = file.map_err(|e| Error::new(format!("cannot read {place}: {e}")))?;
        Ok::<_, Error>((place, file))
    });
    let file = file.transpose()?;
    let mut session = Session::connect(options)?;
    let (out, err) = (&mut io::stdout(), &mut io::stderr());
    match file {
        Some((place, file)) => {
            let lines = BufReader::new(file);
            script::run(&mut session, &place, lines, options.json, out, err)
        }
        None if io::stdin().is_terminal() => interactive::run(&mut session, options.json),
        None => {
            let lines = io::stdin().lock();
            script::run(&mut session, "stdin", lines, options.json, out, err)
        }
    }
}
