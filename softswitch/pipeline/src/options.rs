// SPDX-License-Identifier: Apache-2.0
//! Properties of a pipeline that the program does not define.

/// The execution engine. Both give the same results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Engine {
    /// Machine code of the host, compiled with the first pipeline that uses it. The interpreter runs the parts that cannot be
    /// compiled, and everything while tracing is on.
    #[default]
    Native,
    /// The interpreter, which is the reference.
    Interpreter,
}

/// Properties of a pipeline that the program does not define.
#[derive(Debug, Clone)]
pub struct Options {
    /// The execution engine.
    pub engine: Engine,
    /// Native code adapts to the paths of packets. At first, one run of a control in this number is noted, later fewer are;
    /// with 0, none is, and the code does not adapt.
    pub adapt_every: u32,
    /// Seed of the `random` extern.
    pub seed: u64,
    /// The port number that means "drop": `simple_switch`'s `--drop-port`.
    pub drop_port: u32,
    /// The port to which programs for TNA send copies to the CPU; by default 64 on Tofino 1 and 0 on Tofino 2.
    pub cpu_port: Option<u32>,
    /// Number of pipes of programs for TNA, at most [`MAX_PIPES`](crate::MAX_PIPES); other programs have one. Bits 7 and
    /// higher of a port are its pipe.
    pub pipes: u32,
    /// Maximum number of resubmissions of a packet, which is then dropped.
    pub max_resubmits: u32,
    /// Maximum number of recirculations of a packet and its copies in [`Pipeline::process`](crate::Pipeline::process).
    pub max_recirculations: u32,
    /// Maximum number of parser states per packet, which is then rejected with `ParserTimeout`.
    pub max_parser_states: u32,
    /// Maximum number of loop iterations of a packet in ingress, and in egress: rounds of a loop in an action or in a
    /// control. With more, the packet is dropped.
    pub max_iterations: u32,
    /// Keep the lines of `log_msg` for [`Pipeline::take_log`](crate::Pipeline::take_log).
    pub keep_log: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            engine: Engine::default(),
            adapt_every: 1024,
            seed: 0,
            drop_port: 511,
            cpu_port: None,
            pipes: 1,
            max_resubmits: 1000,
            max_recirculations: 1000,
            // Two states per byte of the longest frame.
            max_parser_states: 1 << 17,
            max_iterations: 1 << 20,
            keep_log: false,
        }
    }
}
