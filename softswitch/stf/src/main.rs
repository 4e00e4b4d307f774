//! `softswitch-stf`: the command line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use softswitch_stf::{Difference, load, parse, run};

/// Runs an STF test on a P4 program, in process, with no interfaces, and says what differs.
///
/// Ends with status 0 if nothing does, 1 if something does, 2 if the test could not be run.
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

    /// Also print what the packets went through that something is wrong with
    #[arg(long)]
    trace: bool,

    /// Look for included files in this folder
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
    run(&program, &script).map_err(|e| format!("{test}: {e}"))
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
        // What one packet went through is told once.
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
