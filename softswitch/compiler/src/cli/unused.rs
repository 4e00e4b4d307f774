// SPDX-License-Identifier: Apache-2.0
//! Options of p4c that are accepted and have no effect.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command};

const HEADING: &str = "Options of p4c without effect";

/// Options of `p4c` and `p4c-bm2-ss` without effect here. Their help is the reason.
#[derive(Args)]
#[command(next_help_heading = HEADING)]
pub struct Unused {
    /// messages have no kind "info"
    #[arg(long = "Winfo", value_name = "KIND", num_args = 0..=1, require_equals = true)]
    _info: Option<Option<String>>,
    /// all errors are shown
    #[arg(long = "maxErrorCount", value_name = "N")]
    _max_errors: Option<String>,
    /// the preprocessor is built in
    #[arg(short = 'W', value_name = "WARNING")]
    _preprocessor_warning: Vec<String>,
    /// the preprocessor is built in
    #[arg(long = "nocpp", short = 'e')]
    _no_preprocessor: bool,
    /// the preprocessor is built in
    #[arg(long = "Xpreprocessor", value_name = "ARG", allow_hyphen_values = true)]
    _to_preprocessor: Vec<String>,
    /// there is no separate compiler
    #[arg(long = "Xp4c", value_name = "ARG", allow_hyphen_values = true)]
    _to_compiler: Vec<String>,
    /// there is no assembler
    #[arg(long = "Xassembler", value_name = "ARG", allow_hyphen_values = true)]
    _to_assembler: Vec<String>,
    /// there is no linker
    #[arg(long = "Xlinker", value_name = "ARG", allow_hyphen_values = true)]
    _to_linker: Vec<String>,
    /// no other commands are run
    #[arg(long = "test-only", alias = "###")]
    _dry_run: bool,
    /// all annotations are read
    #[arg(long = "disable-annotations", aliases = ["disable-annotation", "disable-pragmas", "disable-pragma"],
          value_name = "NAME,...", num_args = 0..=1, require_equals = true)]
    _annotations: Option<Option<String>>,
    /// this compiler does not have p4c's intermediate representation
    #[arg(long = "toJSON", alias = "toJson", value_name = "FILE")]
    _to_json: Option<OsString>,
    /// this compiler does not have p4c's intermediate representation
    #[arg(long = "fromJSON", value_name = "FILE")]
    _from_json: Option<OsString>,
    /// this compiler does not have p4c's intermediate representation
    #[arg(long = "testJson")]
    _test_json: bool,
    /// this compiler does not print programs
    #[arg(long = "pp", value_name = "FILE")]
    _pretty: Option<OsString>,
    /// this compiler does not print programs
    #[arg(long = "doNotEmitIncludes")]
    _no_includes: bool,
    /// this compiler has other passes
    #[arg(long = "dump", value_name = "FOLDER")]
    _dump: Option<OsString>,
    /// this compiler has other passes
    #[arg(long = "top4", value_name = "PASS,...")]
    _passes: Vec<String>,
    /// this compiler has other passes
    #[arg(long = "excludeFrontendPasses", value_name = "PASS,...")]
    _without_frontend_passes: Vec<String>,
    /// this compiler has other passes
    #[arg(long = "excludeMidendPasses", value_name = "PASS,...")]
    _without_midend_passes: Vec<String>,
    /// this compiler has other passes
    #[arg(long = "listFrontendPasses")]
    pub list_frontend_passes: bool,
    /// this compiler has other passes
    #[arg(long = "listMidendPasses")]
    pub list_midend_passes: bool,
    /// this compiler has no log
    #[arg(short = 'T', value_name = "LEVEL")]
    _log: Vec<String>,
    /// this compiler has no log
    #[arg(short = 'v', long = "debug", action = clap::ArgAction::Count)]
    _verbose: u8,
    /// this compiler does not measure programs
    #[arg(long = "metrics", value_name = "METRIC,...")]
    _metrics: Option<String>,
    /// the JSON contains all source positions
    #[arg(short = 'g')]
    _debug: bool,
    /// the JSON contains all source positions
    #[arg(long = "ndebug")]
    _no_debug: bool,
    /// there is one level
    #[arg(long = "O", value_name = "LEVEL", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Append)]
    _optimize: Vec<Option<String>>,
    /// the target runs loops of parsers
    #[arg(long = "loopsUnroll")]
    _unroll: bool,
    /// each call of a parser has its own states
    #[arg(long = "parser-inline-opt")]
    _inline: bool,
    /// only other targets have this file
    #[arg(long = "context", value_name = "FILE")]
    _context: Option<OsString>,
    /// run the program in the debugger
    #[arg(long = "gdb")]
    _gdb: bool,
    /// run the program in the debugger
    #[arg(long = "cgdb")]
    _cgdb: bool,
    /// run the program in the debugger
    #[arg(long = "lldb")]
    _lldb: bool,
}

/// Returns a note about each option of [`Unused`] on the command line.
pub fn notes(command: &Command, matches: &ArgMatches) -> Vec<String> {
    let unused = command.get_arguments().filter(|arg| {
        let source = matches.value_source(arg.get_id().as_str());
        arg.get_help_heading() == Some(HEADING) && source == Some(ValueSource::CommandLine)
    });
    let note = |arg: &Arg| {
        let name = match (arg.get_long(), arg.get_short()) {
            (Some("O"), _) => "-O".to_owned(),
            (Some(long), _) => format!("--{long}"),
            (None, Some(short)) => format!("-{short}"),
            (None, None) => return None,
        };
        Some(format!("{name} has no effect: {}", arg.get_help()?))
    };
    unused.filter_map(note).collect()
}
