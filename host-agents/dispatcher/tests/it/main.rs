// SPDX-License-Identifier: Apache-2.0
//! Tests of the dispatcher: its engine and tables in process, and the program in a network namespace.

mod flights;
mod memory;
mod program;
mod selection;
mod tables;
mod testbed;
