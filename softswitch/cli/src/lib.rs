// SPDX-License-Identifier: Apache-2.0
//! The commands of BMv2's `simple_switch_CLI` for any P4Runtime server.
//!
//! [`registry::COMMANDS`] lists them. [`execute`] executes lines in a [`session::Session`], from a terminal
//! ([`interactive`]) or a file ([`script`]).

mod action;
pub mod client;
pub mod command;
mod commands;
pub mod complete;
pub mod error;
pub mod execute;
mod handles;
pub mod interactive;
mod key;
mod nodes;
pub mod options;
pub mod output;
mod p4info;
mod proto;
pub mod registry;
pub mod schema;
pub mod script;
pub mod session;
mod value;
