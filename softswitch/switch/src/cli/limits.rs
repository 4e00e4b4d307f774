// SPDX-License-Identifier: Apache-2.0
//! Limits against endless loops of programs.

use clap::Args;
use softswitch_pipeline::Options;

/// Limits against endless loops of programs, which would stop the packets of all ports.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Limits")]
pub struct Limits {
    /// Drop packets that are resubmitted more often
    #[arg(long, default_value_t = Options::default().max_resubmits, value_name = "N")]
    pub max_resubmits: u32,

    /// Reject packets with ParserTimeout after this number of parser states
    #[arg(long, default_value_t = Options::default().max_parser_states, value_name = "N")]
    pub max_parser_states: u32,

    /// Drop packets with more rounds of loops in ingress, or in egress
    #[arg(long, default_value_t = Options::default().max_iterations, value_name = "N")]
    pub max_iterations: u32,
}

impl Limits {
    /// Sets the limits in the options of a pipeline.
    pub fn apply(self, options: Options) -> Options {
        Options {
            max_resubmits: self.max_resubmits,
            max_parser_states: self.max_parser_states,
            max_iterations: self.max_iterations,
            ..options
        }
    }
}
