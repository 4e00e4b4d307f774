// SPDX-License-Identifier: Apache-2.0
//! Options of BMv2 that are accepted and have no effect.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command};

const HEADING: &str = "Options of simple_switch without effect";

/// Options of `simple_switch` and `simple_switch_grpc` without effect here. Their help is the reason.
#[derive(Debug, Args)]
#[command(next_help_heading = HEADING)]
pub struct Unused {
    /// there is no log of events over nanomsg: use --trace
    #[arg(long = "nanolog", value_name = "ADDRESS")]
    _nanolog: Option<OsString>,

    /// packets do not come over nanomsg: use --interface or --dp-grpc-server-addr
    #[arg(long = "packet-in", value_name = "ADDRESS")]
    _packet_in: Option<OsString>,

    /// there is no debugger: use --trace
    #[arg(long = "debugger")]
    _debugger: bool,

    /// there is no debugger: use --trace
    #[arg(long = "debugger-addr", value_name = "ADDRESS")]
    _debugger_addr: Option<OsString>,

    /// the switch starts without saved entries: write them through P4Runtime
    #[arg(long = "restore-state", value_name = "FILE")]
    _restore_state: Option<OsString>,

    /// extern types cannot be loaded
    #[arg(long = "load-modules", value_name = "FILE,...")]
    _load_modules: Option<OsString>,

    /// the number of ports is unlimited
    #[arg(long = "max-port-count", value_name = "N")]
    _max_port_count: Option<u32>,

    /// each port has 8 queues; only Thrift clients number them in this way
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8))]
    pub priority_queues: Option<u32>,

    /// the number of multicast groups is unlimited
    #[arg(long = "max-mc-groups", value_name = "N")]
    _max_mc_groups: Option<u32>,

    /// the number of replicas is unlimited
    #[arg(long = "max-l1-entries", value_name = "N")]
    _max_l1_entries: Option<u32>,

    /// the number of replicas is unlimited
    #[arg(long = "max-l2-entries", value_name = "N")]
    _max_l2_entries: Option<u32>,
}

/// Returns a note about each option of [`Unused`] on the command line.
pub(super) fn notes(command: &Command, matches: &ArgMatches) -> Vec<String> {
    let unused = command.get_arguments().filter(|arg| {
        let source = matches.value_source(arg.get_id().as_str());
        arg.get_help_heading() == Some(HEADING) && source == Some(ValueSource::CommandLine)
    });
    let note = |arg: &clap::Arg| {
        let (name, reason) = (arg.get_long()?, arg.get_help()?);
        Some(format!("--{name} has no effect: {reason}"))
    };
    unused.filter_map(note).collect()
}
