// SPDX-License-Identifier: Apache-2.0
//! Runs the tests of PSA with the interpreter: `common::engine` selects the engine by the module's path.

#[path = "psa.rs"]
mod psa;
