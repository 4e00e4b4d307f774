// SPDX-License-Identifier: Apache-2.0
//! `softswitch-p4c`: the command line.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use cli::Cli;
use softswitch_p4c::diag::{Diagnostics, Policy, SourceMap};
use softswitch_p4c::{Options, compile, on_deep_stack, preprocess};

mod cli;

/// The name of p4c's driver, whose output options differ from those of p4c-bm2-ss.
const DRIVER: &str = "p4c";

/// An error message without a position in the program.
type Result<T> = std::result::Result<T, String>;

fn main() -> ExitCode {
    let name = std::env::args_os().next().unwrap_or_default();
    let as_driver = Path::new(&name).file_name().is_some_and(|n| n == DRIVER);
    let arguments = match cli::arguments::read(std::env::args_os(), as_driver) {
        Ok(arguments) => arguments,
        Err(e) => {
            eprintln!("error: {e}");
            return ExitCode::FAILURE;
        }
    };
    let mut command = Cli::command();
    let matches = command.try_get_matches_from_mut(arguments);
    let matches = matches.unwrap_or_else(|e| e.exit());
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|e| e.exit());
    for note in cli::unused::notes(&command, &matches) {
        eprintln!("note: {note}");
    }
    let policy = cli::policy(&matches);
    match on_deep_stack(move || run(&cli, as_driver, policy)) {
        Ok(Ok(Ok(()))) => ExitCode::SUCCESS,
        Ok(Ok(Err(message))) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
        _ => ExitCode::FAILURE,
    }
}

fn run(cli: &Cli, as_driver: bool, policy: Policy) -> Result<()> {
    if cli.help_targets {
        println!("bmv2-v1model: BMv2's simple_switch and softswitch");
        println!("bmv2-psa: BMv2's psa_switch and softswitch");
        println!("bmv2-tna, bmv2-t2na, tofino-tna, tofino2-tna, tofino2-t2na: softswitch");
    }
    if cli.help_pragmas {
        println!("The annotations of P4_16 and P4Runtime: see their specifications.");
    }
    // Only options without a program may leave it out.
    let Some(program) = &cli.program else {
        return Ok(());
    };
    let bytes = std::fs::read(program)
        .map_err(|e| format!("error: cannot read {}: {e}", program.display()))?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let job = Job {
        cli,
        as_driver,
        program,
        sources: SourceMap::default(),
        diags: Diagnostics::new(policy),
    };
    if cli.preprocess_only || cli.dependencies.only {
        return job.preprocess(text);
    }
    job.compile(text)
}

/// One run of the compiler.
struct Job<'a> {
    cli: &'a Cli,
    as_driver: bool,
    program: &'a Path,
    sources: SourceMap,
    diags: Diagnostics,
}

impl Job<'_> {
    fn options(&self, without_p4info: bool) -> Options {
        let chip = cli::chip(&self.cli.target);
        let chip = chip.map(|value| ("__TARGET_TOFINO__".to_string(), Some(value.to_string())));
        let defines = self.cli.define.iter().map(|d| match d.split_once('=') {
            Some((n, v)) => (n.to_string(), Some(v.to_string())),
            None => (d.clone(), Some("1".to_string())),
        });
        let undefines = self.cli.undefine.iter().map(|name| (name.clone(), None));
        Options {
            architecture: self.cli.arch.clone(),
            emit_externs: self.cli.emit_externs,
            without_p4info,
            bfrt: self.cli.bfrt_schema.is_some(),
            include_dirs: self.cli.include.clone(),
            defines: chip.into_iter().chain(defines).chain(undefines).collect(),
        }
    }

    /// Writes the preprocessed program, or the make rule of its dependencies.
    fn preprocess(self, text: String) -> Result<()> {
        let name = self.program.display().to_string();
        let options = self.options(true);
        let preprocessed = preprocess(&name, text, &options, &self.sources, &self.diags);
        let dependencies = &self.cli.dependencies;
        if !dependencies.accept_missing {
            eprint!("{}", self.diags.render(&self.sources));
        }
        if dependencies.only && (preprocessed.is_some() || dependencies.accept_missing) {
            let rule = self.rule();
            return match &dependencies.file {
                Some(file) => write(file, rule.as_bytes()),
                None => print(&rule),
            };
        }
        let text = preprocessed.ok_or_else(|| self.failure("no files were written"))?;
        match self.cli.output_file(self.program, self.as_driver, "p4i") {
            Some(path) => {
                self.create_folder()?;
                write(&path, text.as_bytes())
            }
            None => print(&text),
        }
    }

    /// Returns the make rule of the program's dependencies. The preprocessor must have run.
    fn rule(&self) -> String {
        let names = self.sources.names();
        let included = names
            .into_iter()
            .filter(|name| Path::new(name) != self.program);
        // Built-in files do not exist.
        let included: Vec<String> = included.filter(|name| Path::new(name).exists()).collect();
        self.cli.dependencies.rule(self.program, &included)
    }

    /// Creates the output folder of p4c's driver.
    fn create_folder(&self) -> Result<()> {
        let Some(folder) = self.cli.output.as_ref().filter(|_| self.as_driver) else {
            return Ok(());
        };
        std::fs::create_dir_all(folder)
            .map_err(|e| format!("error: cannot create {}: {e}", folder.display()))
    }

    /// Returns the last message of a run with errors.
    fn failure(&self, what: &str) -> String {
        format!("{} error(s); {what}", self.diags.error_count())
    }

    fn compile(self, text: String) -> Result<()> {
        let cli = self.cli;
        let error = |e| format!("error: {e}");
        let p4info_files = cli.p4info_files().map_err(error)?;
        let entries_files = cli.entries_files().map_err(error)?;
        let needs_p4info =
            !p4info_files.is_empty() || !entries_files.is_empty() || cli.bfrt_schema.is_some();
        let options = self.options(!needs_p4info);
        let name = self.program.display().to_string();
        let result = compile(&name, text, &options, &self.sources, &self.diags);
        eprint!("{}", self.diags.render(&self.sources));
        let output = result.ok_or_else(|| self.failure("no files were written"))?;
        let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::new();
        let json_file = cli.output_file(self.program, self.as_driver, "json");
        if let (Some(path), Some(json)) = (json_file, &output.json) {
            files.push((path, format!("{json:#}\n").into_bytes()));
        }
        for (path, format) in p4info_files {
            let bytes = format.write(&output.p4info, "p4.config.v1.P4Info");
            files.push((path.into(), bytes));
        }
        for (path, format) in entries_files {
            let bytes = format.write(&output.entries, "p4.v1.WriteRequest");
            files.push((path.into(), bytes));
        }
        if let (Some(path), Some(schema)) = (&cli.bfrt_schema, &output.bfrt) {
            files.push((path.clone(), format!("{schema:#}\n").into_bytes()));
        }
        if cli.dependencies.also {
            let path = cli.dependencies.file.clone();
            let path = path.unwrap_or_else(|| cli::file_name(self.program, "d"));
            files.push((path, self.rule().into_bytes()));
        }
        self.create_folder()?;
        for (path, bytes) in files {
            write(&path, &bytes)?;
        }
        if cli.report {
            print(&output.report)?;
        }
        if output.json.is_none() {
            return Err(self.failure("no BMv2 JSON was written"));
        }
        Ok(())
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).map_err(|e| format!("error: cannot write {}: {e}", path.display()))
}

fn print(text: &str) -> Result<()> {
    use std::io::Write;
    let printed = std::io::stdout().write_all(text.as_bytes());
    printed.map_err(|e| format!("error: cannot write to standard output: {e}"))
}
