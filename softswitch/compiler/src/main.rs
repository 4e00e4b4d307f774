//! `softswitch-p4c`: the command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use softswitch_p4c::diag::{Diagnostics, SourceMap};
use softswitch_p4c::{Options, compile, on_deep_stack};

/// Compiles a P4_16 program (v1model) to BMv2 JSON and P4Info.
#[derive(Parser)]
#[command(
    name = "softswitch-p4c",
    version,
    after_help = "Example:\n  softswitch-p4c -I include -D CPU_PORT=510 -o out.json --p4runtime-files out.p4info.txt prog.p4\n\n\
                  @FILE stands for the arguments in FILE. Other options of p4c-bm2-ss are taken and have no effect."
)]
struct Cli {
    /// The program; core.p4 and v1model.p4 are built in.
    program: PathBuf,

    /// Write the BMv2 JSON to this file, or into this folder under the program's name.
    #[arg(short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write the P4Info to these files, separated by commas (.txt or .txtpb).
    #[arg(
        long = "p4runtime-files",
        alias = "p4runtime-file",
        value_name = "FILES",
        value_delimiter = ','
    )]
    p4runtime_files: Vec<PathBuf>,

    /// Write the tables' entries, a P4Runtime WriteRequest, to these files (.txt or .txtpb).
    #[arg(
        long = "p4runtime-entries-files",
        alias = "p4runtime-entries-file",
        value_name = "FILES",
        value_delimiter = ','
    )]
    entries_files: Vec<PathBuf>,

    /// The format of P4Info and entries.
    #[arg(long = "p4runtime-format", value_parser = ["text"])]
    format: Option<String>,

    /// Look for included files in this folder.
    #[arg(short = 'I', value_name = "DIR")]
    include: Vec<PathBuf>,

    /// Define a preprocessor macro.
    #[arg(short = 'D', value_name = "NAME[=VALUE]")]
    define: Vec<String>,

    /// Leave a preprocessor macro undefined.
    #[arg(short = 'U', value_name = "NAME")]
    undefine: Vec<String>,

    /// Show no warnings.
    #[arg(long = "Wdisable", value_name = "KIND", num_args = 0..=1, require_equals = true)]
    no_warnings: Option<Option<String>>,

    /// Take warnings for errors.
    #[arg(long = "Werror", value_name = "KIND", num_args = 0..=1, require_equals = true)]
    warnings_are_errors: Option<Option<String>>,

    /// Pass externs that v1model does not have on to the target.
    #[arg(long)]
    emit_externs: bool,

    /// The architecture.
    #[arg(long, default_value = "v1model", value_parser = ["v1model"])]
    arch: String,

    /// The target.
    #[arg(long, short = 'b', default_value = "bmv2", value_parser = ["bmv2"])]
    target: String,

    /// The language.
    #[arg(long, alias = "p4v", default_value = "p4-16", value_parser = ["p4-16", "p4_16", "16"])]
    std: String,

    #[command(flatten)]
    ignored: Ignored,
}

/// Options of p4c that say how it works, not what it makes.
#[derive(clap::Args)]
struct Ignored {
    #[arg(long = "Wwarn", hide = true, num_args = 0..=1, require_equals = true)]
    _warn: Option<Option<String>>,
    #[arg(long = "Winfo", hide = true, num_args = 0..=1, require_equals = true)]
    _info: Option<Option<String>>,
    #[arg(long = "maxErrorCount", hide = true)]
    _max_errors: Option<String>,
    #[arg(long = "toJSON", hide = true)]
    _to_json: Option<String>,
    #[arg(long = "pp", hide = true)]
    _pretty: Option<String>,
    #[arg(long = "dump", hide = true)]
    _dump: Option<String>,
    #[arg(long = "top4", hide = true)]
    _passes: Option<String>,
    #[arg(short = 'T', hide = true)]
    _log: Vec<String>,
    #[arg(short = 'v', hide = true, action = clap::ArgAction::Count)]
    _verbose: u8,
    #[arg(short = 'g', hide = true)]
    _debug: bool,
    #[arg(short = 'O', hide = true)]
    _optimize: Option<String>,
    #[arg(long = "ndebug", hide = true)]
    _no_debug: bool,
    #[arg(long = "loopsUnroll", hide = true)]
    _unroll: bool,
    #[arg(long = "parser-inline-opt", hide = true)]
    _inline: bool,
}

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
    let cli = match arguments() {
        Ok(args) => Cli::parse_from(args),
        Err(e) => {
            eprintln!("error: {e}");
            return ExitCode::FAILURE;
        }
    };
    match on_deep_stack(move || run(&cli)) {
        Ok(Ok(code)) => code,
        _ => ExitCode::FAILURE,
    }
}

fn run(cli: &Cli) -> ExitCode {
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
        without_p4info: cli.p4runtime_files.is_empty() && cli.entries_files.is_empty(),
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
    let (sources, diags) = (SourceMap::default(), Diagnostics::default());
    let result = compile(&name, text, &options, &sources, &diags);
    if diags.has_errors() || cli.no_warnings != Some(None) {
        eprint!("{}", diags.render(&sources));
    }
    let warnings = diags.list().len() - diags.error_count();
    let Some(output) = result else {
        eprintln!("{} error(s); nothing was written", diags.error_count());
        return ExitCode::FAILURE;
    };
    if cli.warnings_are_errors.is_some() && warnings > 0 {
        eprintln!("{warnings} warning(s), taken for errors; nothing was written");
        return ExitCode::FAILURE;
    }
    let mut files: Vec<(PathBuf, String)> = Vec::new();
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
            files.push((path, format!("{json:#}\n")));
        }
    }
    let texts = cli.p4runtime_files.iter().map(|p| (p, &output.p4info));
    for (path, text) in texts.chain(cli.entries_files.iter().map(|p| (p, &output.entries))) {
        let extension = path.extension().and_then(|e| e.to_str());
        if cli.format.is_none() && !matches!(extension, Some("txt" | "txtpb")) {
            eprintln!(
                "error: {}: P4Info is written as text; name the file .txt or .txtpb",
                path.display()
            );
            return ExitCode::FAILURE;
        }
        files.push((path.clone(), text.clone()));
    }
    for (path, text) in files {
        if let Err(e) = std::fs::write(&path, text) {
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
