//! `softswitch-p4c`: the command line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use softswitch_p4c::diag::{Diagnostics, SourceMap};
use softswitch_p4c::{Options, compile};

/// Compiles a P4_16 program (v1model) to BMv2 JSON and P4Info.
#[derive(Parser)]
#[command(
    name = "softswitch-p4c",
    version,
    after_help = "Example:\n  softswitch-p4c -I include -D CPU_PORT=510 -o out.json --p4runtime-files out.p4info.txt prog.p4"
)]
struct Cli {
    /// The program; core.p4 and v1model.p4 are built in.
    program: PathBuf,

    /// Write the BMv2 JSON to this file.
    #[arg(short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write the P4Info to these files, separated by commas (.txt or .txtpb).
    #[arg(long = "p4runtime-files", value_name = "FILES", value_delimiter = ',')]
    p4runtime_files: Vec<PathBuf>,

    /// Look for included files in this folder.
    #[arg(short = 'I', value_name = "DIR")]
    include: Vec<PathBuf>,

    /// Define a preprocessor macro.
    #[arg(short = 'D', value_name = "NAME[=VALUE]")]
    define: Vec<String>,

    /// Pass externs that v1model does not have on to the target.
    #[arg(long)]
    emit_externs: bool,

    /// The architecture.
    #[arg(long, default_value = "v1model", value_parser = ["v1model"])]
    arch: String,

    /// The target.
    #[arg(long, default_value = "bmv2", value_parser = ["bmv2"])]
    target: String,

    /// The language.
    #[arg(long, default_value = "p4-16", value_parser = ["p4-16", "p4_16", "16"])]
    std: String,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Deeply nested programs recurse; the main thread's stack is too small for the worst of them.
    let worker = std::thread::Builder::new()
        .stack_size(256 << 20)
        .spawn(move || run(&cli));
    match worker.map(std::thread::JoinHandle::join) {
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
        include_dirs: cli.include.clone(),
        defines: cli
            .define
            .iter()
            .map(|d| match d.split_once('=') {
                Some((n, v)) => (n.to_string(), v.to_string()),
                None => (d.clone(), "1".to_string()),
            })
            .collect(),
    };
    let (sources, diags) = (SourceMap::default(), Diagnostics::default());
    let result = compile(&name, text, &options, &sources, &diags);
    eprint!("{}", diags.render(&sources));
    let Some(output) = result else {
        eprintln!("{} error(s); nothing was written", diags.error_count());
        return ExitCode::FAILURE;
    };
    let mut files: Vec<(&PathBuf, String)> = Vec::new();
    if let Some(path) = &cli.output {
        files.push((path, format!("{:#}\n", output.json)));
    }
    for path in &cli.p4runtime_files {
        match path.extension().and_then(|e| e.to_str()) {
            Some("txt" | "txtpb") => files.push((path, output.p4info.clone())),
            _ => {
                eprintln!(
                    "error: {}: P4Info is written as text; name the file .txt or .txtpb",
                    path.display()
                );
                return ExitCode::FAILURE;
            }
        }
    }
    for (path, text) in files {
        if let Err(e) = std::fs::write(path, text) {
            eprintln!("error: cannot write {}: {e}", path.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
