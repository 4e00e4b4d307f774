// SPDX-License-Identifier: Apache-2.0
//! The command line, which follows p4c-bm2-ss and the driver p4c.

pub mod arguments;
mod dependencies;
pub mod unused;

use std::path::{Path, PathBuf};

use clap::{ArgMatches, Parser};
use dependencies::Dependencies;
use softswitch_p4c::Format;
use softswitch_p4c::diag::{Action, Policy};
use unused::Unused;

/// Compiles a P4_16 program (v1model, PSA, TNA or T2NA) to BMv2 JSON and P4Info.
#[derive(Parser)]
#[command(
    name = "softswitch-p4c",
    version,
    args_override_self = true,
    after_help = "Example:\n  softswitch-p4c -I include -D CPU_PORT=510 -o out.json --p4runtime-files out.p4info.txt prog.p4\n\n\
                  @FILE stands for the arguments in FILE. Called p4c, the program behaves like p4c's driver: -o is a folder \
                  (the current one by default), which is created."
)]
pub struct Cli {
    /// The program; core.p4, v1model.p4, psa.p4, tna.p4 and t2na.p4 are built in.
    #[arg(required_unless_present_any = ["help_pragmas", "help_targets", "list_frontend_passes", "list_midend_passes"])]
    pub program: Option<PathBuf>,

    /// Write the BMv2 JSON to this file, or to this folder under the program's name.
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Write the P4Info to these files, separated by commas (.txtpb, .txt, .json or .bin).
    #[arg(long = "p4runtime-files", value_name = "FILES", value_delimiter = ',')]
    pub p4runtime_files: Vec<PathBuf>,

    /// Write the P4Info to this file, in the format of --p4runtime-format.
    #[arg(long = "p4runtime-file", value_name = "FILE")]
    p4runtime_file: Option<PathBuf>,

    /// Write the tables' entries, a P4Runtime WriteRequest, to these files (.txtpb, .txt, .json or .bin).
    #[arg(
        long = "p4runtime-entries-files",
        value_name = "FILES",
        value_delimiter = ','
    )]
    pub entries_files: Vec<PathBuf>,

    /// Write the entries to this file, in the format of --p4runtime-format.
    #[arg(long = "p4runtime-entries-file", value_name = "FILE")]
    entries_file: Option<PathBuf>,

    /// The format of --p4runtime-file and --p4runtime-entries-file.
    #[arg(long = "p4runtime-format", value_name = "FORMAT", default_value = "binary", value_parser = ["binary", "json", "text"])]
    format: String,

    /// Write the schema of BfRuntime (bf-rt.json), the description of the program's tables, to this file.
    #[arg(long = "bf-rt-schema", value_name = "FILE")]
    pub bfrt_schema: Option<PathBuf>,

    /// Search included files in this folder.
    #[arg(short = 'I', value_name = "DIR")]
    pub include: Vec<PathBuf>,

    /// Define a preprocessor macro.
    #[arg(short = 'D', value_name = "NAME[=VALUE]")]
    pub define: Vec<String>,

    /// Leave a preprocessor macro undefined.
    #[arg(short = 'U', value_name = "NAME")]
    pub undefine: Vec<String>,

    /// Suppress all warnings, or those of these kinds; each warning names its kind.
    #[arg(long = "Wdisable", value_name = "KIND,...", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    disable: Vec<String>,

    /// Show warnings of these kinds, even if --Wdisable or --Werror applies to all.
    #[arg(long = "Wwarn", value_name = "KIND,...", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    warn: Vec<String>,

    /// Treat all warnings as errors, or those of these kinds.
    #[arg(long = "Werror", value_name = "KIND,...", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    error: Vec<String>,

    /// Print the longest chain of dependent tables and registers of each gress, a lower bound on stages; only for Tofino.
    #[arg(long)]
    pub report: bool,

    /// Pass externs that v1model does not declare to the target.
    #[arg(long)]
    pub emit_externs: bool,

    /// The architecture of the program; without this option, that of its package. `tna` and `t2na` define
    /// __TARGET_TOFINO__ as 1 and 2.
    #[arg(long, short = 'a', value_name = "NAME", value_parser = ["v1model", "psa", "tna", "t2na"])]
    pub arch: Option<String>,

    /// The target. `tofino` and `tofino2` define __TARGET_TOFINO__ as 1 and 2, whatever the architecture is; the output
    /// is the same.
    #[arg(long, short = 'b', default_value = "bmv2", value_parser = ["bmv2", "tofino", "tofino2"])]
    pub target: String,

    /// The language.
    #[arg(long, short = 'x', alias = "p4v", default_value = "p4-16", value_parser = ["p4-16", "p4_16", "16", "1.2", "P4₁₆"])]
    pub std: String,

    /// Only preprocess: print the program, or write it as FOLDER/NAME.p4i if this program is called p4c.
    #[arg(short = 'E')]
    pub preprocess_only: bool,

    /// Accepted: there are no steps after compilation.
    #[arg(short = 'c', long = "compile")]
    _compile: bool,

    /// Accepted: there are no steps after compilation.
    #[arg(short = 'S')]
    _until_assembler: bool,

    /// Print the supported annotations.
    #[arg(long, aliases = ["pragma-help", "pragmas-help", "help-annotations", "annotation-help", "annotations-help"])]
    pub help_pragmas: bool,

    /// Print the supported targets.
    #[arg(long, aliases = ["target-help", "targets-help"])]
    pub help_targets: bool,

    #[command(flatten)]
    pub dependencies: Dependencies,

    #[command(flatten)]
    pub unused: Unused,
}

