// SPDX-License-Identifier: Apache-2.0
//! `softswitch-p4c`: the command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use cli::Cli;
use softswitch_p4c::diag::{Diagnostics, Policy, SourceMap};
use softswitch_p4c::{Options, compile, on_deep_stack};

mod cli;

/// The command line, with the arguments in `@FILE` put in its place.
fn arguments() -> Result<Vec<OsString>, String> {
    let mut out = Vec::new();
    for a in std::env::args_os() {
        match a.to_str().and_then(|a| a.strip_prefix('@')) {
            Some(file) => {
                let text = std::fs::read_to_string(file)
                    .map_err(|e| format!("cannot read {file}: {e}"))?;
                out.extend(text.split_whitespace().map(OsString::from));
            }
            None => out.push(a),
        }
    }
    Ok(out)
}

fn main() -> ExitCode {
    let matches = match arguments() {
        Ok(args) => Cli::command().get_matches_from(args),
        Err(e) => {
            eprintln!("error: {e}");
            return ExitCode::FAILURE;
        }
    };
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|e| e.exit());
    let policy = cli::policy(&matches);
    match on_deep_stack(move || run(&cli, policy)) {
        Ok(Ok(code)) => code,
        _ => ExitCode::FAILURE,
    }
}

fn run(cli: &Cli, policy: Policy) -> ExitCode {
    let (p4info_files, entries_files) = match (cli.p4info_files(), cli.entries_files()) {
        (Ok(p4info), Ok(entries)) => (p4info, entries),
        (Err(e), _) | (_, Err(e)) => {
            eprintln!("error: {e}");
            return ExitCode::FAILURE;
        }
    };
    let name = cli.program.display().to_string();
    let text = match std::fs::read(&cli.program) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(e) => {
            eprintln!("error: cannot read {name}: {e}");
            return ExitCode::FAILURE;
        }
    };
    let options = Options {
        emit_externs: cli.emit_externs,
        without_p4info: p4info_files.is_empty() && entries_files.is_empty(),
        include_dirs: cli.include.clone(),
        defines: cli
            .define
            .iter()
            .map(|d| match d.split_once('=') {
                Some((n, v)) => (n.to_string(), Some(v.to_string())),
                None => (d.clone(), Some("1".to_string())),
            })
            .chain(cli.undefine.iter().map(|name| (name.clone(), None)))
            .collect(),
    };
    let (sources, diags) = (SourceMap::default(), Diagnostics::new(policy));
    let result = compile(&name, text, &options, &sources, &diags);
    eprint!("{}", diags.render(&sources));
    let Some(output) = result else {
        eprintln!("{} error(s); no files were written", diags.error_count());
        return ExitCode::FAILURE;
    };
    let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    if let Some(path) = &cli.output {
        let mut path = path.clone();
        if path.is_dir() {
            path.push(
                cli.program
                    .with_extension("json")
                    .file_name()
                    .unwrap_or_default(),
            );
        }
        if let Some(json) = &output.json {
            files.push((path, format!("{json:#}\n").into_bytes()));
        }
    }
    for (path, format) in p4info_files {
        files.push((
            path.into(),
            format.write(&output.p4info, "p4.config.v1.P4Info"),
        ));
    }
    for (path, format) in entries_files {
        files.push((
            path.into(),
            format.write(&output.entries, "p4.v1.WriteRequest"),
        ));
    }
    for (path, bytes) in files {
        if let Err(e) = std::fs::write(&path, bytes) {
            eprintln!("error: cannot write {}: {e}", path.display());
            return ExitCode::FAILURE;
        }
    }
    if output.json.is_none() {
        eprintln!("{} error(s); no BMv2 JSON was written", diags.error_count());
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
