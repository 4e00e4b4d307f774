//! What the fuzzers run: one module a target, each with `run(data)`, which panics if a promise is broken.
//!
//! | target | input | promise |
//! |---|---|---|
//! | [`compiler`] | P4 source | a program is compiled or refused with an error; what is compiled loads |
//! | [`json`] | BMv2 JSON | a program is loaded or refused; what is loaded handles packets |
//! | [`packets`] | steps: entries and packets | native code and interpreter give the same packets |
//! | [`write`](mod@write), [`read`], [`config`], [`stream`] | a P4Runtime message | it is answered; what is refused changes nothing |

pub mod compiler;
pub mod config;
pub mod json;
pub mod packets;
pub mod programs;
pub mod read;
pub mod seeds;
pub mod server;
pub mod stream;
pub mod write;

/// One target: what it is called, and what runs an input.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 7] = [
    ("compiler", compiler::run),
    ("json", json::run),
    ("packets", packets::run),
    ("write", write::run),
    ("read", read::run),
    ("config", config::run),
    ("stream", stream::run),
];
