// SPDX-License-Identifier: Apache-2.0
//! Fuzz targets of softswitch: one module a target, each with a function `run(data)` that panics if the property does not hold.
//!
//! | target | input | property |
//! |---|---|---|
//! | [`compiler`] | P4 source | the compiler accepts the program or reports an error; the output of an accepted program loads |
//! | [`json`] | BMv2 JSON | the loader accepts or rejects the program; a loaded program processes packets, the same by native code and by the interpreter |
//! | [`packets`] | steps: entries and packets | native code and interpreter produce the same packets |
//! | [`write`](mod@write), [`read`], [`config`], [`stream`] | a P4Runtime message | the server answers; a refused request changes nothing |
//! | [`thrift`](mod@thrift) | the bytes of a Thrift connection | the services do not panic; a refused call changes nothing |
//! | [`thrift_calls`] | calls of Thrift functions | the same |

mod calls;
pub mod compiler;
pub mod config;
pub mod json;
pub mod packets;
pub mod programs;
pub mod read;
pub mod seeds;
pub mod server;
pub mod stream;
pub mod thrift;
pub mod thrift_calls;
pub mod write;

/// The name of a target, and the function that runs one input.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 9] = [
    ("compiler", compiler::run),
    ("json", json::run),
    ("packets", packets::run),
    ("write", write::run),
    ("read", read::run),
    ("config", config::run),
    ("stream", stream::run),
    ("thrift", thrift::run),
    ("thrift_calls", thrift_calls::run),
];
