// SPDX-License-Identifier: Apache-2.0
//! The commands against a switch that the test starts.

mod commands;
mod common;
mod connection;
mod documentation;
mod errors;
mod scripts;
