// SPDX-License-Identifier: Apache-2.0
//! The targets of the fuzzers. Each is a module with `run(data)`, which panics if the target violates its property.
//!
//! | target | input | property |
//! |---|---|---|
//! | [`to_server`], [`to_balancer`] | a stream of hand-off messages | each message is decoded or rejected; encoding and decoding again yields the same message |
//! | [`client`] | a client's packets | noq gets frames, and the real server gets no feedback that it would reject |
//! | [`one_path`] | packets of senders that share a packet number space, and a client's packets | as for `client`, and each sender gets acknowledgments of its own packets only |

pub mod client;
pub mod one_path;
pub mod seeds;
pub mod to_balancer;
pub mod to_server;

/// The name of a target, and the function that runs an input.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 4] = [
    ("client", client::run),
    ("one_path", one_path::run),
    ("to_server", to_server::run),
    ("to_balancer", to_balancer::run),
];
