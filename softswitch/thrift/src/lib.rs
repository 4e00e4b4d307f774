// SPDX-License-Identifier: Apache-2.0
//! BMv2's Thrift services, with which `simple_switch_CLI` and other tools control a switch.
//!
//! - [`interface`] declares the functions of the services `standard`, `simple_pre_lag` and `simple_switch`.
//!   Each subject is a trait that a server implements.
//! - [`calls`] reads the messages of a client, with limits, and replies.
//! - [`server`] serves implementations of these traits to TCP clients, with limits for messages and connections.
//! - [`client`] calls the functions of a server.
//!
//! Messages have Thrift's binary protocol without frames, and the name of a function follows the name of its service and
//! a colon, as Thrift's multiplexed protocol demands.

#![warn(missing_docs)]

pub mod calls;
pub mod client;
mod declare;
mod function;
pub mod interface;
pub mod server;
pub mod service;
pub mod wire;
