// SPDX-License-Identifier: Apache-2.0
//! What the fuzzers run: one module a target, each with `run(data)`, which panics if a promise is broken.
//!
//! | target | input | promise |
//! |---|---|---|
//! | [`to_server`], [`to_balancer`] | a stream of the hand-off's messages | it is read or refused; what is read is written as something that reads the same |
//! | [`client`] | a client's packets | noq gets frames, and the real server nothing that it would refuse |
//! | [`one_path`] | what senders by the same packet numbers send, and a client's packets | the same, and each hears of its own packets alone |

pub mod client;
pub mod one_path;
pub mod seeds;
pub mod to_balancer;
pub mod to_server;

/// One target: what it is called, and what runs an input.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 4] = [
    ("client", client::run),
    ("one_path", one_path::run),
    ("to_server", to_server::run),
    ("to_balancer", to_balancer::run),
];
