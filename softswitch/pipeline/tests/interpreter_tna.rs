// SPDX-License-Identifier: Apache-2.0
//! Runs the tests of TNA with the interpreter: `common::engine` selects the engine by the module's path.

#[path = "tna/main.rs"]
mod tna;
