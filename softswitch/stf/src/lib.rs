// SPDX-License-Identifier: Apache-2.0
//! Runs STF tests (p4c's simple test framework) on a pipeline, in process, without interfaces.
//!
//! An STF file lists control-plane commands (`add`, `setdefault`, `mirroring_add`, ...), input packets
//! (`packet PORT HEX`) and expected output packets (`expect PORT HEX`, with `*` for any digit and `$` for the end).
#![forbid(unsafe_code)]

mod difference;
mod entries;
mod pattern;
mod program;
mod run;
mod script;

pub use difference::Difference;
pub use program::{Compiled, compile, load};
pub use run::{coverage, run};
pub use script::{Line, parse};
