//! `softswitch-stf PROGRAM.json TEST.stf`: runs an STF test in process, with no interfaces, and says what
//! differed. Exits with 0 if nothing did, 1 if something did, 2 if the test could not be run.

mod entries;
mod run;
mod script;

use std::process::ExitCode;

use softswitch_pipeline::{Options, Pipeline, Program};

fn differences(program: &str, test: &str) -> Result<Vec<String>, String> {
    let read = |path: &str| std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"));
    let loaded = Program::load(&read(program)?).map_err(|e| format!("{program}: {e}"))?;
    let script = script::parse(&read(test)?).map_err(|e| format!("{test}: {e}"))?;
    let pipeline = Pipeline::new(loaded, Options::default());
    run::Runner::new(pipeline)
        .run(&script)
        .map_err(|e| format!("{test}: {e}"))
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [program, test] = args.as_slice() else {
        eprintln!("usage: softswitch-stf PROGRAM.json TEST.stf");
        return ExitCode::from(2);
    };
    match differences(program, test) {
        Ok(list) if list.is_empty() => ExitCode::SUCCESS,
        Ok(list) => {
            for difference in list {
                println!("{difference}");
            }
            ExitCode::FAILURE
        }
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(2)
        }
    }
}
