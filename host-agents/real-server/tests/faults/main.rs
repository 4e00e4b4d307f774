// SPDX-License-Identifier: Apache-2.0
//! Faults between client, balancer and real servers, with the real programs on an emulated network.

#[allow(dead_code)]
#[path = "../common/mod.rs"]
mod common;

mod connection_ids;
mod drain;
mod false_acks;
mod invalid_grants;
mod keys;
mod large_requests;
mod moves;
mod paths;
mod requests;
mod unreachable;
mod unsized_responses;