impl Cli {
    /// Returns the output file with this extension, or `None` if no output was requested. `-o` is the file, or a folder
    /// for a file with the program's name. For the driver it is always a folder, by default the current one.
    pub fn output_file(&self, program: &Path, as_driver: bool, extension: &str) -> Option<PathBuf> {
        let name = file_name(program, extension);
        match &self.output {
            Some(output) if as_driver || output.is_dir() => Some(output.join(name)),
            Some(output) => Some(output.clone()),
            None => as_driver.then_some(name),
        }
    }

    /// The files for P4Info, with their formats.
    pub fn p4info_files(&self) -> Result<Vec<(&Path, Format)>, String> {
        self.files(self.p4runtime_file.as_deref(), &self.p4runtime_files)
    }

    /// The files for the tables' entries, with their formats.
    pub fn entries_files(&self) -> Result<Vec<(&Path, Format)>, String> {
        self.files(self.entries_file.as_deref(), &self.entries_files)
    }

    fn files<'a>(
        &self,
        one: Option<&'a Path>,
        more: &'a [PathBuf],
    ) -> Result<Vec<(&'a Path, Format)>, String> {
        let format = match &*self.format {
            "text" => Format::Text,
            "json" => Format::Json,
            _ => Format::Binary,
        };
        let named = |path: &'a PathBuf| match Format::of(path) {
            Some(format) => Ok((path.as_path(), format)),
            None => Err(format!(
                "{}: unknown extension: use .txtpb, .txt, .json or .bin",
                path.display()
            )),
        };
        one.map(|path| Ok((path, format)))
            .into_iter()
            .chain(more.iter().map(named))
            .collect()
    }
}

/// Returns the value of __TARGET_TOFINO__ for a target that defines it.
pub fn chip(target: &str) -> Option<&'static str> {
    match target {
        "tofino" => Some("1"),
        "tofino2" => Some("2"),
        _ => None,
    }
}

/// Returns the program's file name with another extension.
pub fn file_name(program: &Path, extension: &str) -> PathBuf {
    let path = program.with_extension(extension);
    path.file_name().unwrap_or_default().into()
}

/// Returns the policy for warnings; the last option for a kind wins.
pub fn policy(matches: &ArgMatches) -> Policy {
    let mut given = Vec::new();
    for (option, action) in [
        ("disable", Action::Ignore),
        ("warn", Action::Warn),
        ("error", Action::Error),
    ] {
        let places = matches.indices_of(option).into_iter().flatten();
        let kinds = matches.get_many::<String>(option).into_iter().flatten();
        given.extend(
            places
                .zip(kinds)
                .map(|(place, kinds)| (place, action, kinds)),
        );
    }
    given.sort_by_key(|(place, ..)| *place);
    let mut policy = Policy::default();
    for (_, action, kinds) in given {
        match (&**kinds, action) {
            // Alone, it turns messages that this compiler does not have into warnings.
            ("", Action::Warn) => {}
            ("", action) => policy.set(None, action),
            (kinds, action) => kinds
                .split(',')
                .for_each(|kind| policy.set(Some(kind), action)),
        }
    }
    policy
}
