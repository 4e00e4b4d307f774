// SPDX-License-Identifier: Apache-2.0
//! `softswitch-stf`: the command line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use softswitch_coverage::Sources;
use softswitch_stf::{Difference, coverage, load, parse, run};

/// Run an STF test on a P4 program, in process, without interfaces, and print the differences.
///
/// The exit status is 0 without differences, 1 with differences, and 2 if the test could not be run.
#[derive(Parser)]
#[command(
    name = "softswitch-stf",
    version,
    after_help = "Example:\n  softswitch-stf --trace router.p4 router.stf"
)]
struct Cli {
    /// The program: P4 source, or BMv2 JSON if its name ends in .json
    program: PathBuf,

    /// The test
    test: PathBuf,

    /// Also print the traces of the packets that differ
    #[arg(long)]
    trace: bool,

    /// Count which parts of the program packets reach, in this LCOV file and an HTML page beside it
    #[arg(long, value_name = "FILE")]
    coverage: Option<PathBuf>,

    /// Search included files in this folder
    #[arg(short = 'I', value_name = "DIR")]
    include: Vec<PathBuf>,

    /// Define a preprocessor macro
    #[arg(short = 'D', value_name = "NAME[=VALUE]")]
    define: Vec<String>,
}

fn differences(cli: &Cli) -> Result<Vec<Difference>, String> {
    let define = |d: &String| {
        let (name, value) = d.split_once('=').unwrap_or((d, "1"));
        (name.to_owned(), value.to_owned())
    };
    let defines = cli.define.iter().map(define).collect();
    let program = load(&cli.program, cli.include.clone(), defines)?;
    let test = cli.test.display();
    let text = std::fs::read_to_string(&cli.test).map_err(|e| format!("{test}: {e}"))?;
    let script = parse(&text).map_err(|e| format!("{test}: {e}"))?;
    let in_test = |e| format!("{test}: {e}");
    if let Some(path) = &cli.coverage {
        let counts = coverage(&program, &script).map_err(in_test)?;
        let sources = Sources::of(Some(&cli.program));
        let saved = softswitch_coverage::save(path, &counts, &sources);
        for file in saved.map_err(|e| format!("--coverage: {e}"))? {
            eprintln!("--coverage: {file} has changed: its earlier counts are dropped");
        }
    }
    run(&program, &script).map_err(in_test)
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let list = match differences(&cli) {
        Ok(list) => list,
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::from(2);
        }
    };
    let mut traced = Vec::new();
    for difference in &list {
        println!("{}:{difference}", cli.test.display());
        // Each packet's trace is printed once.
        if cli.trace && !difference.trace.is_empty() && !traced.contains(&&difference.trace) {
            println!("{}", difference.trace);
            traced.push(&difference.trace);
        }
    }
    if list.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
