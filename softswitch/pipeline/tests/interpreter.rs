// SPDX-License-Identifier: Apache-2.0
//! Runs the packet tests with the interpreter: `common::engine` selects the engine by the module's path.

#[path = "packets.rs"]
mod packets;
